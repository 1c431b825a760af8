/* SPDX-License-Identifier: Apache-2.0 */
/* option — the rows of options.def, for the room's own files and for docs. */
#ifndef RS_CONFIG_OPTION_H
#define RS_CONFIG_OPTION_H

#include "config.h"

#define RS_CONFIG_FILE_MAX (256 * 1024) /* bytes of a config file */

struct rs_option {
	const char *name, *arg, *def, *env, *help;
	uint64_t min, max;
	size_t offset;	   /* in struct rs_config */
	uint32_t commands; /* bit per enum rs_command_id */
	uint8_t type;	   /* enum rs_option_type */
	char letter;
};

extern const struct rs_option rs_options[RS_O_COUNT];

/* A section of the config file, in the order of options.def; the last one is empty. */
struct rs_section {
	const char *path;   /* "export.queue"; "": the top */
	const char *prefix; /* of its options' long names, which their keys are without */
	const char *help;
	int first; /* enum rs_option_id of its first option; the next section's is behind its last */
};
enum rs_section_id {
#define RS_OPTION(...)
#define RS_SECTION(id, ...) RS_SECTION_##id,
#include "options.def"
#undef RS_OPTION
	RS_SECTION_COUNT,
};
extern const struct rs_section rs_sections[RS_SECTION_COUNT + 1];

#define RS_OPTION_PATH 96 /* bytes of a dotted path at most */

/* The section it stands in. */
const struct rs_section *rs_option_section(enum rs_option_id id);
/* Its key in that section. */
const char *rs_option_key(enum rs_option_id id);
/* "export.queue.spans". Returns buf. */
const char *rs_option_path(enum rs_option_id id, char buf[RS_OPTION_PATH]);
/* "RINGSPAN_QUEUE_SPANS". Returns buf. */
const char *rs_option_variable(enum rs_option_id id, char buf[RS_OPTION_PATH]);
/* Can the config file, or a variable, set it? */
static inline bool rs_option_in_file(enum rs_option_id id)
{
	return id != RS_O_help && id != RS_O_config && id != RS_O_check_config && id != RS_O_sample;
}
/* Or only a flag, of this command? */
bool rs_option_flag_only(const struct rs_config *cfg, enum rs_option_id id);
static inline bool rs_option_is_list(const struct rs_option *o)
{
	return o->type >= RS_OT_PIDS;
}

/*
 * Sets one value, or adds it to a list; value must outlive the config. where: for the message. 0, or
 * -EINVAL and cfg->err.
 */
int rs_option_set(struct rs_config *cfg, enum rs_option_id id, enum rs_config_source from,
		  const char *where, const char *value);

/* A list from a stronger source replaces one from a weaker: empties it, the first time that `from` sets it. */
void rs_option_replace(struct rs_config *cfg, enum rs_option_id id, enum rs_config_source from);

/* Keeps a line in cfg->warnings, as long as there is room. */
void rs_config_warn(struct rs_config *cfg, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Writes cfg->err: "where: text" (where may be NULL). Returns -EINVAL. */
int rs_config_fail(struct rs_config *cfg, const char *where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
