// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"
#include "option.h"
#include "suggest.h"
#include "value.h"

#define ARENA_CHUNK 4096
#define ARENA_LIMIT (4u << 20)

const struct rs_command_info rs_command_info[RS_CMD_COUNT] = {
#define RS_COMMAND(id, n, a, s) [RS_CMD_##id] = { .name = n, .args = a, .summary = s },
#include "commands.def"
#undef RS_COMMAND
};

#define RS_IN(id) (1u << RS_CMD_##id)
#define RS_IN_ALL UINT32_MAX

const struct rs_option rs_options[RS_O_COUNT] = {
#define RS_OPTION(f, t, l, s, a, c, d, e, lo, hi, h)                                               \
	[RS_O_##f] = {                                                                             \
		.name = l,                                                                         \
		.arg = a,                                                                          \
		.def = d,                                                                          \
		.env = e,                                                                          \
		.help = h,                                                                         \
		.min = lo,                                                                         \
		.max = hi,                                                                         \
		.offset = offsetof(struct rs_config, f),                                           \
		.commands = c,                                                                     \
		.type = RS_OT_##t,                                                                 \
		.letter = s,                                                                       \
	},
#include "options.def"
#undef RS_OPTION
};

/* An option's number, or a section's first option: what comes next in the list. */
enum {
#define RS_OPTION(f, ...)   RS_AT_##f,
#define RS_SECTION(id, ...) RS_AT_SECTION_##id, RS_BACK_SECTION_##id = RS_AT_SECTION_##id - 1,
#include "options.def"
#undef RS_OPTION
};

const struct rs_section rs_sections[RS_SECTION_COUNT + 1] = {
#define RS_OPTION(...)
#define RS_SECTION(id, p, x, h) { .path = p, .prefix = x, .help = h, .first = RS_AT_SECTION_##id },
#include "options.def"
#undef RS_OPTION
	{ .path = "", .prefix = "", .help = "", .first = RS_O_COUNT },
};

const struct rs_section *rs_option_section(enum rs_option_id id)
{
	const struct rs_section *s = rs_sections;

	while (s[1].first <= (int)id)
		s++;
	return s;
}

const char *rs_option_key(enum rs_option_id id)
{
	const char *prefix = rs_option_section(id)->prefix, *name = rs_options[id].name;
	size_t n = strlen(prefix);

	return strncmp(name, prefix, n) ? name : name + n;
}

const char *rs_option_path(enum rs_option_id id, char buf[RS_OPTION_PATH])
{
	const char *path = rs_option_section(id)->path;

	snprintf(buf, RS_OPTION_PATH, "%s%s%s", path, *path ? "." : "", rs_option_key(id));
	return buf;
}

const char *rs_option_variable(enum rs_option_id id, char buf[RS_OPTION_PATH])
{
	snprintf(buf, RS_OPTION_PATH, "RINGSPAN_%s", rs_options[id].name);
	for (char *p = buf; *p; p++) {
		if (*p == '-')
			*p = '_';
		else if (*p >= 'a' && *p <= 'z')
			*p = (char)(*p - 32);
	}
	return buf;
}

void rs_config_warn(struct rs_config *cfg, const char *fmt, ...)
{
	char text[sizeof(cfg->err)], line[sizeof(cfg->err)], *own;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	rs_utf8_clean(line, sizeof(line), str_c(text), 0);
	own = rs_arena_alloc(&cfg->arena, strlen(line) + 1);
	if (!own || cfg->nwarnings == RS_CONFIG_WARNINGS)
		return;
	memcpy(own, line, strlen(line) + 1);
	cfg->warnings[cfg->nwarnings++] = own;
}

int rs_config_fail(struct rs_config *cfg, const char *where, const char *fmt, ...)
{
	char text[sizeof(cfg->err)];
	int n = where ? snprintf(text, sizeof(text), "%s: ", where) : 0;
	va_list ap;

	if (n < 0 || (size_t)n >= sizeof(text))
		n = 0;
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	/* Values may have line ends in them, or worse; a message is one line. */
	rs_utf8_clean(cfg->err, sizeof(cfg->err), str_c(text), 0);
	return -EINVAL;
}

static void *member(struct rs_config *cfg, const struct rs_option *o)
{
	return (char *)cfg + o->offset;
}

static bool takes(const struct rs_option *o, enum rs_command_id command)
{
	return o->commands & (1u << command);
}

