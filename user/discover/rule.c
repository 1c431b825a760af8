// SPDX-License-Identifier: Apache-2.0
#include "rule.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

#define COMM_MAX 15

const struct rs_rule_key_info rs_rule_keys[RS_RK_COUNT] = {
#define RS_RULE_KEY(f, k, n, a, h)                                                                 \
	[RS_RK_##f] = { .name = n, .arg = a, .help = h, .kind = RS_RKIND_##k },
#include "discover/rules.def"
#undef RS_RULE_KEY
};

static const char *const protocols[] = {
#define RS_PROTO(name) #name,
#include "proto/protocols.def"
#undef RS_PROTO
};

static const size_t offsets[RS_RK_COUNT] = {
#define RS_RULE_KEY(f, ...) [RS_RK_##f] = offsetof(struct rs_rule, f),
#include "discover/rules.def"
#undef RS_RULE_KEY
};

static void *member(struct rs_rule *r, enum rs_rule_key key)
{
	return (char *)r + offsets[key];
}

static const char *copy(struct rs_arena *a, struct str s)
{
	char *p = rs_arena_alloc(a, s.len + 1);

	if (p) {
		memcpy(p, s.ptr, s.len);
		p[s.len] = 0;
	}
	return p;
}

struct rs_rule *rs_rules_add(struct rs_rules *rules, struct rs_arena *a, const char *where)
{
	struct rs_rule *r;

	if (rules->n == RS_RULES_MAX)
		return NULL;
	r = rs_arena_alloc(a, sizeof(*r));
	if (!r)
		return NULL;
	*r = (struct rs_rule){ .where = copy(a, str_c(where)), .sample = -1 };
	if (!r->where)
		return NULL;
	if (!rules->end)
		rules->end = &rules->first;
	*rules->end = r;
	rules->end = &r->next;
	rules->n++;
	return r;
}

int rs_rule_find_key(struct str name)
{
	for (int i = 0; i < RS_RK_COUNT; i++) {
		if (str_eq(name, str_c(rs_rule_keys[i].name)))
			return i;
	}
	return -1;
}

static int fail(char *err, size_t size, struct str value, const char *what)
{
	snprintf(err, size, "'%.*s' is not %s", STR_ARG(value), what);
	return -EINVAL;
}

/* At the end, since the first value that fits is shown. */
static int append(struct rs_rule *r, struct rs_arena *a, enum rs_rule_key key,
		  const struct rs_rule_value *v, char *err, size_t size)
{
	struct rs_rule_value **at = member(r, key), *own = rs_arena_alloc(a, sizeof(*own));
	int n = 0;

	for (; *at; at = &(*at)->next)
		n++;
	if (!own || n == RS_RULE_VALUES_MAX) {
		snprintf(err, size, "more than %d values", RS_RULE_VALUES_MAX);
		return -EINVAL;
	}
	*own = *v;
	*at = own;
	return 0;
}

static int set_ports(struct rs_rule_value *v, struct str value, char *err, size_t size)
{
	struct str first, last = str_cut(value, '-', &first);
	uint64_t lo, hi;

	if (first.len == value.len)
		last = first;
	if (!str_u64(first, &lo) || !str_u64(last, &hi) || lo < 1 || hi > 65535 || lo > hi)
		return fail(err, size, value,
			    "a port or a range of them; ports go from 1 to 65535");
	v->first = (uint32_t)lo;
	v->last = (uint32_t)hi;
	return 0;
}

static bool has_wildcard(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (strchr("*?[\\", s.ptr[i]))
			return true;
	}
	return false;
}

/* Each [ has its ], each backslash something behind it? fnmatch takes what is not so for plain text. */
static bool is_glob(const char *p)
{
	for (; *p; p++) {
		if (*p == '\\') {
			if (!*++p)
				return false;
			continue;
		}
		if (*p != '[')
			continue;
		p++;
		p += *p == '!' || *p == '^';
		for (bool first = true; *p != ']' || first; first = false) {
			char kind = *p == '[' ? p[1] : 0; /* [:alpha:], [.a.], [=a=] */

			if (kind == ':' || kind == '.' || kind == '=') {
				for (p += 2; *p && (*p != kind || p[1] != ']'); p++)
					;
				p += *p != 0;
			} else if (*p == '\\') {
				p++;
			}
			if (!*p)
				return false;
			p++;
		}
	}
	return true;
}

