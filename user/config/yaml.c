// SPDX-License-Identifier: Apache-2.0
/*
 * yaml — the config file: sections of options, as options.def orders them. At the top every option may also be
 * given by its long name. Anchors and aliases are refused; every message has line and column, from 1.
 */
#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "option.h"
#include "suggest.h"

#define DEPTH_MAX 8
#define TEXT_MAX  4096 /* bytes of a text that is put together of a list */

struct reader {
	struct rs_config *cfg;
	const char *file;
	struct str data;
	yaml_parser_t parser;
	yaml_event_t ev;
	bool have_ev;
	bool seen[RS_O_COUNT], seen_section[RS_SECTION_COUNT];
	char where[256];	 /* file:line:column[: key] of the present event */
	struct rs_config *trial; /* takes what is only to be looked at; NULL: not yet made */
};

static void set_where(struct reader *r, yaml_mark_t at, const char *key)
{
	snprintf(r->where, sizeof(r->where), "%s:%zu:%zu%s%s", r->file, at.line + 1, at.column + 1,
		 key ? ": " : "", key ? key : "");
}

/* Does a tab stand here, or before it in the line's indentation? The parser's own words do not say so. */
static bool at_tab(const struct reader *r, yaml_mark_t at)
{
	struct str rest = r->data, line = STR_NONE;

	for (size_t i = 0; i <= at.line; i++)
		rest = str_cut(rest, '\n', &line);
	for (size_t i = 0; i <= at.column && i < line.len; i++) {
		if (line.ptr[i] == '\t')
			return true;
		if (line.ptr[i] != ' ')
			break;
	}
	/* Columns are characters; beyond the first that is not ASCII this looks too far to the left. */
	return at.column < line.len && line.ptr[at.column] == '\t';
}

/* The event's anchor, or the one that it stands for. */
static const yaml_char_t *anchor(const yaml_event_t *ev)
{
	switch (ev->type) {
	case YAML_ALIAS_EVENT:
		return ev->data.alias.anchor;
	case YAML_SCALAR_EVENT:
		return ev->data.scalar.anchor;
	case YAML_SEQUENCE_START_EVENT:
		return ev->data.sequence_start.anchor;
	case YAML_MAPPING_START_EVENT:
		return ev->data.mapping_start.anchor;
	default:
		return NULL;
	}
}

static int next(struct reader *r)
{
	if (r->have_ev)
		yaml_event_delete(&r->ev);
	r->have_ev = false;
	if (yaml_parser_parse(&r->parser, &r->ev)) {
		r->have_ev = true;
		set_where(r, r->ev.start_mark, NULL);
		if (anchor(&r->ev))
			return rs_config_fail(r->cfg, r->where,
					      "anchors and aliases are not supported");
		return 0;
	}
	if (r->parser.error == YAML_READER_ERROR) {
		/* A reader error has an offset, no mark. */
		yaml_mark_t at = { 0 };

		for (size_t i = 0; i < r->parser.problem_offset && i < r->data.len; i++) {
			at.line += r->data.ptr[i] == '\n';
			at.column = r->data.ptr[i] == '\n' ? 0 : at.column + 1;
		}
		set_where(r, at, NULL);
	} else {
		set_where(r, r->parser.problem_mark, NULL);
		if (at_tab(r, r->parser.problem_mark))
			return rs_config_fail(r->cfg, r->where,
					      "there is a tab; YAML is indented with blanks");
	}
	return rs_config_fail(r->cfg, r->where, "%s",
			      r->parser.problem ? r->parser.problem : "not YAML");
}

static struct str text_of(const struct reader *r)
{
	return str_of((const char *)r->ev.data.scalar.value, r->ev.data.scalar.length);
}

/* The present scalar in the config's arena. */
static int plain(struct reader *r, const char *key, const char **ret)
{
	struct str text = text_of(r);
	char *own;

	set_where(r, r->ev.start_mark, key);
	if (memchr(text.ptr, 0, text.len))
		return rs_config_fail(r->cfg, r->where, "the value has a NUL character in it");
	own = rs_arena_alloc(&r->cfg->arena, text.len + 1);
	if (!own)
		return rs_config_fail(r->cfg, r->where, "out of memory");
	memcpy(own, text.ptr, text.len);
	own[text.len] = 0;
	*ret = own;
	return 0;
}