/* Number of the value in "a|b|c", or -1. */
static int enum_value(const char *values, struct str v, bool any_case)
{
	struct str rest = str_c(values), one;

	for (int i = 0; rest.len; i++) {
		rest = str_cut(rest, '|', &one);
		if (str_eq(one, v) || (any_case && str_ieq(one, v)))
			return i;
	}
	return -1;
}

static int bad_enum(struct rs_config *cfg, const struct rs_option *o, const char *where,
		    struct str v)
{
	char words[16][32];
	struct str rest = str_c(o->arg), one;
	struct rs_suggest s;

	rs_suggest_init(&s, v);
	for (int i = 0; rest.len && i < 16; i++) {
		rest = str_cut(rest, '|', &one);
		snprintf(words[i], sizeof(words[i]), "%.*s", STR_ARG(one));
		rs_suggest_add(&s, words[i]);
	}
	if (s.best)
		return rs_config_fail(cfg, where, "unknown value '%.*s'; did you mean '%s'? (%s)",
				      STR_ARG(v), s.best, o->arg);
	return rs_config_fail(cfg, where, "unknown value '%.*s'; it is one of %s", STR_ARG(v),
			      o->arg);
}

static void show_bound(char *buf, size_t size, const struct rs_option *o, uint64_t v)
{
	if (o->type == RS_OT_BYTES && v % (1u << 20) == 0 && v)
		snprintf(buf, size, "%llum", (unsigned long long)(v >> 20));
	else if (o->type == RS_OT_BYTES && v % 1024 == 0 && v)
		snprintf(buf, size, "%lluk", (unsigned long long)(v >> 10));
	else if (o->type == RS_OT_DURATION && v % 3600000000000 == 0 && v)
		snprintf(buf, size, "%lluh", (unsigned long long)(v / 3600000000000));
	else if (o->type == RS_OT_DURATION)
		snprintf(buf, size, "%llums", (unsigned long long)(v / 1000000));
	else
		snprintf(buf, size, "%llu", (unsigned long long)v);
}

static int set_number(struct rs_config *cfg, const struct rs_option *o, const char *where,
		      struct str v)
{
	char lo[32], hi[32];
	uint64_t n = 0;
	bool ok = false;
	const char *what = "a number";

	switch (o->type) {
	case RS_OT_BYTES:
		ok = rs_value_bytes(v, &n);
		what = "a size such as 512k or 16m";
		break;
	case RS_OT_DURATION:
		ok = rs_value_duration(v, &n);
		what = "a time such as 500ms, 10s or 5m";
		break;
	default:
		ok = str_u64(v, &n);
		break;
	}
	if (!ok)
		return rs_config_fail(cfg, where, "'%.*s' is not %s", STR_ARG(v), what);
	if (o->max && (n < o->min || n > o->max)) {
		show_bound(lo, sizeof(lo), o, o->min);
		show_bound(hi, sizeof(hi), o, o->max);
		return rs_config_fail(cfg, where, "'%.*s' is out of range; it goes from %s to %s",
				      STR_ARG(v), lo, hi);
	}
	*(uint64_t *)member(cfg, o) = n;
	return 0;
}

static int set_bool(struct rs_config *cfg, const struct rs_option *o, const char *where,
		    struct str v)
{
	bool on = str_ieq(v, STR("true")) || str_ieq(v, STR("yes")) || str_ieq(v, STR("on")) ||
		  str_eq(v, STR("1"));
	bool off = str_ieq(v, STR("false")) || str_ieq(v, STR("no")) || str_ieq(v, STR("off")) ||
		   str_eq(v, STR("0"));

	if (!on && !off)
		return rs_config_fail(cfg, where, "'%.*s' is not true or false", STR_ARG(v));
	*(bool *)member(cfg, o) = on;
	return 0;
}

/* One more element of a list option. */
static int add_element(struct rs_config *cfg, const struct rs_option *o, const char *where,
		       struct str v)
{
	struct rs_config_pids *pids = member(cfg, o);
	struct rs_config_ports *ports = member(cfg, o);
	struct rs_config_comms *comms = member(cfg, o);
	struct rs_rule *rule;
	char why[256];
	uint64_t n;

