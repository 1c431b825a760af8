// SPDX-License-Identifier: Apache-2.0
#include "agent_dump.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "trace/build.h"

#define S 1000000000ull

/* -- one line -- */

static void set_str(json_t *o, const char *key, struct str value)
{
	char clean[2048];

	rs_utf8_clean(clean, sizeof(clean), value, 0);
	json_object_set_new(o, key, json_string(clean));
}

static void set_num(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key, json_integer((json_int_t)value));
}

static void set_endpoint(json_t *o, const char *key, const struct rs_conn_info *i,
			 const struct rs_endpoint *e)
{
	struct str addr = rs_conn_addr(i, e);
	char text[128];

	if (!addr.len)
		return;
	if (e->port)
		snprintf(text, sizeof(text),
			 str_find(addr, ':') < addr.len ? "[%.*s]:%u" : "%.*s:%u", STR_ARG(addr),
			 e->port);
	else
		snprintf(text, sizeof(text), "%.*s", STR_ARG(addr));
	set_str(o, key, str_c(text));
}

static json_t *begin(const struct rs_dump *d, const char *type, uint64_t ts_ns,
		     const struct rs_conn *c, uint64_t conn, uint32_t tid)
{
	json_t *o = json_object();

	set_num(o, "time_unix_nano", ts_ns + (uint64_t)d->pl->trace.wall_offset);
	json_object_set_new(o, "type", json_string(type));
	set_num(o, "conn", conn);
	if (tid)
		set_num(o, "tid", tid);
	if (c) {
		set_endpoint(o, "local", &c->info, &c->info.local);
		set_endpoint(o, "peer", &c->info, &c->info.peer);
	}
	return o;
}

static void say(struct rs_dump *d, json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0;

	json_decref(o);
	if (text)
		text[len] = '\n'; /* in place of the end: the length says where it is */
	if (!text || d->lines >= RS_DUMP_LINES || rs_control_say(d->client, text, len + 1))
		d->left_out++;
	else
		d->lines++;
	free(text);
}

static json_t *value(const struct rs_val *v)
{
	char clean[4096];
	json_t *list;

	switch ((enum rs_val_type)v->type) {
	case RS_VAL_STR:
		rs_utf8_clean(clean, sizeof(clean), str_of(v->str, v->len), 0);
		return json_string(clean);
	case RS_VAL_BOOL:
		return json_boolean(v->b);
	case RS_VAL_INT:
		return json_integer(v->i);
	case RS_VAL_DOUBLE:
		return json_real(v->d);
	case RS_VAL_ARRAY:
		list = json_array();
		for (uint32_t i = 0; i < v->len; i++)
			json_array_append_new(list, value(&v->arr[i]));
		return list;
	case RS_VAL_EMPTY:
	case RS_VAL_BYTES:
	case RS_VAL_MAP:
		break;
	}
	return json_null();
}

/* What the span will say of it: nothing that redaction takes out of spans is in it either. */
static void describe(struct rs_dump *d, json_t *o, const struct rs_open *open, bool answered)
{
	struct rs_exchange x = open->x;
	struct rs_span span = { 0 };
	struct rs_build b;
	json_t *attrs = json_object();

	if (!answered)
		x.has_response = x.request_done = false;
	if (!open->finished)
		x.resp_body = RS_BODY_UNKNOWN;
	rs_arena_reset(&d->arena);
	rs_build_init(&b, &span, &d->arena);
	b.redact = &d->pl->trace.redact;
	x.ops->describe(&x, &b);
	rs_build_redact(&b);
	for (uint32_t i = 0; i < b.n; i++) {
		/* How it ends is not known before the end. */
		if (!open->finished && b.attrs[i].key == rs_key(RS_K_ERROR_TYPE))
			continue;
		json_object_setn_new(attrs, b.attrs[i].key->name.ptr, b.attrs[i].key->name.len,
				     value(&b.attrs[i].val));
	}
	set_str(o, "name", span.name);
	json_object_set_new(o, "attributes", attrs);
}

static const char *dir_name(uint8_t dir)
{
	return dir == RS_DIR_IN ? "in" : "out";
}

static void set_flags(json_t *o, uint8_t flags)
{
	static const struct {
		uint8_t flag;
		const char *name;
	} known[] = {
		{ RS_MSGF_CUT, "cut" },	      { RS_MSGF_ABORTED, "aborted" },
		{ RS_MSGF_TUNNEL, "tunnel" }, { RS_MSGF_RESYNC, "resync" },
		{ RS_MSGF_SWITCH, "switch" }, { RS_MSGF_RESET, "reset" },
		{ RS_MSGF_PUSHED, "pushed" },
	};
	json_t *list = json_array();

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (flags & known[i].flag)
			json_array_append_new(list, json_string(known[i].name));
	}
	json_object_set_new(o, "flags", list);
}

