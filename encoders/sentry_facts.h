/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sentry_facts — what a span's attributes say to Sentry: op, status, origin, names. Rules of its OpenTelemetry bridge.
 */
#ifndef RS_ENC_SENTRY_FACTS_H
#define RS_ENC_SENTRY_FACTS_H

#include "encoder.h"

enum sentry_fact {
	SENTRY_HTTP_METHOD,
	SENTRY_HTTP_ROUTE,
	SENTRY_HTTP_STATUS,
	SENTRY_URL_FULL,
	SENTRY_URL_PATH,
	SENTRY_GRPC_STATUS,
	SENTRY_RPC_STATUS, /* the same as a name */
	SENTRY_DB_SYSTEM,
	SENTRY_DB_QUERY,
	SENTRY_RPC_SYSTEM,
	SENTRY_MESSAGING_SYSTEM,
	SENTRY_MESSAGING_OPERATION,
	SENTRY_GRAPHQL,
	SENTRY_FAAS_TRIGGER,
	SENTRY_FACTS,
};

struct sentry_facts {
	const struct rs_val *v[SENTRY_FACTS]; /* NULL: not there */
};

void sentry_learn(struct sentry_facts *f, const struct rs_span *span);
/* The fact, if it is a text; else empty. */
struct str sentry_fact_str(const struct sentry_facts *f, enum sentry_fact i);
/* The text attribute of that name; empty: there is none. */
struct str sentry_find_str(const struct rs_attrs *as, struct str name);

struct str sentry_op_of(const struct sentry_facts *f, uint8_t kind);
/* status: enum rs_status_code. */
struct str sentry_status_of(const struct sentry_facts *f, uint8_t status);
struct str sentry_origin_of(const struct sentry_facts *f, const struct rs_scope *scope);
/* Name of a transaction or segment; *source says where it comes from. In pieces: a, then b behind a blank. */
void sentry_segment_name(const struct sentry_facts *f, const struct rs_span *span, struct str *a,
			 struct str *b, struct str *source);
/* Does it begin work in a service? */
bool sentry_is_segment(const struct rs_span *span);
struct str sentry_release_of(const struct rs_resource *r);
struct str sentry_environment_of(const struct rs_resource *r);

#endif