/* One file serves several commands, and what a flag or variable has set is stronger. Wrong is wrong all the same:
 * such values are set somewhere else. */
static int target(struct reader *r, enum rs_option_id id, struct rs_config **ret)
{
	bool taken = rs_options[id].commands & (1u << r->cfg->command);

	*ret = r->cfg;
	if (taken && r->cfg->source[id] <= RS_FROM_FILE && !rs_option_flag_only(r->cfg, id))
		return 0;
	if (!r->trial) {
		r->trial = rs_arena_alloc(&r->cfg->arena, sizeof(*r->trial));
		if (!r->trial)
			return rs_config_fail(r->cfg, r->where, "out of memory");
		rs_config_init(r->trial, r->cfg->command);
	}
	*ret = r->trial;
	return 0;
}

/* text: in the arena. */
static int set(struct reader *r, enum rs_option_id id, const char *text)
{
	struct rs_config *to;
	int err = target(r, id, &to);

	if (err)
		return err;
	err = rs_option_set(to, id, RS_FROM_FILE, r->where, text);
	if (err && to != r->cfg)
		memcpy(r->cfg->err, to->err, sizeof(r->cfg->err));
	return err;
}

static int scalar(struct reader *r, enum rs_option_id id, const char *key)
{
	const char *own;
	int err = plain(r, key, &own);

	return err ? err : set(r, id, own);
}

/* -- rules -- */

static int rule_value(struct reader *r, struct rs_config *to, struct rs_rule *rule,
		      enum rs_rule_key key, const char *label)
{
	const char *name = rs_rule_keys[key].name, *own;
	char text[1024], err[256];
	struct str value;
	int e = plain(r, name, &own);

	if (e)
		return e;
	value = str_c(own);
	if (label) {
		int n = snprintf(text, sizeof(text), "%s=%s", label, own);

		if (n < 0 || (size_t)n >= sizeof(text))
			return rs_config_fail(r->cfg, r->where, "too long");
		value = str_of(text, (size_t)n);
	}
	if (rs_rule_set(rule, &r->cfg->arena, key, value, err, sizeof(err)))
		return rs_config_fail(r->cfg, r->where, "%s", err);
	if (err[0])
		rs_config_warn(to, "%s: %s", r->where, err);
	return 0;
}

/* label: { app: shop } */
static int rule_labels(struct reader *r, struct rs_config *to, struct rs_rule *rule,
		       enum rs_rule_key key)
{
	const char *label;
	int err;

	while (!(err = next(r)) && r->ev.type == YAML_SCALAR_EVENT) {
		err = plain(r, rs_rule_keys[key].name, &label);
		if (!err)
			err = next(r);
		if (!err && r->ev.type != YAML_SCALAR_EVENT)
			err = rs_config_fail(r->cfg, r->where, "%s: a label has one value",
					     rs_rule_keys[key].name);
		if (!err)
			err = rule_value(r, to, rule, key, label);
		if (err)
			return err;
	}
	if (err || r->ev.type == YAML_MAPPING_END_EVENT)
		return err;
	return rs_config_fail(r->cfg, r->where, "labels are plain names");
}

static int rule_key(struct reader *r, struct rs_config *to, struct rs_rule *rule)
{
	struct str name = text_of(r);
	int id = rs_rule_find_key(name), err;
	const struct rs_rule_key_info *k = &rs_rule_keys[id < 0 ? 0 : id];
	bool several = rs_rule_is_condition(k->kind) || k->kind == RS_RKIND_PROTOS;
	struct rs_suggest s;

	if (id < 0) {
		rs_suggest_init(&s, name);
		for (int i = 0; i < RS_RK_COUNT; i++)
			rs_suggest_add(&s, rs_rule_keys[i].name);
		return rs_config_fail(r->cfg, r->where, "a rule has no key '%.*s'%s%s%s",
				      STR_ARG(name),
				      s.best ? "; did you mean '" : " (docs/config.md lists them)",
				      s.best ? s.best : "", s.best ? "'?" : "");
	}
	if (rule->given & 1u << id)
		return rs_config_fail(r->cfg, r->where, "'%s' is given twice", k->name);
	err = next(r);
	if (err)
		return err;
	if (r->ev.type == YAML_SCALAR_EVENT)
		return rule_value(r, to, rule, (enum rs_rule_key)id, NULL);
	if (r->ev.type == YAML_MAPPING_START_EVENT && k->kind == RS_RKIND_LABELS)
		return rule_labels(r, to, rule, (enum rs_rule_key)id);
	if (r->ev.type != YAML_SEQUENCE_START_EVENT || !several)
		return rs_config_fail(r->cfg, r->where, "%s takes %s (%s)", k->name,
				      several ? "a value or a list of values" : "one value",
				      k->arg);
	while (!(err = next(r)) && r->ev.type == YAML_SCALAR_EVENT) {
		err = rule_value(r, to, rule, (enum rs_rule_key)id, NULL);
		if (err)
			return err;
	}
	if (err || r->ev.type == YAML_SEQUENCE_END_EVENT)
		return err;
	return rs_config_fail(r->cfg, r->where, "%s is a list of plain values", k->name);
}