/* One that is not there may be made later: no error. */
static void set_user(struct rs_rule_value *v, const char *name, char *err, size_t size)
{
	const struct passwd *pw;
	uint64_t uid;

	v->first = RS_FACTS_NO_UID;
	if (str_u64(str_c(name), &uid)) {
		v->first = uid < RS_FACTS_NO_UID ? (uint32_t)uid : RS_FACTS_NO_UID;
	} else {
		pw = getpwnam(name);
		if (pw)
			v->first = pw->pw_uid;
	}
	if (v->first == RS_FACTS_NO_UID)
		snprintf(err, size, "there is no user '%s' here; nothing fits that", name);
}

static int set_condition(struct rs_rule *r, struct rs_arena *a, enum rs_rule_key key,
			 struct str value, char *err, size_t size)
{
	struct rs_rule_value v = { 0 };
	struct str label;
	int e = 0;

	switch (rs_rule_keys[key].kind) {
	case RS_RKIND_PORTS:
		e = set_ports(&v, value, err, size);
		break;
	case RS_RKIND_LABELS:
		if (!str_find(value, '=') || str_find(value, '=') == value.len)
			return fail(err, size, value, "KEY=GLOB");
		value = str_cut(value, '=', &label);
		v.key = copy(a, label);
		v.glob = copy(a, value);
		break;
	default:
		/* What the kernel cuts off of a command's name cannot be asked for. */
		if (key == RS_RK_comm && !has_wildcard(value))
			value = str_at(value, 0, COMM_MAX);
		v.glob = copy(a, value);
		break;
	}
	if (!e && rs_rule_keys[key].kind == RS_RKIND_USERS && v.glob) {
		set_user(&v, v.glob, err, size);
	} else if (v.glob && !is_glob(v.glob)) {
		snprintf(err, size, "'%s' is no glob: a '[' has no ']', or a '\\' stands last",
			 v.glob);
		return -EINVAL;
	}
	return e ? e : append(r, a, key, &v, err, size);
}

static int set_enum(struct rs_rule *r, enum rs_rule_key key, struct str value, char *err,
		    size_t size)
{
	struct str rest = str_c(rs_rule_keys[key].arg), one;

	for (int i = 0; rest.len; i++) {
		rest = str_cut(rest, '|', &one);
		if (str_eq(one, value)) {
			*(int *)member(r, key) = i;
			return 0;
		}
	}
	snprintf(err, size, "unknown value '%.*s'; it is one of %s", STR_ARG(value),
		 rs_rule_keys[key].arg);
	return -EINVAL;
}

static int set_proto(struct rs_rule *r, struct str value, char *err, size_t size)
{
	size_t n = 0;

	for (unsigned i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		if (str_eq(value, str_c(protocols[i]))) {
			r->protocols |= 1u << i;
			return 0;
		}
	}
	n = (size_t)snprintf(err, size, "unknown protocol '%.*s'; there are:", STR_ARG(value));
	for (unsigned i = 0; i < sizeof(protocols) / sizeof(protocols[0]) && n < size; i++)
		n += (size_t)snprintf(err + n, size - n, " %s", protocols[i]);
	return -EINVAL;
}

static int set_ratio(struct rs_rule *r, struct str value, char *err, size_t size)
{
	char text[32], *end;
	double v;

	snprintf(text, sizeof(text), "%.*s", STR_ARG(value));
	v = strtod(text, &end);
	if (!value.len || value.len >= sizeof(text) || *end || !isfinite(v) || v < 0 || v > 1)
		return fail(err, size, value, "a number from 0 to 1");
	r->sample = v;
	return 0;
}