	switch (o->type) {
	case RS_OT_PIDS:
		if (!str_u64(v, &n) || n < 1 || n > 4194304)
			return rs_config_fail(cfg, where, "'%.*s' is not a process id", STR_ARG(v));
		if (pids->n == RS_CONFIG_PIDS)
			return rs_config_fail(cfg, where, "more than %d processes", RS_CONFIG_PIDS);
		pids->v[pids->n++] = (uint32_t)n;
		return 0;
	case RS_OT_PORTS:
		if (!str_u64(v, &n) || n < 1 || n > 65535)
			return rs_config_fail(cfg, where,
					      "'%.*s' is not a port; ports go from 1 to 65535",
					      STR_ARG(v));
		if (ports->n == RS_FILTER_PORTS)
			return rs_config_fail(cfg, where, "more than %d ports", RS_FILTER_PORTS);
		ports->v[ports->n++] = (uint16_t)n;
		return 0;
	case RS_OT_RULES:
		rule = rs_rules_add(member(cfg, o), &cfg->arena, where);
		if (!rule)
			return rs_config_fail(cfg, where, "more than %d rules", RS_RULES_MAX);
		if (rs_rule_parse(rule, &cfg->arena, v,
				  o->offset == offsetof(struct rs_config, exclude), why,
				  sizeof(why)))
			return rs_config_fail(cfg, where, "%s", why);
		if (why[0])
			rs_config_warn(cfg, "%s: %s", where, why);
		return 0;
	default:
		if (!v.len)
			return rs_config_fail(cfg, where, "the name is empty");
		if (comms->n == RS_FILTER_COMMS)
			return rs_config_fail(cfg, where, "more than %d names", RS_FILTER_COMMS);
		/* The kernel keeps 15 characters of a command's name; longer ones are meant so. */
		v = str_at(v, 0, RS_COMM_LEN - 1);
		memset(comms->v[comms->n], 0, RS_COMM_LEN);
		memcpy(comms->v[comms->n++], v.ptr, v.len);
		return 0;
	}
}

void rs_option_replace(struct rs_config *cfg, enum rs_option_id id, enum rs_config_source from)
{
	const struct rs_option *o = &rs_options[id];

	if (cfg->source[id] == from)
		return;
	if (o->type == RS_OT_RULES)
		*(struct rs_rules *)member(cfg, o) = (struct rs_rules){ 0 };
	else /* all other lists start with n */
		*(uint32_t *)member(cfg, o) = 0;
}

int rs_config_wrong(const struct rs_config *cfg, const char *value, char *err, size_t size,
		    const char *fmt, ...)
{
	const char *where = NULL;
	va_list ap;
	int n = 0;

	for (int id = 0; value && id < RS_O_COUNT; id++) {
		const struct rs_option *o = &rs_options[id];

		if (o->type == RS_OT_STR &&
		    *(const char *const *)((const char *)cfg + o->offset) == value)
			where = cfg->where[id];
	}
	if (where)
		n = snprintf(err, size, "%s: ", where);
	va_start(ap, fmt);
	if (n >= 0 && (size_t)n < size)
		vsnprintf(err + n, size - (size_t)n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Texts of the arena; without memory for one, errors say less. */
static const char *kept(struct rs_config *cfg, const char *text)
{
	size_t n = strlen(text) + 1;
	char *own = rs_arena_alloc(&cfg->arena, n);

	return own ? memcpy(own, text, n) : NULL;
}

int rs_option_set(struct rs_config *cfg, enum rs_option_id id, enum rs_config_source from,
		  const char *where, const char *value)
{
	const struct rs_option *o = &rs_options[id];
	struct str v = str_c(value);
	int err = 0, n;

	switch (o->type) {
	case RS_OT_BOOL:
		err = set_bool(cfg, o, where, v);
		break;
	case RS_OT_STR:
		if (!v.len)
			return rs_config_fail(cfg, where, "the value is empty");
		*(const char **)member(cfg, o) = value;
		break;
	case RS_OT_RATIO:
		if (!rs_value_ratio(value))
			return rs_config_fail(cfg, where, "'%s' is not a number from 0 to 1",
					      value);
		*(const char **)member(cfg, o) = value;
		break;
	case RS_OT_ENUM:
		n = enum_value(o->arg, v, from == RS_FROM_OTEL);
		if (n < 0)
			return bad_enum(cfg, o, where, v);
		*(int *)member(cfg, o) = n;
		break;
	case RS_OT_UINT:
	case RS_OT_BYTES:
	case RS_OT_DURATION:
		err = set_number(cfg, o, where, v);
		break;
	case RS_OT_PIDS:
	case RS_OT_PORTS:
	case RS_OT_COMMS:
	case RS_OT_RULES:
		rs_option_replace(cfg, id, from);
		err = add_element(cfg, o, where, v);
		break;
	}
	if (!err) {
		cfg->source[id] = (uint8_t)from;
		cfg->where[id] = from == RS_FROM_DEFAULT ? NULL : kept(cfg, where);
	}
	return err;
}

void rs_config_init(struct rs_config *cfg, enum rs_command_id command)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->command = command;
	rs_arena_init(&cfg->arena, ARENA_CHUNK, ARENA_LIMIT);
	for (int i = 0; i < RS_O_COUNT; i++) {
		if (rs_options[i].def)
			rs_option_set(cfg, (enum rs_option_id)i, RS_FROM_DEFAULT,
				      rs_options[i].name, rs_options[i].def);
	}
}

void rs_config_release(struct rs_config *cfg)
{
	rs_arena_release(&cfg->arena);
}

int rs_config_choice(struct rs_config *cfg, const char *what, const char *value,
		     const char *const *choices)
{
	struct rs_suggest s;
	char list[256];
	size_t n = 0;

	rs_suggest_init(&s, str_c(value));
	list[0] = 0;
	for (int i = 0; choices[i]; i++) {
		int w;

		if (!strcmp(choices[i], value))
			return i;
		rs_suggest_add(&s, choices[i]);
		w = snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "", choices[i]);
		if (w > 0 && (size_t)w < sizeof(list) - n)
			n += (size_t)w;
	}
	if (s.best)
		return rs_config_fail(cfg, what, "unknown value '%s'; did you mean '%s'?", value,
				      s.best);
	return rs_config_fail(cfg, what, "unknown value '%s'; it is one of %s", value, list);
}

