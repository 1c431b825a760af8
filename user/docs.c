// SPDX-License-Identifier: Apache-2.0
#include "docs.h"

#include <ctype.h>
#include <string.h>

#include "base/counters.h"
#include "config/option.h"

/* Text for roff: hyphens that are typed stay hyphens, nothing is taken for a request. */
static void put_roff(FILE *out, const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", out);
	for (; *text; text++) {
		if (*text == '-')
			fputs("\\-", out);
		else if (*text == '\\')
			fputs("\\e", out);
		else
			fputc(*text, out);
	}
}

static void put_option(FILE *out, const struct rs_option *o)
{
	fputs(".TP\n", out);
	if (o->letter)
		fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
	fputs("\\fB\\-\\-", out);
	put_roff(out, o->name);
	fputs("\\fR", out);
	if (o->arg) {
		fputs(" \\fI", out);
		put_roff(out, o->arg);
		fputs("\\fR", out);
	}
	fputc('\n', out);
	put_roff(out, o->help);
	if (o->def) {
		fputs(" (default ", out);
		put_roff(out, o->def);
		fputc(')', out);
	}
	fputs(".\n", out);
	if (o->commands == UINT32_MAX) {
		fputs("All commands.\n", out);
		return;
	}
	fputs("For", out);
	for (int c = 0, n = 0; c < RS_CMD_COUNT; c++) {
		if (o->commands & (1u << c))
			fprintf(out, "%s \\fB%s\\fR", n++ ? "," : "", rs_command_info[c].name);
	}
	fputs(".\n", out);
}

/* Those of a section of the config file; "": of none. */
static void put_options(FILE *out, const char *path)
{
	for (int i = 0; i < RS_O_COUNT; i++) {
		if (!strcmp(rs_option_section((enum rs_option_id)i)->path, path))
			put_option(out, &rs_options[i]);
	}
}

static void put_environment(FILE *out)
{
	fputs(".SH ENVIRONMENT\nWeaker than options, stronger than the config file. Every option has a variable,\n"
	      ".B RINGSPAN_\nand its long name in capitals with _ for -: RINGSPAN_RING_SIZE; in lists, commas stand\n"
	      "between the elements, and semicolons between rules. After it these count:\n",
	      out);
	for (int i = 0; i < RS_O_COUNT; i++) {
		struct str rest = str_c(rs_options[i].env), one;

		while (rest.len) {
			rest = str_cut(rest, ' ', &one);
			if (str_starts(one, STR("RINGSPAN_")))
				continue;
			fprintf(out, ".TP\n.B %.*s\nas \\fB\\-\\-", STR_ARG(one));
			put_roff(out, rs_options[i].name);
			fputs("\\fR.\n", out);
		}
	}
	fputs(".TP\n.B NO_COLOR\nno colours, when it is set and not empty.\n", out);
}

static void put_loss(FILE *out, const struct rs_counter_info *c)
{
	if (c->kind != RS_CK_DROPPED || !*c->remedy)
		return;
	fputs(".TP\n.B ", out);
	put_roff(out, c->stage);
	fputc('.', out);
	put_roff(out, c->name);
	fputc('\n', out);
	put_roff(out, c->help);
	fputs(". What to do: ", out);
	put_roff(out, c->remedy);
	fputs(".\n", out);
}

static void put_losses(FILE *out)
{
	fputs(".SH LOSSES\n"
	      "Every stage counts what comes in, what goes out and what is lost. Losses that\n"
	      ".B status\nand the last line of\n.B trace\nname:\n",
	      out);
	for (int i = 0; i < RS_BPFC_COUNT; i++)
		put_loss(out, &rs_bpf_counter_info[i]);
	for (int i = 0; i < RS_C_COUNT; i++)
		put_loss(out, &rs_counter_info[i]);
}

