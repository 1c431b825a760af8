// SPDX-License-Identifier: Apache-2.0
#include "discover.h"

#include <stdio.h>

static const struct {
	const char *pattern, *what;
} agents[] = {
#define RS_AGENT(p, w) { p, w },
#include "discover/builtin.def"
#undef RS_AGENT
};

static uint32_t needs(const struct rs_rule *r)
{
	uint32_t all = 0;

	for (; r; r = r->next)
		all |= r->given;
	return all;
}

void rs_discover_init(struct rs_discover *d, const struct rs_rules *include,
		      const struct rs_rules *exclude, enum rs_others others, bool builtin)
{
	*d = (struct rs_discover){ .include = include->first,
				   .exclude = exclude->first,
				   .others = others,
				   .builtin = builtin };
	d->needs = needs(d->include) | needs(d->exclude);
}

/* By the executable; by the command's name when that is not known. */
static bool is_agent(const struct rs_facts *f)
{
	const char *name = f->exe && *f->exe ? f->exe : f->comm;

	for (size_t i = 0; name && i < sizeof(agents) / sizeof(agents[0]); i++) {
		if (rs_rule_exe_fits(agents[i].pattern, name))
			return true;
	}
	return false;
}

struct rs_decision rs_discover_decide(const struct rs_discover *d, const struct rs_facts *f)
{
	static const struct rs_decision pending = {
		RS_DECIDED_PENDING, NULL, "waits for its container's or pod's description"
	};
	bool by_port = false;
	bool trace = d->others == RS_OTHERS_TRACE || (d->others == RS_OTHERS_AUTO && !d->include);

	for (const struct rs_rule *r = d->exclude; r; r = r->next) {
		switch (rs_rule_fit(r, f)) {
		case RS_FIT_YES:
			return (struct rs_decision){ RS_DECIDED_SKIP, r, "excluded by" };
		case RS_FIT_UNKNOWN:
			return pending;
		default:
			break;
		}
	}
	for (const struct rs_rule *r = d->include; r; r = r->next) {
		switch (rs_rule_fit(r, f)) {
		case RS_FIT_YES:
			return (struct rs_decision){ RS_DECIDED_TRACE, r, "included by" };
		case RS_FIT_UNKNOWN:
			return pending;
		case RS_FIT_PORT:
			by_port = true;
			break;
		case RS_FIT_NO:
			break;
		}
	}
	if (d->builtin && is_agent(f)) {
		trace = false;
		if (!by_port)
			return (struct rs_decision){ RS_DECIDED_SKIP, NULL,
						     "one of the node's own agents" };
	}
	if (trace)
		return (struct rs_decision){ RS_DECIDED_TRACE, NULL, "no rule fits: traced" };
	if (by_port)
		return (struct rs_decision){ RS_DECIDED_PORTS, NULL,
					     "no connection yet with a port that a rule names" };
	return (struct rs_decision){ RS_DECIDED_SKIP, NULL, "no rule of include fits" };
}

const char *rs_decision_text(const struct rs_decision *v, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s%s", v->why ? v->why : "", v->rule ? " " : "",
		 v->rule ? v->rule->where : "");
	return buf;
}

void rs_discover_ports(const struct rs_discover *d,
		       void (*fn)(void *arg, uint16_t first, uint16_t last), void *arg)
{
	for (int i = 0; i < 2; i++) {
		for (const struct rs_rule *r = i ? d->include : d->exclude; r; r = r->next) {
			for (const struct rs_rule_value *v = r->port; v; v = v->next)
				fn(arg, (uint16_t)v->first, (uint16_t)v->last);
		}
	}
}