/* A mapping that is a rule: its start has been read. */
static int rule(struct reader *r, enum rs_option_id id)
{
	struct rs_config *to;
	struct rs_rule *rule;
	const char *wrong;
	char where[256], begin[256];
	int err = target(r, id, &to);

	if (err)
		return err;
	memcpy(begin, r->where, sizeof(begin));
	snprintf(where, sizeof(where), "%s:%zu", r->file, r->ev.start_mark.line + 1);
	rs_option_replace(to, id, RS_FROM_FILE);
	rule = rs_rules_add(id == RS_O_include ? &to->include : &to->exclude, &r->cfg->arena,
			    where);
	if (!rule)
		return rs_config_fail(r->cfg, r->where, "more than %d rules", RS_RULES_MAX);
	to->source[id] = RS_FROM_FILE;
	while (!(err = next(r)) && r->ev.type == YAML_SCALAR_EVENT) {
		err = rule_key(r, to, rule);
		if (err)
			return err;
	}
	if (err)
		return err;
	if (r->ev.type != YAML_MAPPING_END_EVENT)
		return rs_config_fail(r->cfg, r->where, "a rule's keys are plain names");
	wrong = rs_rule_wrong(rule, id == RS_O_exclude);
	return wrong ? rs_config_fail(r->cfg, begin, "the rule %s", wrong) : 0;
}

/* -- options and sections -- */

static int element(struct reader *r, enum rs_option_id id, const char *key)
{
	if (r->ev.type == YAML_SCALAR_EVENT)
		return scalar(r, id, key);
	return rule(r, id);
}

/* One more of a text with commas between. */
static bool append(char buf[TEXT_MAX], size_t *len, const char *text, bool escape)
{
	for (; *text; text++) {
		const char *as = escape && *text == ','	  ? "%2C"
				 : escape && *text == '%' ? "%25"
							  : NULL;
		size_t n = as ? 3 : 1;

		if (*len + n >= TEXT_MAX)
			return false;
		memcpy(buf + *len, as ? as : text, n);
		*len += n;
	}
	buf[*len] = 0;
	return true;
}

/* [a, b], or {a: b} of names and values, of an option whose text has commas between: its start has been read. */
static int joined(struct reader *r, enum rs_option_id id, const char *key)
{
	bool map = r->ev.type == YAML_MAPPING_START_EVENT;
	yaml_event_type_t end = map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
	char buf[TEXT_MAX] = "", *own;
	yaml_mark_t begin = r->ev.start_mark;
	const char *one;
	size_t len = 0;
	int err;

	while (!(err = next(r)) && r->ev.type == YAML_SCALAR_EVENT) {
		bool room = !len || append(buf, &len, ",", false);

		err = plain(r, key, &one);
		if (!err && (!*one || strpbrk(one, map ? ",=" : ",")))
			err = rs_config_fail(r->cfg, r->where, "'%s' cannot be in a list", one);
		room = room && !err && append(buf, &len, one, false);
		if (!err && map) {
			err = next(r);
			if (!err && r->ev.type != YAML_SCALAR_EVENT)
				err = rs_config_fail(r->cfg, r->where, "%s: a name has one value",
						     key);
			if (!err)
				err = plain(r, key, &one);
			room = room && !err && append(buf, &len, "=", false) &&
			       append(buf, &len, one, true);
		}
		if (!err && !room)
			err = rs_config_fail(r->cfg, r->where, "too long");
		if (err)
			return err;
	}
	if (err)
		return err;
	if (r->ev.type != end)
		return rs_config_fail(r->cfg, r->where, "%s is a list of plain values", key);
	set_where(r, begin, key);
	own = rs_arena_alloc(&r->cfg->arena, len + 1);
	if (!own)
		return rs_config_fail(r->cfg, r->where, "out of memory");
	memcpy(own, buf, len + 1);
	return set(r, id, own);
}