void rs_docs_man(FILE *out)
{
	fprintf(out, ".TH RINGSPAN 1 \"\" \"ringspan %s\"\n", RS_VERSION);
	fputs(".SH NAME\nringspan \\- turns HTTP and gRPC requests that the kernel sees into tracing spans\n"
	      ".SH SYNOPSIS\n",
	      out);
	for (int c = 0; c < RS_CMD_COUNT; c++) {
		fprintf(out, "%s\\fBringspan %s\\fR [\\fIoptions\\fR] ", c ? ".br\n" : "",
			rs_command_info[c].name);
		put_roff(out, rs_command_info[c].args);
		fputc('\n', out);
	}
	fputs(".SH DESCRIPTION\n"
	      "ringspan watches a machine's sockets through eBPF and makes a span of each request, on both\n"
	      "sides. The traced programs are not changed and not restarted.\n"
	      "Without a command it shows the status.\n"
	      ".SH COMMANDS\n",
	      out);
	for (int c = 0; c < RS_CMD_COUNT; c++) {
		fprintf(out, ".TP\n.B %s\n", rs_command_info[c].name);
		put_roff(out, rs_command_info[c].summary);
		fputs(".\n", out);
	}
	fputs(".SH OPTIONS\n", out);
	put_options(out, "");
	for (const struct rs_section *s = rs_sections; s < rs_sections + RS_SECTION_COUNT; s++) {
		if (!*s->help)
			continue;
		fputs(".SS ", out);
		put_roff(out, s->help);
		fputc('\n', out);
		put_options(out, s->path);
	}
	fputs(".SH CONFIG FILE\n"
	      "YAML: sections of options;\n.B ringspan config \\-\\-sample\nprints one with all there are, explained.\n"
	      "At its top every option may also be given by its long name. Options that may be repeated take lists.\n"
	      "One file may serve all commands: each takes what concerns it.\n"
	      ".SH EXIT STATUS\n"
	      "0: well; 1: failed; 2: wrong usage; 3: missing privilege or kernel feature.\n"
	      ".B trace \\-\\- CMD\n"
	      "ends with the command's own status, 128 and the signal's number when one killed it, 126 or\n"
	      "127 when it could not be run.\n",
	      out);
	put_environment(out);
	fputs(".SH FILES\n.TP\n.I /run/ringspan.sock\nthe agent's socket, mode 0600. It answers the line\n"
	      ".B status\nwith one line of JSON.\n",
	      out);
	put_losses(out);
	fputs(".SH EXAMPLES\n.nf\n"
	      "ringspan trace \\-\\-port 8080\n"
	      "ringspan trace \\-\\-format json \\-\\- curl http://localhost:8080/\n"
	      "ringspan run \\-\\-file /var/log/spans.jsonl\n"
	      "ringspan status \\-\\-watch\n"
	      "ringspan record \\-o case.tev \\-\\-duration 10s; ringspan replay case.tev\n"
	      ".fi\n",
	      out);
}

/* -- the sample of a config file -- */

#define SAMPLE_WIDTH 100

/* Words as a comment at this depth, line by line. */
static void put_comment(FILE *out, int indent, const char *text)
{
	struct str rest = str_c(text), word;
	int at = 0;

	while (rest.len) {
		rest = str_cut(rest, ' ', &word);
		if (at && at + 1 + (int)word.len > SAMPLE_WIDTH) {
			fputc('\n', out);
			at = 0;
		}
		if (!at)
			at = fprintf(out, "%*s# %.*s", indent, "", STR_ARG(word));
		else
			at += fprintf(out, " %.*s", STR_ARG(word));
	}
	fputc('\n', out);
}

/* A value to begin with: the default, or what the value looks like. */
static void put_value(FILE *out, const struct rs_option *o)
{
	switch ((enum rs_option_type)o->type) {
	case RS_OT_BOOL:
		fputs("false", out);
		break;
	case RS_OT_PIDS:
	case RS_OT_PORTS:
	case RS_OT_COMMS:
	case RS_OT_RULES:
		fputs("[]", out);
		break;
	default:
		/* Some defaults and placeholders would mean something in YAML. */
		if (o->def && !strpbrk(o->def, ":,[]{}#&*!|>'\"%@`"))
			fputs(o->def, out);
		else
			fprintf(out, "'%s'", o->def ? o->def : o->arg);
		break;
	}
}

static void put_sample_option(FILE *out, int indent, enum rs_option_id id)
{
	const struct rs_option *o = &rs_options[id];
	char variable[RS_OPTION_PATH], text[1024];

	snprintf(text, sizeof(text), "%s%s%s%s (--%s, %s%s%s)", o->type == RS_OT_ENUM ? o->arg : "",
		 o->type == RS_OT_ENUM ? ": " : "", o->help,
		 o->def || o->type == RS_OT_BOOL || rs_option_is_list(o) ? "" : " [none]", o->name,
		 rs_option_variable(id, variable), o->env ? " " : "", o->env ? o->env : "");
	put_comment(out, indent, text);
	fprintf(out, "%*s# %s: ", indent, "", rs_option_key(id));
	put_value(out, o);
	fputs("\n", out);
}

/* The section's own options, wherever they stand in the list, then the sections below it. */
static void put_sample_section(FILE *out, int indent, const char *path)
{
	size_t n = strlen(path);

	for (int i = 0; i < RS_SECTION_COUNT; i++) {
		const struct rs_section *s = &rs_sections[i];

		for (int id = s->first; id < s[1].first; id++) {
			if (strcmp(s->path, path) ||
			    !(rs_options[id].commands & 1u << RS_CMD_run) ||
			    !rs_option_in_file((enum rs_option_id)id))
				continue;
			put_sample_option(out, indent, (enum rs_option_id)id);
		}
	}
	for (int i = 0; i < RS_SECTION_COUNT; i++) {
		const char *p = rs_sections[i].path, *key = p + n + (n > 0);

		if (!*rs_sections[i].help || strlen(p) <= n || strncmp(p, path, n) ||
		    (n && p[n] != '.') || strchr(key, '.'))
			continue;
		fputc('\n', out);
		put_comment(out, indent, rs_sections[i].help);
		fprintf(out, "%*s%s:\n", indent, "", key);
		put_sample_section(out, indent + 2, p);
	}
}

