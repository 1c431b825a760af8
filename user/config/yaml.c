// SPDX-License-Identifier: Apache-2.0
/*
 * yaml — the config file: one mapping from option names to a value or a list of values. Anchors and
 * nested mappings are refused; every message has line and column, from 1.
 */
#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "option.h"
#include "suggest.h"

struct reader {
	struct rs_config *cfg;
	const char *file;
	yaml_parser_t parser;
	yaml_event_t ev;
	bool have_ev;
	char where[256]; /* file:line:column[: key] of the present event */
};

static void set_where(struct reader *r, yaml_mark_t at, const char *key)
{
	snprintf(r->where, sizeof(r->where), "%s:%zu:%zu%s%s", r->file, at.line + 1, at.column + 1,
		 key ? ": " : "", key ? key : "");
}

static int next(struct reader *r)
{
	if (r->have_ev)
		yaml_event_delete(&r->ev);
	r->have_ev = false;
	if (yaml_parser_parse(&r->parser, &r->ev)) {
		r->have_ev = true;
		set_where(r, r->ev.start_mark, NULL);
		return 0;
	}
	if (r->parser.error == YAML_READER_ERROR) {
		/* A reader error has an offset, no mark. */
		snprintf(r->where, sizeof(r->where), "%s: byte %zu", r->file,
			 r->parser.problem_offset);
	} else {
		set_where(r, r->parser.problem_mark, NULL);
	}
	return rs_config_fail(r->cfg, r->where, "%s",
			      r->parser.problem ? r->parser.problem : "not YAML");
}

static int scalar(struct reader *r, enum rs_option_id id, const char *key)
{
	struct str text = str_of((const char *)r->ev.data.scalar.value, r->ev.data.scalar.length);
	bool taken = rs_options[id].commands & (1u << r->cfg->command);
	char *own;

	set_where(r, r->ev.start_mark, key);
	if (r->ev.data.scalar.anchor)
		return rs_config_fail(r->cfg, r->where, "anchors are not supported");
	if (memchr(text.ptr, 0, text.len))
		return rs_config_fail(r->cfg, r->where, "the value has a NUL character in it");
	/* One file serves several commands; what a flag or variable has set is stronger. */
	if (!taken || r->cfg->source[id] > RS_FROM_FILE)
		return 0;
	own = rs_arena_alloc(&r->cfg->arena, text.len + 1);
	if (!own)
		return rs_config_fail(r->cfg, r->where, "out of memory");
	memcpy(own, text.ptr, text.len);
	own[text.len] = 0;
	return rs_option_set(r->cfg, id, RS_FROM_FILE, r->where, own);
}

static int value(struct reader *r, enum rs_option_id id)
{
	const struct rs_option *o = &rs_options[id];
	bool list = o->type == RS_OT_PIDS || o->type == RS_OT_PORTS || o->type == RS_OT_COMMS ||
		    o->type == RS_OT_RULES;
	int err = next(r);

	if (err)
		return err;
	if (r->ev.type == YAML_SCALAR_EVENT)
		return scalar(r, id, o->name);
	if (r->ev.type != YAML_SEQUENCE_START_EVENT || !list)
		return rs_config_fail(r->cfg, r->where, "%s takes %s", o->name,
				      list ? "a value or a list of values" : "one value");
	while (!(err = next(r)) && r->ev.type == YAML_SCALAR_EVENT) {
		err = scalar(r, id, o->name);
		if (err)
			return err;
	}
	if (err || r->ev.type == YAML_SEQUENCE_END_EVENT)
		return err;
	return rs_config_fail(r->cfg, r->where, "%s is a list of plain values", o->name);
}

static int key(struct reader *r, bool *seen)
{
	struct str name = str_of((const char *)r->ev.data.scalar.value, r->ev.data.scalar.length);
	struct rs_suggest s;

	rs_suggest_init(&s, name);
	for (int id = 0; id < RS_O_COUNT; id++) {
		if (id == RS_O_help || id == RS_O_config)
			continue;
		rs_suggest_add(&s, rs_options[id].name);
		if (!str_eq(str_c(rs_options[id].name), name))
			continue;
		if (seen[id])
			return rs_config_fail(r->cfg, r->where, "'%s' is given twice",
					      rs_options[id].name);
		seen[id] = true;
		return value(r, (enum rs_option_id)id);
	}
	if (s.best)
		return rs_config_fail(r->cfg, r->where, "unknown key '%.*s'; did you mean '%s'?",
				      STR_ARG(name), s.best);
	return rs_config_fail(
		r->cfg, r->where,
		"unknown key '%.*s'; keys are the long options of `ringspan run --help`",
		STR_ARG(name));
}

static int document(struct reader *r)
{
	bool seen[RS_O_COUNT] = { false };
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
	while (!(err = next(r)) && r->ev.type == YAML_SCALAR_EVENT) {
		err = key(r, seen);
		if (err)
			return err;
	}
	if (err)
		return err;
	if (r->ev.type != YAML_MAPPING_END_EVENT)
		return rs_config_fail(r->cfg, r->where, "keys are plain names");
	err = next(r); /* end of the document */
	if (!err)
		err = next(r);
	if (!err && r->ev.type != YAML_STREAM_END_EVENT)
		return rs_config_fail(r->cfg, r->where, "more than one document");
	return err;
}

int rs_config_file(struct rs_config *cfg, struct str data, const char *name)
{
	struct reader r = { .cfg = cfg, .file = name };
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
	return err;
}