static bool is_element(const struct reader *r, const struct rs_option *o)
{
	return r->ev.type == YAML_SCALAR_EVENT ||
	       (r->ev.type == YAML_MAPPING_START_EVENT && o->type == RS_OT_RULES);
}

static int value(struct reader *r, enum rs_option_id id)
{
	const struct rs_option *o = &rs_options[id];
	const char *key = rs_option_key(id);
	bool list = rs_option_is_list(o), commas = o->type == RS_OT_STR && strstr(o->arg, ",…");
	int err = next(r);

	if (err)
		return err;
	if (is_element(r, o))
		return element(r, id, key);
	if (commas && (r->ev.type == YAML_SEQUENCE_START_EVENT ||
		       (r->ev.type == YAML_MAPPING_START_EVENT && !strcmp(o->arg, "K=V,…"))))
		return joined(r, id, key);
	if (r->ev.type != YAML_SEQUENCE_START_EVENT || !list)
		return rs_config_fail(r->cfg, r->where, "%s takes %s", key,
				      list || commas ? "a value or a list of values" : "one value");
	while (!(err = next(r)) && is_element(r, o)) {
		err = element(r, id, key);
		if (err)
			return err;
	}
	if (err || r->ev.type == YAML_SEQUENCE_END_EVENT)
		return err;
	return rs_config_fail(r->cfg, r->where, "%s is a list of %s", key,
			      o->type == RS_OT_RULES ? "rules" : "plain values");
}

/* The part of a section's path that is the next key below `above`; empty: it is not below it. */
static struct str below(const char *path, struct str above)
{
	struct str p = str_c(path), head;

	if (above.len) {
		if (!str_starts(p, above) || p.len <= above.len || p.ptr[above.len] != '.')
			return STR_NONE;
		p = str_from(p, above.len + 1);
	}
	str_cut(p, '.', &head);
	return head;
}

/* Nothing has this name, which the present event no longer holds. */
static int unknown(struct reader *r, struct str above, struct str name)
{
	char words[RS_SECTION_COUNT][RS_OPTION_PATH], path[RS_OPTION_PATH];
	struct rs_suggest s;

	for (int id = 0; id < RS_O_COUNT; id++) {
		if (rs_option_in_file((enum rs_option_id)id) &&
		    (str_eq(name, str_c(rs_options[id].name)) ||
		     str_eq(name, str_c(rs_option_key((enum rs_option_id)id)))))
			return rs_config_fail(
				r->cfg, r->where, "'%.*s' does not stand here; there is %s",
				STR_ARG(name), rs_option_path((enum rs_option_id)id, path));
	}
	rs_suggest_init(&s, name);
	for (int i = 0; i < RS_SECTION_COUNT; i++) {
		snprintf(words[i], sizeof(words[i]), "%.*s",
			 STR_ARG(below(rs_sections[i].path, above)));
		if (*words[i])
			rs_suggest_add(&s, words[i]);
	}
	for (int id = 0; id < RS_O_COUNT; id++) {
		const struct rs_section *in = rs_option_section((enum rs_option_id)id);

		if (rs_option_in_file((enum rs_option_id)id) && str_eq(str_c(in->path), above))
			rs_suggest_add(&s, rs_option_key((enum rs_option_id)id));
		if (rs_option_in_file((enum rs_option_id)id) && !above.len)
			rs_suggest_add(&s, rs_options[id].name);
	}
	if (s.best)
		return rs_config_fail(r->cfg, r->where, "unknown key '%.*s'; did you mean '%s'?",
				      STR_ARG(name), s.best);
	return rs_config_fail(r->cfg, r->where,
			      "unknown key '%.*s'; `ringspan config --sample` shows all there are",
			      STR_ARG(name));
}

static int mapping(struct reader *r, struct str above, int depth);