void rs_docs_sample(FILE *out)
{
	fputs("# ringspan's config file, with every option at its default. Flags are stronger than variables, and\n"
	      "# those stronger than this file; each option says in brackets which they are. `ringspan config check\n"
	      "# FILE` tells whether a file is right, `ringspan reload` (or SIGHUP) makes the agent read it again.\n"
	      "# At the top every option may also be given by its flag's name.\n\n",
	      out);
	put_sample_section(out, 0, "");
	fputs("\n# Rules of discovery, for discovery: include: and exclude:. All conditions of a rule must hold, each\n"
	      "# by one of its values.\n"
	      "#\n"
	      "#   include:\n"
	      "#     - exe: [node, /opt/*/bin/server]\n"
	      "#       service: shop\n"
	      "#\n",
	      out);
	for (int i = 0; i < RS_RK_COUNT; i++)
		fprintf(out, "#   %-10s %-20s %s\n", rs_rule_keys[i].name, rs_rule_keys[i].arg,
			rs_rule_keys[i].help);
}

/* "--pid --comm …" of one command. */
static void put_words(FILE *out, int command)
{
	for (int i = 0, n = 0; i < RS_O_COUNT; i++) {
		if (rs_options[i].commands & (1u << command))
			fprintf(out, "%s--%s", n++ ? " " : "", rs_options[i].name);
	}
}

/* The words that an option's value may be, each with '|' behind it; NULL: it is no such word. */
static const char *value_words(int option)
{
#define RS_ENCODER(file, name)	  name "|"
#define RS_EXPORTER(symbol, name) name "|"
	switch (option) {
	case RS_O_format:
		return "text|"
#include "encoders.def"
			;
	case RS_O_encoder:
	case RS_O_to:
		return
#include "encoders.def"
			;
	case RS_O_from:
		return "otlp-json|otlp-proto|";
	case RS_O_exporter:
		return
#include "export/exporters.def"
			;
	default:
		return rs_options[option].type == RS_OT_ENUM ? rs_options[option].arg : NULL;
	}
#undef RS_ENCODER
#undef RS_EXPORTER
}

/* An option's values, where they are words or files. */
static void put_value_case(FILE *out, int option)
{
	const struct rs_option *o = &rs_options[option];
	const char *words = value_words(option);

	if (!o->arg)
		return;
	if (words) {
		fprintf(out, "\t--%s) words=\"", o->name);
		for (const char *p = words; *p; p++)
			fputc(*p == '|' ? ' ' : *p, out);
		fputs("\" ;;\n", out);
	} else if (!strcmp(o->arg, "FILE") || !strcmp(o->arg, "PATH")) {
		fprintf(out,
			"\t--%s%s%.1s) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;\n",
			o->name, o->letter ? "|-" : "", o->letter ? &o->letter : "");
	} else {
		fprintf(out, "\t--%s%s%.1s) return ;;\n", o->name, o->letter ? "|-" : "",
			o->letter ? &o->letter : "");
	}
}

static void put_commands(FILE *out)
{
	for (int c = 0; c < RS_CMD_COUNT; c++)
		fprintf(out, " %s", rs_command_info[c].name);
}

void rs_docs_bash(FILE *out)
{
	fputs("# bash completion for ringspan; made by `ringspan help bash`\n"
	      "_ringspan()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words verbs\n"
	      "\tCOMPREPLY=()\n"
	      "\tcase $prev in\n",
	      out);
	for (int i = 0; i < RS_O_COUNT; i++)
		put_value_case(out, i);
	fputs("\tesac\n\tif [ -z \"$words\" ] && [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\twords=\"help",
	      out);
	put_commands(out);
	fputs("\"\n\telif [ -z \"$words\" ]; then\n\t\tcase ${COMP_WORDS[1]} in\n"
	      "\t\thelp) verbs=\"man bash",
	      out);
	put_commands(out);
	fputs("\" ;;\n", out);
	for (int c = 0; c < RS_CMD_COUNT; c++) {
		const char *args = rs_command_info[c].args;

		fprintf(out, "\t\t%s) words=\"", rs_command_info[c].name);
		put_words(out, c);
		fputs("\"", out);
		/* What is typed as it stands, as in "check FILE". */
		if (islower((unsigned char)*args))
			fprintf(out, " verbs=%.*s", (int)strcspn(args, " "), args);
		fputs(" ;;\n", out);
	}
	fputs("\t\tesac\n"
	      "\t\t[ \"$COMP_CWORD\" -eq 2 ] || verbs=\n"
	      "\t\t# What is no option is a verb, else a file, or a command after --.\n"
	      "\t\tif [[ $cur != -* && -n $verbs ]]; then words=$verbs\n"
	      "\t\telif [[ $cur != -* ]]; then mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return; fi\n"
	      "\tfi\n"
	      "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	      "}\n"
	      "complete -o filenames -F _ringspan ringspan\n",
	      out);
}