static int unknown_option(struct rs_config *cfg, struct str name)
{
	const char *command = rs_command_info[cfg->command].name;
	struct rs_suggest s;

	for (int i = 0; i < RS_O_COUNT; i++) {
		if (str_eq(str_c(rs_options[i].name), name))
			return rs_config_fail(
				cfg, NULL,
				"`ringspan %s` has no option '--%.*s'; see `ringspan %s --help`",
				command, STR_ARG(name), command);
	}
	rs_suggest_init(&s, name);
	for (int i = 0; i < RS_O_COUNT; i++) {
		if (takes(&rs_options[i], cfg->command))
			rs_suggest_add(&s, rs_options[i].name);
	}
	if (s.best)
		return rs_config_fail(cfg, NULL, "unknown option '--%.*s'; did you mean '--%s'?",
				      STR_ARG(name), s.best);
	return rs_config_fail(cfg, NULL, "unknown option '--%.*s'; see `ringspan %s --help`",
			      STR_ARG(name), command);
}

/* A flag's or a variable's value; of lists, its elements: between commas, and rules, which have those, between semicolons. */
static int set_given(struct rs_config *cfg, enum rs_option_id id, enum rs_config_source from,
		     const char *where, const char *value)
{
	const struct rs_option *o = &rs_options[id];
	struct str rest = str_c(value), one;
	int err;

	if (!rs_option_is_list(o))
		return rs_option_set(cfg, id, from, where, value);
	do {
		char *own;

		rest = str_cut(rest, o->type == RS_OT_RULES ? ';' : ',', &one);
		one = str_trim(one);
		own = rs_arena_alloc(&cfg->arena, one.len + 1);
		if (!own)
			return rs_config_fail(cfg, where, "out of memory");
		memcpy(own, one.ptr, one.len);
		own[one.len] = 0;
		err = rs_option_set(cfg, id, from, where, own);
	} while (!err && rest.len);
	return err;
}