/* `path`: of the section whose key has been read. */
static int section(struct reader *r, struct str path, int depth)
{
	int err = next(r);

	if (err)
		return err;
	if (r->ev.type == YAML_MAPPING_START_EVENT && depth < DEPTH_MAX)
		return mapping(r, path, depth);
	/* Nothing, or comments only. */
	if (r->ev.type == YAML_SCALAR_EVENT && !r->ev.data.scalar.length)
		return 0;
	return rs_config_fail(r->cfg, r->where,
			      "%.*s is a section: expected `key: value` lines in it",
			      STR_ARG(path));
}

static int key(struct reader *r, struct str above, int depth)
{
	char path[RS_OPTION_PATH], where[sizeof(r->where)];
	struct str name = text_of(r);
	int err;

	for (int id = 0; id < RS_O_COUNT; id++) {
		const struct rs_section *in = rs_option_section((enum rs_option_id)id);
		bool here = str_eq(str_c(in->path), above) &&
			    str_eq(str_c(rs_option_key((enum rs_option_id)id)), name);

		if (!above.len && str_eq(str_c(rs_options[id].name), name))
			here = true;
		if (!here || !rs_option_in_file((enum rs_option_id)id))
			continue;
		if (r->seen[id])
			return rs_config_fail(r->cfg, r->where, "'%.*s' is given twice",
					      STR_ARG(name));
		r->seen[id] = true;
		return value(r, (enum rs_option_id)id);
	}
	for (int i = 0; i < RS_SECTION_COUNT; i++) {
		if (!name.len || !str_eq(below(rs_sections[i].path, above), name))
			continue;
		if (r->seen_section[i])
			return rs_config_fail(r->cfg, r->where, "'%.*s' is given twice",
					      STR_ARG(name));
		r->seen_section[i] = true;
		snprintf(path, sizeof(path), "%.*s%s%.*s", STR_ARG(above), above.len ? "." : "",
			 STR_ARG(name));
		return section(r, str_c(path), depth + 1);
	}
	/* A key of no meaning is the usual place for an anchor, and "<<" for an alias: then that is what is wrong. */
	snprintf(path, sizeof(path), "%.*s", STR_ARG(name));
	memcpy(where, r->where, sizeof(where));
	err = next(r);
	if (err)
		return err;
	memcpy(r->where, where, sizeof(where));
	return unknown(r, above, str_c(path));
}

/* A section's lines: its start has been read. */
static int mapping(struct reader *r, struct str above, int depth)
{
	int err;

	while (!(err = next(r)) && r->ev.type == YAML_SCALAR_EVENT) {
		err = key(r, above, depth);
		if (err)
			return err;
	}
	if (err || r->ev.type == YAML_MAPPING_END_EVENT)
		return err;
	return rs_config_fail(r->cfg, r->where, "keys are plain names");
}

static int document(struct reader *r)
{
	int err;

	do {
		err = next(r);
	} while (!err && (r->ev.type == YAML_STREAM_START_EVENT ||
			  r->ev.type == YAML_DOCUMENT_START_EVENT));
	/* An empty file, or one of comments only, is fine. */
	if (err || r->ev.type == YAML_STREAM_END_EVENT)
		return err;
	if (r->ev.type == YAML_SCALAR_EVENT && !r->ev.data.scalar.length)
		return 0;
	if (r->ev.type != YAML_MAPPING_START_EVENT)
		return rs_config_fail(r->cfg, r->where, "expected `key: value` lines");
	err = mapping(r, STR_NONE, 0);
	if (!err)
		err = next(r); /* end of the document */
	if (!err)
		err = next(r);
	if (!err && r->ev.type != YAML_STREAM_END_EVENT)
		return rs_config_fail(r->cfg, r->where, "more than one document");
	return err;
}

int rs_config_file(struct rs_config *cfg, struct str data, const char *name)
{
	struct reader r = { .cfg = cfg, .file = name, .data = data };
	int err;

	if (!yaml_parser_initialize(&r.parser)) {
		rs_config_fail(cfg, name, "out of memory");
		return -ENOMEM;
	}
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)data.ptr, data.len);
	err = document(&r);
	if (r.have_ev)
		yaml_event_delete(&r.ev);
	yaml_parser_delete(&r.parser);
	if (r.trial)
		rs_config_release(r.trial);
	return err;
}
