/* SPDX-License-Identifier: Apache-2.0 */
/* option — the rows of options.def; between config.c and yaml.c only. */
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

/*
 * Sets one value, or adds it to a list; value must outlive the config. where: for the message. 0, or
 * -EINVAL and cfg->err.
 */
int rs_option_set(struct rs_config *cfg, enum rs_option_id id, enum rs_config_source from,
		  const char *where, const char *value);

/* A list from a stronger source replaces one from a weaker: empties it, the first time that `from` sets it. */
void rs_option_replace(struct rs_config *cfg, enum rs_option_id id, enum rs_config_source from);

/* Writes cfg->err: "where: text" (where may be NULL). Returns -EINVAL. */
int rs_config_fail(struct rs_config *cfg, const char *where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
