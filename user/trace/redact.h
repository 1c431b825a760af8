/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redact — what the user wants in spans beside the defaults, and what not: query keys whose values go,
 * attributes that are left out, header fields that become attributes.
 *
 * Made once from the configuration, then read only; it outlives every batch, whose keys point into it.
 * Zeroed, it asks for nothing. Query keys are borrowed from the configuration.
 */
#ifndef RS_TRACE_REDACT_H
#define RS_TRACE_REDACT_H

#include "span.h"

#define RS_REDACT_QUERY 32 /* query keys at most */
#define RS_REDACT_HEADERS                                                                          \
	8 /* header fields at most, for each direction; of a message as many values */
#define RS_REDACT_NAME 64 /* bytes of a header field's name at most */

struct rs_redact_header {
	struct rs_key key; /* http.request.header.NAME; borrows `text` */
	struct str name;   /* lower case; the end of the key */
	bool secret;	   /* its values are never shown */
	bool dropped;	   /* asked for, and to be left out */
	char text[sizeof("http.response.header.") + RS_REDACT_NAME + RS_ARENA_PAD];
};

struct rs_redact_headers {
	uint32_t n;
	struct rs_redact_header v[RS_REDACT_HEADERS];
};

struct rs_redact {
	bool drops;			       /* some bit of `drop` is set */
	uint64_t drop[(RS_K_COUNT + 63) / 64]; /* bits by enum rs_known_key */
	uint32_t nquery;
	struct str query[RS_REDACT_QUERY]; /* case-sensitive */
	struct rs_redact_headers request, response;
};

/* Lists with commas between, or NULL. */
struct rs_redact_lists {
	const char *query, *drop, *request, *response;
};

/*
 * Returns nothing, or what cannot be done as asked: an attribute that ringspan does not write, no field's name, a name
 * that is too long, one too many. To go on without it could show what was to be hidden.
 */
struct str rs_redact_init(struct rs_redact *r, const struct rs_redact_lists *l);
/* What to tell the user of it: a format of printf's, for STR_ARG() of what was returned. */
#define RS_REDACT_REFUSED                                                                          \
	"redaction: '%.*s' is no attribute that ringspan writes, no field's name, too long, or one too many"

/* Is the attribute with this rs_key.id to be left out? */
static inline bool rs_redact_drops(const struct rs_redact *r, uint32_t id)
{
	return id < RS_K_COUNT && r->drop[id / 64] >> (id % 64) & 1;
}

/* Is the value of this query key to go, for the user's reasons? r may be NULL. */
static inline bool rs_redact_query(const struct rs_redact *r, struct str key)
{
	for (uint32_t i = 0; r && i < r->nquery; i++) {
		if (str_eq(key, r->query[i]))
			return true;
	}
	return false;
}

#endif