/* --name=value, --name value, of what is true or false --name. *i is at the option, and is moved over its value. */
static int long_option(struct rs_config *cfg, int argc, char **argv, int *i)
{
	struct str name = str_c(argv[*i] + 2);
	const char *value = strchr(argv[*i], '=');
	char where[64];

	if (value)
		name.len = (size_t)(value++ - name.ptr);
	for (int id = 0; id < RS_O_COUNT; id++) {
		const struct rs_option *o = &rs_options[id];

		if (!takes(o, cfg->command) || !str_eq(str_c(o->name), name))
			continue;
		snprintf(where, sizeof(where), "--%s", o->name);
		if (!value && o->type == RS_OT_BOOL) {
			value = "true";
		} else if (!value) {
			if (*i + 1 >= argc)
				return rs_config_fail(cfg, where, "needs a value (%s)", o->arg);
			value = argv[++*i];
		}
		return set_given(cfg, (enum rs_option_id)id, RS_FROM_FLAG, where, value);
	}
	return unknown_option(cfg, name);
}

/* -x, -xVALUE, -x VALUE, and flags without values together. */
static int short_options(struct rs_config *cfg, int argc, char **argv, int *i)
{
	const char *p = argv[*i] + 1;
	char where[4] = "-";

	while (*p) {
		const struct rs_option *o = NULL;
		const char *value = "true";
		int id, err;

		for (id = 0; id < RS_O_COUNT; id++) {
			if (rs_options[id].letter == *p && takes(&rs_options[id], cfg->command)) {
				o = &rs_options[id];
				break;
			}
		}
		if (!o)
			return rs_config_fail(cfg, NULL,
					      "unknown option '-%c'; see `ringspan %s --help`", *p,
					      rs_command_info[cfg->command].name);
		where[1] = *p++;
		if (o->type != RS_OT_BOOL) {
			if (*p)
				value = p;
			else if (*i + 1 < argc)
				value = argv[++*i];
			else
				return rs_config_fail(cfg, where, "needs a value (%s)", o->arg);
			p = "";
		}
		err = set_given(cfg, (enum rs_option_id)id, RS_FROM_FLAG, where, value);
		if (err)
			return err;
	}
	return 0;
}

static int parse_flags(struct rs_config *cfg, int argc, char **argv)
{
	int kept = 0;

	for (int i = 0; i < argc; i++) {
		int err = 0;

		if (!strcmp(argv[i], "--")) {
			cfg->cmd = argv + i + 1;
			break;
		}
		if (argv[i][0] == '-' && argv[i][1] == '-')
			err = long_option(cfg, argc, argv, &i);
		else if (argv[i][0] == '-' && argv[i][1])
			err = short_options(cfg, argc, argv, &i);
		else
			argv[kept++] = argv[i]; /* only slots already read are written */
		if (err)
			return err;
	}
	cfg->args = argv;
	cfg->nargs = kept;
	return 0;
}

/* OpenTelemetry's variables give times in milliseconds, without a unit. */
static const char *with_unit(struct rs_config *cfg, const struct rs_option *o, const char *name,
			     const char *value)
{
	size_t n = strlen(value);
	uint64_t v;
	char *text;

	if (o->type != RS_OT_DURATION || strncmp(name, "OTEL_", 5) != 0 ||
	    !str_u64(str_c(value), &v))
		return value;
	text = rs_arena_alloc(&cfg->arena, n + 3);
	if (!text)
		return value;
	memcpy(text, value, n);
	memcpy(text + n, "ms", 3);
	return text;
}

/* Lists are filters: what the agent is told to trace is not what `status` is asked to show. */
bool rs_option_flag_only(const struct rs_config *cfg, enum rs_option_id id)
{
	return !rs_option_in_file(id) ||
	       (cfg->command == RS_CMD_status && rs_option_is_list(&rs_options[id]));
}

/* Is it a variable of ours? Else near is the name that it is likely to be meant for, or "". */
static bool known_variable(struct str name, char near[RS_OPTION_PATH])
{
	char own[RS_OPTION_PATH];
	struct rs_suggest s;

	near[0] = 0;
	rs_suggest_init(&s, str_from(name, strlen("RINGSPAN_")));
	s.distance = 3; /* two slips at most */
	for (int id = 0; id < RS_O_COUNT; id++) {
		unsigned before = s.distance;

		rs_option_variable((enum rs_option_id)id, own);
		if (str_eq(str_c(own), name))
			return true;
		rs_suggest_add(&s, own + strlen("RINGSPAN_"));
		if (s.distance < before)
			memcpy(near, own, RS_OPTION_PATH);
	}
	return false;
}