static void on_message(void *arg, const struct rs_conn *c, const struct rs_open *open,
		       const struct rs_msg *m)
{
	static const char *const types[] = {
		[RS_MSG_REQUEST] = "request",		[RS_MSG_REQUEST_END] = "request_end",
		[RS_MSG_INTERIM] = "interim",		[RS_MSG_RESPONSE] = "response",
		[RS_MSG_RESPONSE_END] = "response_end", [RS_MSG_PART] = "part",
	};
	bool end = m->type == RS_MSG_REQUEST_END || m->type == RS_MSG_RESPONSE_END;
	struct rs_dump *d = arg;
	json_t *o = begin(d, types[m->type], m->end_ns, c, c->info.id, m->tid);

	json_object_set_new(o, "dir", json_string(dir_name(m->dir)));
	if (rs_l7_proto(&c->l7))
		json_object_set_new(o, "protocol", json_string(rs_l7_proto(&c->l7)->name));
	set_flags(o, m->flags);
	if ((end || m->type == RS_MSG_PART) && m->body_size != RS_BODY_UNKNOWN)
		set_num(o, "body_size", m->body_size);
	if (open && open->has_request) {
		json_object_set_new(
			o, "role",
			json_string(open->x.role == RS_ROLE_SERVER ? "server" : "client"));
		describe(d, o, open, m->type == RS_MSG_RESPONSE || m->type == RS_MSG_RESPONSE_END);
	}
	say(d, o);
}

/* What is known of the stream's content. */
static const char *phase(const struct rs_conn *c)
{
	if (!c)
		return "";
	if (rs_l7_proto(&c->l7))
		return rs_l7_proto(&c->l7)->name;
	return c->l7.phase == RS_L7_DETECT ? "undecided" : "unknown";
}

static void on_record(void *arg, const struct rs_conn *c, const struct rs_ev_hdr *ev)
{
	const struct rs_ev_data *data = (const void *)ev;
	const struct rs_ev_open *open = (const void *)ev;
	const struct rs_ev_close *gone = (const void *)ev;
	struct rs_dump *d = arg;
	json_t *o;

	switch (ev->type) {
	case RS_EV_OPEN:
		o = begin(d, "open", ev->ts_ns, c, open->conn, open->tid);
		json_object_set_new(o, "present", json_boolean(ev->flags & RS_EVF_PRESENT));
		break;
	case RS_EV_DATA:
		o = begin(d, "data", ev->ts_ns, c, data->conn, data->tid);
		json_object_set_new(o, "dir", json_string(dir_name(data->dir)));
		json_object_set_new(o, "source",
				    json_string(data->source == RS_SRC_SOCKET ? "socket" : "tls"));
		json_object_set_new(o, "protocol", json_string(phase(c)));
		set_num(o, "offset", data->off);
		set_num(o, "bytes", data->len);
		set_num(o, "captured", data->cap);
		break;
	case RS_EV_CLOSE:
		o = begin(d, "close", ev->ts_ns, c, gone->conn, 0);
		if (gone->how != RS_CLOSE_ALL) /* of one direction */
			json_object_set_new(
				o, "dir",
				json_string(dir_name(gone->how == RS_CLOSE_IN ? RS_DIR_IN
									      : RS_DIR_OUT)));
		break;
	default:
		return;
	}
	say(d, o);
}

/* -- its life -- */

static void finish(struct rs_dump *d)
{
	d->pl->watch = (struct rs_pl_watch){ 0 };
	rs_loop_timer_stop(d->loop, &d->end);
	rs_arena_release(&d->arena);
	d->client = NULL;
}

static void on_end(void *arg)
{
	struct rs_dump *d = arg;
	struct rs_control_client *cl = d->client;
	char last[128];
	int n = snprintf(last, sizeof(last),
			 "{\"type\":\"end\",\"lines\":%llu,\"left_out\":%llu}\n",
			 (unsigned long long)d->lines, (unsigned long long)d->left_out);

	/* When the client has read nothing, it does not hear this either. */
	(void)rs_control_say(cl, last, (size_t)n);
	finish(d);
	rs_control_end(cl);
}

static int refuse(struct rs_control_client *cl, const char *why)
{
	(void)rs_control_say(cl, why, strlen(why));
	rs_control_end(cl);
	return 0;
}

int rs_dump_request(struct rs_dump *d, struct rs_pipeline *pl, struct rs_loop *loop,
		    struct rs_control_client *cl, struct str line)
{
	static const char begun[] = "{\"type\":\"begin\"}\n";
	struct str word, pid, rest = str_cut(line, ' ', &word);
	uint64_t tgid, seconds;

	if (!str_eq(word, STR("dump")))
		return -ENOENT;
	rest = str_cut(rest, ' ', &pid);
	if (!str_u64(pid, &tgid) || !tgid || tgid > UINT32_MAX || !str_u64(rest, &seconds) ||
	    !seconds || seconds > RS_DUMP_SECONDS)
		return refuse(cl, "{\"error\":\"dump PID SECONDS: 1 to 300 seconds\"}\n");
	if (d->client)
		return refuse(
			cl,
			"{\"error\":\"another dump is running; try again when it has ended\"}\n");
	d->end.w.fd = -1;
	if (rs_loop_timer_start(loop, &d->end, seconds * S, 0, on_end, d))
		return refuse(cl, "{\"error\":\"out of memory\"}\n");
	d->pl = pl;
	d->loop = loop;
	d->client = cl;
	d->lines = d->left_out = 0;
	rs_arena_init(&d->arena, 64 * 1024, 1 << 20);
	pl->watch = (struct rs_pl_watch){
		.tgid = (uint32_t)tgid, .message = on_message, .record = on_record, .arg = d
	};
	(void)rs_control_say(cl, begun, sizeof(begun) - 1); /* nothing waits yet: there is room */
	return 0;
}

void rs_dump_gone(struct rs_dump *d, const struct rs_control_client *cl)
{
	if (d->client == cl)
		finish(d);
}

void rs_dump_release(struct rs_dump *d)
{
	if (d->client)
		finish(d);
}
