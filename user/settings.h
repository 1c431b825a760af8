/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings — a config that was read is one the agent can run with; and the config file read again.
 *
 * A reload reads flags, environment and file as the start did. What is wrong keeps the old settings. Options that
 * can be applied to the running agent are applied; of the others that have changed it says that they need a
 * restart: they are as they were at the start.
 */
#ifndef RS_SETTINGS_H
#define RS_SETTINGS_H

#include "config/config.h"

/* What the parser cannot know: names of exporters and attributes. 0, or -EINVAL and one line of text in err. */
int rs_settings_check(const struct rs_config *cfg, char *err, size_t size);

struct rs_reload {
	const struct rs_config *start; /* as the agent was started */
	struct rs_config *live;	       /* as last applied; NULL: start. Strings of it are in use */
	struct rs_config *exporting; /* what exporters go by: live, or one before it; NULL: start */
	/* Makes these settings the running ones; the old ones go when it returns. Borrowed: until the next one. */
	void (*apply)(void *arg, const struct rs_config *cfg);
	/*
	 * Makes exporters, which are the same ones as at the start, go by them; asked before the other. 0, or -errno with a
	 * line in err: then nothing of this config is taken. NULL: there are no exporters.
	 */
	int (*move)(void *arg, const struct rs_config *cfg, char *err, size_t size);
	void *arg;

	/* The last reload: */
	uint64_t done_ns;				       /* CLOCK_MONOTONIC; 0: none yet */
	char err[512];					       /* why it was refused, or "" */
	const char *applied[RS_O_COUNT], *restart[RS_O_COUNT]; /* long names of options */
	int napplied, nrestart;
};

/* 0, or -EINVAL (or -errno of the file) and r->err. */
int rs_reload_run(struct rs_reload *r, uint64_t now_ns);
void rs_reload_release(struct rs_reload *r);
/* The last reload as one line of JSON: file, error, applied[], restart[]. malloc'ed; NULL without memory. */
char *rs_reload_json(const struct rs_reload *r, size_t *ret_len);

#endif
