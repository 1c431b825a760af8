/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover — is a process traced, and how?
 *
 * In this order, the first that fits decides: rules of exclude, rules of include, the built-in list of a
 * node's own agents, and for the rest `others`. Pure: facts in, decision out. Asked again when facts have
 * changed. Until a process is asked about it is captured; so nothing of those that are wanted is lost.
 */
#ifndef RS_DISCOVER_DISCOVER_H
#define RS_DISCOVER_DISCOVER_H

#include "discover/rule.h"

/* The values of option --others, in its order. */
enum rs_others {
	RS_OTHERS_AUTO, /* traced, unless there are rules of include */
	RS_OTHERS_TRACE,
	RS_OTHERS_SKIP,
};

struct rs_discover {
	const struct rs_rule *exclude, *include;
	enum rs_others others;
	bool builtin;	/* the node's own agents are not traced */
	uint32_t needs; /* bit per enum rs_rule_key: conditions that some rule has */
};

enum rs_decision_state {
	RS_DECIDED_TRACE,
	RS_DECIDED_PENDING, /* a fact is missing that may change it: captured, spans wait */
	RS_DECIDED_SKIP,
	RS_DECIDED_PORTS, /* not traced, until a connection has a port that a rule names */
};

struct rs_decision {
	uint8_t state;		    /* enum rs_decision_state */
	const struct rs_rule *rule; /* of include or exclude, that has decided; NULL: none */
	const char *why; /* "excluded by", "included by", … or a whole reason; static */
};

/* Fills in `needs`. The rules are borrowed. */
void rs_discover_init(struct rs_discover *d, const struct rs_rules *include,
		      const struct rs_rules *exclude, enum rs_others others, bool builtin);
struct rs_decision rs_discover_decide(const struct rs_discover *d, const struct rs_facts *f);
/* As text for people: "excluded by ringspan.yaml:12". Returns buf. */
const char *rs_decision_text(const struct rs_decision *v, char *buf, size_t size);

static inline bool rs_decision_traced(const struct rs_decision *v)
{
	return v->state <= RS_DECIDED_PENDING;
}

/* Calls fn for each range of ports that some rule names. */
void rs_discover_ports(const struct rs_discover *d,
		       void (*fn)(void *arg, uint16_t first, uint16_t last), void *arg);

#endif
