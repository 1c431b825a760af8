/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config — what the user asked for: defaults, then the config file, then the environment, then flags.
 *
 * One list (options.def) makes the struct, the parser, the file's keys and --help. Built once at the
 * start and passed on as const. Strings belong to the config (its arena), to argv or to the environment.
 * Errors are returned with one line of text that names the option, the value and what would be right.
 */
#ifndef RS_CONFIG_CONFIG_H
#define RS_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "shared/config.h"
#include "base/arena.h"
#include "discover/rule.h"

#define RS_CONFIG_PIDS	   64 /* -p at most */
#define RS_CONFIG_WARNINGS 32

enum rs_command_id {
#define RS_COMMAND(id, name, args, summary) RS_CMD_##id,
#include "commands.def"
#undef RS_COMMAND
	RS_CMD_COUNT,
};

struct rs_command_info {
	const char *name, *args, *summary;
};

extern const struct rs_command_info rs_command_info[RS_CMD_COUNT];

enum rs_option_type {
	RS_OT_BOOL,	/* bool: given or not; in the file and environment true or false */
	RS_OT_STR,	/* const char *, or NULL */
	RS_OT_RATIO,	/* const char *, or NULL: a number from 0 to 1 */
	RS_OT_ENUM,	/* int: position in the argument's values */
	RS_OT_UINT,	/* uint64_t */
	RS_OT_BYTES,	/* uint64_t; k, m, g: powers of 1024 */
	RS_OT_DURATION, /* uint64_t, ns; ns us ms s m h, a bare number is seconds */
	RS_OT_PIDS,	/* struct rs_config_pids */
	RS_OT_PORTS,	/* struct rs_config_ports */
	RS_OT_COMMS,	/* struct rs_config_comms */
	RS_OT_RULES,	/* struct rs_rules (discover/rule.h) */
};

struct rs_config_pids {
	uint32_t n, v[RS_CONFIG_PIDS];
};

struct rs_config_ports {
	uint32_t n;
	uint16_t v[RS_FILTER_PORTS];
};

struct rs_config_comms {
	uint32_t n;
	char v[RS_FILTER_COMMS][RS_COMM_LEN]; /* NUL-terminated; cut as the kernel cuts them */
};

/* Who set an option's value. */
enum rs_config_source {
	RS_FROM_DEFAULT,
	RS_FROM_FILE,
	RS_FROM_OTEL, /* an OTEL_* variable: what is wrong in it is ignored, with a warning */
	RS_FROM_ENV,  /* another */
	RS_FROM_FLAG,
};

enum rs_option_id {
#define RS_OPTION(field, ...) RS_O_##field,
#include "options.def"
#undef RS_OPTION
	RS_O_COUNT,
};

/* ENUM values: --capture is an enum rs_capture_mode (kernel/kernel.h), --color an enum rs_color
 * (base/term.h), --log-level an enum rs_log_level (base/log.h). */

#define RS_CT_BOOL     bool
#define RS_CT_STR      const char *
#define RS_CT_RATIO    const char *
#define RS_CT_ENUM     int
#define RS_CT_UINT     uint64_t
#define RS_CT_BYTES    uint64_t
#define RS_CT_DURATION uint64_t
#define RS_CT_PIDS     struct rs_config_pids
#define RS_CT_PORTS    struct rs_config_ports
#define RS_CT_COMMS    struct rs_config_comms
#define RS_CT_RULES    struct rs_rules

struct rs_config {
#define RS_OPTION(field, type, ...) RS_CT_##type field;
#include "options.def"
#undef RS_OPTION
	uint8_t source[RS_O_COUNT]; /* enum rs_config_source */
	/* What set it last: "file:line:column: key", "--flag", a variable; in the arena. NULL: the default. */
	const char *where[RS_O_COUNT];
	enum rs_command_id command;
	int argc; /* as given to rs_config_load */
	char **argv;
	char *const *args; /* what is not an option, before --; borrowed from argv */
	int nargs;
	char *const *cmd; /* what follows --, NULL-terminated as argv is; NULL without -- */
	struct rs_arena arena;
	/* Lines about what is odd but no error; in the arena. */
	const char *warnings[RS_CONFIG_WARNINGS];
	int nwarnings;
	char err[512]; /* what was wrong, after a function here has failed */
};

/* Defaults. cfg is released by rs_config_release in every case. */
void rs_config_init(struct rs_config *cfg, enum rs_command_id command);
void rs_config_release(struct rs_config *cfg);

/*
 * argv: what follows the command's name; its order is changed (options first, as getopt does). Reads the
 * config file and the environment too, unless --help was given. 0, or -EINVAL and err (and for the file
 * also -errno). A value of an OTEL_* variable that cannot be taken is a warning, not an error: their
 * specification wants the setting ignored.
 */
int rs_config_load(struct rs_config *cfg, int argc, char **argv);

/*
 * What only those know who use a value: writes "where: text" to err, as the functions here do to cfg->err. value: the very
 * pointer that is in cfg, of a STR; of any other nothing is said of where it is from. Returns -EINVAL.
 */
int rs_config_wrong(const struct rs_config *cfg, const char *value, char *err, size_t size,
		    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The config file alone. data: YAML text; name: for messages ("name:line:column: …"). */
int rs_config_file(struct rs_config *cfg, struct str data, const char *name);

/* What is set, and by whom, one option a line; secrets are not shown (show.c). */
void rs_config_show(const struct rs_config *cfg, FILE *out);

/* The command's --help. */
void rs_config_help(enum rs_command_id command, FILE *out);

/* Position of `value` in a NULL-terminated list, or -EINVAL and err: what is unknown and what is nearest. */
int rs_config_choice(struct rs_config *cfg, const char *what, const char *value,
		     const char *const *choices);

#endif