int rs_rule_set(struct rs_rule *r, struct rs_arena *a, enum rs_rule_key key, struct str value,
		char *err, size_t size)
{
	enum rs_rule_kind kind = rs_rule_keys[key].kind;
	bool again = r->given & 1u << key;
	int e;

	err[0] = 0;
	if (!value.len) {
		snprintf(err, size, "the value is empty");
		return -EINVAL;
	}
	if (again && !rs_rule_is_condition(kind) && kind != RS_RKIND_PROTOS) {
		snprintf(err, size, "given twice");
		return -EINVAL;
	}
	switch (kind) {
	case RS_RKIND_SERVICE:
		r->service = copy(a, value);
		e = r->service ? 0 : -ENOMEM;
		break;
	case RS_RKIND_ENUM:
		e = set_enum(r, key, value, err, size);
		break;
	case RS_RKIND_PROTOS:
		e = set_proto(r, value, err, size);
		break;
	case RS_RKIND_RATIO:
		e = set_ratio(r, value, err, size);
		break;
	default:
		e = set_condition(r, a, key, value, err, size);
		break;
	}
	if (!e)
		r->given |= 1u << key;
	return e;
}

const char *rs_rule_wrong(const struct rs_rule *r, bool exclude)
{
	bool condition = false;

	for (int i = 0; i < RS_RK_COUNT; i++) {
		if (!(r->given & 1u << i))
			continue;
		condition |= rs_rule_is_condition(rs_rule_keys[i].kind);
		if (exclude && !rs_rule_is_condition(rs_rule_keys[i].kind))
			return "says how to trace, but excludes";
	}
	return exclude && !condition ? "has no condition and would exclude all" : NULL;
}

int rs_rule_parse(struct rs_rule *r, struct rs_arena *a, struct str text, bool exclude, char *err,
		  size_t size)
{
	struct str item, key, value;
	const char *wrong;
	int id, e;

	err[0] = 0;
	while (text.len) {
		char why[256];

		text = str_cut(text, ',', &item);
		item = str_trim(item);
		value = str_cut(item, '=', &key);
		key = str_trim(key);
		id = rs_rule_find_key(key);
		if (id < 0 || key.len == item.len) {
			size_t n = (size_t)snprintf(
				err, size, "'%.*s' is not KEY=VALUE; keys:", STR_ARG(item));

			for (int i = 0; i < RS_RK_COUNT && n < size; i++)
				n += (size_t)snprintf(err + n, size - n, " %s",
						      rs_rule_keys[i].name);
			return -EINVAL;
		}
		e = rs_rule_set(r, a, (enum rs_rule_key)id, str_trim(value), why, sizeof(why));
		if (why[0])
			snprintf(err, size, "%s: %s", rs_rule_keys[id].name, why);
		if (e)
			return e;
	}
	wrong = rs_rule_wrong(r, exclude);
	if (wrong)
		snprintf(err, size, "the rule %s", wrong);
	return wrong ? -EINVAL : 0;
}

/* -- matching -- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool rs_rule_exe_fits(const char *pattern, const char *exe)
{
	return fnmatch(pattern, strchr(pattern, '/') ? exe : last_part(exe), 0) == 0;
}

/* The path itself, or one above it. */
static bool path_or_parent_fits(const char *pattern, const char *path)
{
	char part[1024];
	size_t n = strlen(path);

	if (n >= sizeof(part))
		return false;
	memcpy(part, path, n + 1);
	while (*part) {
		if (rs_rule_exe_fits(pattern, part))
			return true;
		part[last_part(part) == part ? 0 : last_part(part) - part - 1] = 0;
	}
	return false;
}

static enum rs_fit any_glob(const struct rs_rule_value *v, const char *text)
{
	if (v && !text)
		return RS_FIT_UNKNOWN;
	for (; v; v = v->next) {
		if (fnmatch(v->glob, text, 0) == 0)
			return RS_FIT_YES;
	}
	return RS_FIT_NO;
}

