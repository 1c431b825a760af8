// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cmd.h"
#include "config/suggest.h"
#include "docs.h"

typedef int (*command_fn)(struct rs_config *cfg);

static const command_fn commands[RS_CMD_COUNT] = {
#define RS_COMMAND(id, name, args, summary) [RS_CMD_##id] = rs_cmd_##id,
#include "config/commands.def"
#undef RS_COMMAND
};

static void usage(FILE *out)
{
	fputs("usage: ringspan COMMAND [options]\n\n"
	      "Turns the HTTP and gRPC requests that the kernel sees into tracing spans; traced programs stay as they are.\n\n"
	      "commands:\n",
	      out);
	for (int i = 0; i < RS_CMD_COUNT; i++)
		fprintf(out, "  %-9s %s\n", rs_command_info[i].name, rs_command_info[i].summary);
	fputs("\n`ringspan COMMAND --help` lists its options. Without a command: status.\n"
	      "`ringspan help man` prints the manual page, `ringspan help bash` a completion script.\n",
	      out);
}

static int find_command(const char *name)
{
	for (int i = 0; i < RS_CMD_COUNT; i++) {
		if (!strcmp(rs_command_info[i].name, name))
			return i;
	}
	return -1;
}

static int unknown_command(const char *name)
{
	struct rs_suggest s;

	rs_suggest_init(&s, str_c(name));
	for (int i = 0; i < RS_CMD_COUNT; i++)
		rs_suggest_add(&s, rs_command_info[i].name);
	if (s.best)
		rs_error("unknown command '%s'; did you mean '%s'?", name, s.best);
	else
		rs_error("unknown command '%s'; see `ringspan help`", name);
	return RS_EXIT_USAGE;
}

static int help(int argc, char **argv)
{
	int id = argc > 0 ? find_command(argv[0]) : -1;

	if (argc > 0 && !strcmp(argv[0], "man"))
		rs_docs_man(stdout);
	else if (argc > 0 && !strcmp(argv[0], "bash"))
		rs_docs_bash(stdout);
	else if (argc > 0 && id < 0)
		return unknown_command(argv[0]);
	else if (argc > 0)
		rs_config_help((enum rs_command_id)id, stdout);
	else
		usage(stdout);
	return RS_EXIT_OK;
}

static int run_command(enum rs_command_id id, int argc, char **argv)
{
	struct rs_config cfg;
	int ret;

	rs_config_init(&cfg, id);
	if (rs_config_load(&cfg, argc, argv)) {
		rs_error("%s", cfg.err);
		ret = RS_EXIT_USAGE;
	} else if (cfg.help) {
		rs_config_help(id, stdout);
		ret = RS_EXIT_OK;
	} else {
		rs_log_set_level((enum rs_log_level)cfg.log_level);
		for (int i = 0; i < cfg.nwarnings; i++)
			rs_warn("%s", cfg.warnings[i]);
		ret = commands[id](&cfg);
	}
	rs_config_release(&cfg);
	return ret;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "status";
	int id, ret;

	if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h")) {
		ret = help(argc - 2, argv + 2);
	} else {
		if (!strcmp(name, "--version"))
			name = "version";
		id = find_command(name);
		if (id < 0)
			return unknown_command(name);
		ret = run_command((enum rs_command_id)id, argc > 2 ? argc - 2 : 0, argv + 2);
	}
	/* What was printed may still fail to be written: a full disk is not a success. */
	if (fflush(stdout) && ret == RS_EXIT_OK)
		ret = RS_EXIT_FAILED;
	return ret;
}
