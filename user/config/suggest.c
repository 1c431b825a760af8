// SPDX-License-Identifier: Apache-2.0
#include "suggest.h"

#define MAX_WORD 32 /* longer words get no suggestion */

static unsigned min2(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
static unsigned distance(struct str a, struct str b)
{
	unsigned d[MAX_WORD + 1][MAX_WORD + 1];

	for (unsigned i = 0; i <= a.len; i++) {
		for (unsigned j = 0; j <= b.len; j++) {
			unsigned differs;

			if (!i || !j) {
				d[i][j] = i + j;
				continue;
			}
			differs = a.ptr[i - 1] != b.ptr[j - 1];
			d[i][j] =
				min2(d[i - 1][j - 1] + differs, min2(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] &&
			    a.ptr[i - 2] == b.ptr[j - 1])
				d[i][j] = min2(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[a.len][b.len];
}

void rs_suggest_init(struct rs_suggest *s, struct str word)
{
	*s = (struct rs_suggest){ .word = word };
	/* A third of the word may be wrong, and one letter of a short one. */
	s->distance = (unsigned)(word.len / 3) + 2;
}

void rs_suggest_add(struct rs_suggest *s, const char *candidate)
{
	struct str c = str_c(candidate);
	unsigned d;

	if (!s->word.len || s->word.len > MAX_WORD || c.len > MAX_WORD)
		return;
	/* "--max" means --max-connections more than it means --pid. */
	d = s->word.len > 2 && str_starts(c, s->word) ? 0 : distance(s->word, c);
	if (d < s->distance && d < c.len) {
		s->distance = d;
		s->best = candidate;
	}
}