/* Each key that is named must be there; of several values for one, one. */
static enum rs_fit labels_fit(const struct rs_rule_value *all, const struct rs_facts *f)
{
	if (f->nlabels < 0)
		return RS_FIT_UNKNOWN;
	for (const struct rs_rule_value *k = all; k; k = k->next) {
		bool fits = false;

		for (const struct rs_rule_value *v = all; v && !fits; v = v->next) {
			if (strcmp(v->key, k->key) != 0)
				continue;
			for (int i = 0; i < f->nlabels && !fits; i++)
				fits = !strcmp(f->labels[i].key, v->key) &&
				       !fnmatch(v->glob, f->labels[i].value, 0);
		}
		if (!fits)
			return RS_FIT_NO;
	}
	return RS_FIT_YES;
}

/* but: bit per port that does not count. */
static bool port_fits(const struct rs_rule_value *v, const struct rs_facts *f, uint32_t but)
{
	for (; v; v = v->next) {
		for (uint32_t i = 0; i < f->nports; i++) {
			if (f->ports[i] >= v->first && f->ports[i] <= v->last && !(but & 1u << i))
				return true;
		}
	}
	return false;
}

static enum rs_fit path_fits(const struct rs_rule_value *v, const char *path,
			     bool (*fits)(const char *pattern, const char *path))
{
	for (; v && path; v = v->next) {
		if (fits(v->glob, path))
			return RS_FIT_YES;
	}
	return RS_FIT_NO;
}

static enum rs_fit condition(const struct rs_rule *r, enum rs_rule_key key,
			     const struct rs_facts *f)
{
	switch (key) {
	case RS_RK_exe:
		return path_fits(r->exe, f->exe, rs_rule_exe_fits);
	case RS_RK_comm:
		return f->comm ? any_glob(r->comm, f->comm) : RS_FIT_NO;
	case RS_RK_cgroup:
		return path_fits(r->cgroup, f->cgroup, path_or_parent_fits);
	case RS_RK_user:
		for (const struct rs_rule_value *v = r->user; v; v = v->next) {
			if (v->first == f->uid && f->uid != RS_FACTS_NO_UID)
				return RS_FIT_YES;
		}
		return RS_FIT_NO;
	case RS_RK_container:
		return any_glob(r->container, f->container);
	case RS_RK_pod:
		return any_glob(r->pod, f->pod);
	case RS_RK_k8s_namespace:
		return any_glob(r->k8s_namespace, f->k8s_namespace);
	case RS_RK_label:
		return labels_fit(r->label, f);
	case RS_RK_port:
		return port_fits(r->port, f, 0) ? RS_FIT_YES : RS_FIT_PORT;
	default:
		return RS_FIT_YES;
	}
}

enum rs_fit rs_rule_fit(const struct rs_rule *r, const struct rs_facts *f)
{
	enum rs_fit all = RS_FIT_YES;

	/* No: whatever the others say. What is not known weighs more than a port that may yet come. */
	for (int i = 0; i < RS_RK_COUNT; i++) {
		enum rs_fit m;

		if (!(r->given & 1u << i))
			continue;
		m = condition(r, (enum rs_rule_key)i, f);
		if (m == RS_FIT_NO)
			return m;
		if (m > all)
			all = m;
	}
	return all;
}

/* Its only condition is a port, and that is where others are called: its name is theirs. */
static bool names_others(const struct rs_rule *r, const struct rs_facts *f)
{
	for (int i = 0; i < RS_RK_COUNT; i++) {
		if (i != RS_RK_port && r->given & 1u << i &&
		    rs_rule_is_condition(rs_rule_keys[i].kind))
			return false;
	}
	return r->port && !port_fits(r->port, f, f->far);
}

const char *rs_rule_service(const struct rs_rule *r, const struct rs_facts *f)
{
	for (; r; r = r->next) {
		if (rs_rule_fit(r, f) == RS_FIT_YES && !names_others(r, f))
			return r->service;
	}
	return NULL;
}
