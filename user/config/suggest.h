/* SPDX-License-Identifier: Apache-2.0 */
/* suggest — "did you mean": the nearest of some words. */
#ifndef RS_CONFIG_SUGGEST_H
#define RS_CONFIG_SUGGEST_H

#include "base/str.h"

struct rs_suggest {
	struct str word;
	const char *best; /* NULL when nothing is near enough */
	unsigned distance;
};

void rs_suggest_init(struct rs_suggest *s, struct str word);
/* Offers one candidate; it is kept by pointer when it is nearer than what came before. */
void rs_suggest_add(struct rs_suggest *s, const char *candidate);

#endif
