/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule — one rule of discovery: which processes it fits, and what is done with them.
 *
 * All conditions that are given must hold, each by one of its values; a rule without conditions fits all.
 * Globs: * any characters, '/' too, ? one, [a-z] one of them; case matters. Parsed once, then const;
 * memory is the given arena's. Pure but for user names, which the host's user database resolves when a rule
 * is parsed: a name that it does not know fits nobody.
 */
#ifndef RS_DISCOVER_RULE_H
#define RS_DISCOVER_RULE_H

#include "base/arena.h"
#include "discover/facts.h"

enum rs_rule_key {
#define RS_RULE_KEY(field, ...) RS_RK_##field,
#include "discover/rules.def"
#undef RS_RULE_KEY
	RS_RK_COUNT,
};

enum rs_rule_kind {
	RS_RKIND_GLOBS,
	RS_RKIND_PATHS,
	RS_RKIND_USERS,
	RS_RKIND_PORTS,
	RS_RKIND_LABELS,
	RS_RKIND_SERVICE,
	RS_RKIND_PROTOS,
	RS_RKIND_RATIO,
	RS_RKIND_ENUM,
};

struct rs_rule_key_info {
	const char *name, *arg, *help;
	enum rs_rule_kind kind;
};
extern const struct rs_rule_key_info rs_rule_keys[RS_RK_COUNT];

static inline bool rs_rule_is_condition(enum rs_rule_kind kind)
{
	return kind <= RS_RKIND_LABELS;
}

enum rs_rule_depth {
	RS_DEPTH_HEADERS,
	RS_DEPTH_NONE,
};

enum rs_rule_tls {
	RS_RULE_TLS_DEFAULT, /* as --tls says; the others, less one, are its values */
	RS_RULE_TLS_AUTO,
	RS_RULE_TLS_ALWAYS,
	RS_RULE_TLS_NEVER,
};

/* One value of a condition. */
struct rs_rule_value {
	struct rs_rule_value *next;
	const char *glob; /* GLOBS, PATHS; LABELS: of the value */
	const char *key;  /* LABELS */
	uint32_t first,
		last; /* PORTS: a range; USERS: first is the uid, RS_FACTS_NO_UID: nobody's */
};

#define RS_RULE_GLOBS	struct rs_rule_value *
#define RS_RULE_PATHS	struct rs_rule_value *
#define RS_RULE_USERS	struct rs_rule_value *
#define RS_RULE_PORTS	struct rs_rule_value *
#define RS_RULE_LABELS	struct rs_rule_value *
#define RS_RULE_SERVICE const char * /* NULL: not given */
#define RS_RULE_PROTOS	uint32_t     /* bit per protocol, in the order of protocols.def; 0: all */
#define RS_RULE_RATIO	double	     /* negative: not given */
#define RS_RULE_ENUM	int

struct rs_rule {
	struct rs_rule *next;
	const char *where; /* how people find it: "ringspan.yaml:12", "--include" */
	uint32_t given;	   /* bit per enum rs_rule_key */
#define RS_RULE_KEY(field, kind, ...) RS_RULE_##kind field;
#include "discover/rules.def"
#undef RS_RULE_KEY
};

struct rs_rules {
	struct rs_rule *first, **end; /* end NULL: empty */
	uint32_t n;
};

#define RS_RULES_MAX	   256
#define RS_RULE_VALUES_MAX 256 /* of one condition */

/* New and empty, at the end. where is copied. NULL without memory or with too many rules. */
struct rs_rule *rs_rules_add(struct rs_rules *rules, struct rs_arena *a, const char *where);

/* Its key, or -1. */
int rs_rule_find_key(struct str name);
/*
 * Adds a value to a key; LABELS: "KEY=GLOB". 0, or -EINVAL and one line of text in err: what is wrong with
 * the value. With 0 err is empty, or says what is odd about a value that is taken all the same.
 */
int rs_rule_set(struct rs_rule *r, struct rs_arena *a, enum rs_rule_key key, struct str value,
		char *err, size_t size);
/*
 * "key=value,key=value…", as --include takes it. exclude: only conditions are taken. Returns and err as above.
 */
int rs_rule_parse(struct rs_rule *r, struct rs_arena *a, struct str text, bool exclude, char *err,
		  size_t size);
/* A rule that was read is as it should be? A rule of exclude must have a condition. NULL, or what is wrong. */
const char *rs_rule_wrong(const struct rs_rule *r, bool exclude);

enum rs_fit {
	RS_FIT_NO,
	RS_FIT_YES,
	RS_FIT_PORT,	/* all but its port fits: a connection may yet have that */
	RS_FIT_UNKNOWN, /* something that it asks for is not known */
};
enum rs_fit rs_rule_fit(const struct rs_rule *r, const struct rs_facts *f);
/*
 * service.name of a process that r has included; NULL: rules say nothing. A rule that asks for a port alone fits the
 * clients of that port too, but does not name them: for those the next rule that fits is asked.
 */
const char *rs_rule_service(const struct rs_rule *r, const struct rs_facts *f);

/* The pattern of key `exe` against a path. */
bool rs_rule_exe_fits(const char *pattern, const char *exe);

#endif