/* A name that is nearly one of ours is a slip; others are somebody else's, Kubernetes' for instance. */
static void warn_of_slips(struct rs_config *cfg)
{
	char near[RS_OPTION_PATH];
	struct str name;

	for (char **e = environ; *e; e++) {
		str_cut(str_c(*e), '=', &name);
		if (str_starts(name, STR("RINGSPAN_")) && !known_variable(name, near) && near[0])
			rs_config_warn(cfg, "%.*s: there is no such option; did you mean '%s'?",
				       STR_ARG(name), near);
	}
}

static int read_environment(struct rs_config *cfg)
{
	for (int id = 0; id < RS_O_COUNT; id++) {
		const struct rs_option *o = &rs_options[id];
		char names[512], own[RS_OPTION_PATH];
		struct str rest, one;

		/* A flag that was given is not asked again: its variable may be wrong. */
		if (!takes(o, cfg->command) || cfg->source[id] == RS_FROM_FLAG ||
		    (rs_option_flag_only(cfg, (enum rs_option_id)id) && id != RS_O_config))
			continue;
		snprintf(names, sizeof(names), "%s %s",
			 rs_option_variable((enum rs_option_id)id, own), o->env ? o->env : "");
		rest = str_c(names);
		while (rest.len) {
			enum rs_config_source from;
			char name[RS_OPTION_PATH];
			const char *value;
			int err;

			rest = str_cut(rest, ' ', &one);
			if (!one.len || one.len >= sizeof(name))
				continue;
			snprintf(name, sizeof(name), "%.*s", STR_ARG(one));
			value = getenv(name);
			if (!value || !*value)
				continue;
			/* Where there is a Service of our name, Kubernetes sets this one in its own way. */
			if (o->type == RS_OT_PORTS && !strncmp(value, "tcp://", 6))
				continue;
			value = with_unit(cfg, o, name, value);
			from = strncmp(name, "OTEL_", 5) ? RS_FROM_ENV : RS_FROM_OTEL;
			err = set_given(cfg, (enum rs_option_id)id, from, name, value);
			if (!err)
				break;
			if (from == RS_FROM_ENV)
				return err;
			/* They are set for many programs at once: what is wrong in them stops none. */
			rs_config_warn(cfg, "%s; the variable is ignored", cfg->err);
			cfg->err[0] = 0;
		}
	}
	warn_of_slips(cfg);
	return 0;
}

/* The file's text in the config's arena. A FIFO or device would stop a running agent that is told to reload. */
static int read_file(struct rs_config *cfg, const char *path, struct str *ret)
{
	int err = 0, fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	size_t n = 0;
	struct stat st;
	char *text;

	if (fd < 0 || fstat(fd, &st)) {
		err = -errno;
		rs_config_fail(cfg, path, "cannot open the config file: %s", strerror(-err));
		if (fd >= 0)
			close(fd);
		return err;
	}
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return rs_config_fail(cfg, path, "cannot read the config file: %s",
				      S_ISDIR(st.st_mode) ? strerror(EISDIR)
							  : "it is no regular file");
	}
	text = rs_arena_alloc(&cfg->arena, RS_CONFIG_FILE_MAX + 1);
	if (!text) {
		close(fd);
		rs_config_fail(cfg, path, "out of memory");
		return -ENOMEM;
	}
	while (n <= RS_CONFIG_FILE_MAX) {
		ssize_t got = read(fd, text + n, RS_CONFIG_FILE_MAX + 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			err = got ? -errno : 0;
			break;
		}
		n += (size_t)got;
	}
	close(fd);
	if (err) {
		rs_config_fail(cfg, path, "cannot read the config file: %s", strerror(-err));
		return err;
	}
	if (n > RS_CONFIG_FILE_MAX)
		return rs_config_fail(cfg, path, "larger than %d bytes, this is no config file",
				      RS_CONFIG_FILE_MAX);
	*ret = str_of(text, n);
	return 0;
}

int rs_config_load(struct rs_config *cfg, int argc, char **argv)
{
	struct str text;
	int err;

	cfg->argc = argc;
	cfg->argv = argv;
	/* Flags first: they say which file. What they set is not set again from weaker sources. */
	err = parse_flags(cfg, argc, argv);
	if (err || cfg->help)
		return err;
	err = read_environment(cfg);
	if (err)
		return err;
	if (!cfg->config || !takes(&rs_options[RS_O_config], cfg->command))
		return 0;
	err = read_file(cfg, cfg->config, &text);
	return err ? err : rs_config_file(cfg, text, cfg->config);
}
