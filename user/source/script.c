// SPDX-License-Identifier: Apache-2.0
#include "script.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "base/json.h"
#include "base/map.h"

#define SCRIPT_CONNS 65536

/* Running offsets of a connection, for data without "off" and "seq". */
struct totals {
	uint64_t off[2][2]; /* by source and direction: plain text is a stream of its own */
	uint32_t seq[2];
};

struct script {
	unsigned long line;
	struct rs_map conns;   /* conn -> struct totals */
	struct rs_arena arena; /* of one line */
	rs_record_fn fn;
	void *arg;
	char *err;
	size_t err_len;
};

static int bad(struct script *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int bad(struct script *s, const char *fmt, ...)
{
	va_list ap;
	int n = snprintf(s->err, s->err_len, "line %lu: ", s->line);

	va_start(ap, fmt);
	if (n > 0 && (size_t)n < s->err_len)
		vsnprintf(s->err + n, s->err_len - (size_t)n, fmt, ap);
	va_end(ap);
	return -EBADMSG;
}

/* A line's members, as far as they are known. Absent: UINT64_MAX, STR_NONE, false. */
struct line {
	uint64_t t, conn, pid, tid, off, len, seq, value, signal, code, ppid, goid, parent, stream,
		peer_conn, netns, slept;
	struct str type, comm, role, family, l4, local, peer, dir, source, how, fact, event, text,
		hex, kind, context;
	bool present;
};

#define ABSENT UINT64_MAX

enum member_kind {
	M_UINT,
	M_STR,
	M_BOOL,
};

static const struct member {
	struct str name;
	enum member_kind kind;
	size_t off;
	uint64_t max; /* M_UINT */
} members[] = {
#define UINT(n, m)                                                                                 \
	{                                                                                          \
		{ #n, sizeof(#n) - 1 }, M_UINT, offsetof(struct line, n), m                        \
	}
#define TEXT(n)                                                                                    \
	{                                                                                          \
		{ #n, sizeof(#n) - 1 }, M_STR, offsetof(struct line, n), 0                         \
	}
	UINT(t, INT64_MAX),
	UINT(conn, INT64_MAX),
	UINT(pid, UINT32_MAX),
	UINT(tid, UINT32_MAX),
	UINT(off, INT64_MAX),
	UINT(len, INT32_MAX),
	UINT(seq, UINT32_MAX),
	UINT(value, UINT32_MAX),
	UINT(signal, 255),
	UINT(code, UINT32_MAX),
	UINT(ppid, UINT32_MAX),
	UINT(goid, INT64_MAX),
	UINT(parent, INT64_MAX),
	UINT(stream, UINT32_MAX),
	UINT(peer_conn, INT64_MAX),
	UINT(netns, UINT32_MAX),
	UINT(slept, UINT8_MAX),
	TEXT(type),
	TEXT(comm),
	TEXT(role),
	TEXT(family),
	TEXT(l4),
	TEXT(local),
	TEXT(peer),
	TEXT(dir),
	TEXT(source),
	TEXT(how),
	TEXT(fact),
	TEXT(event),
	TEXT(text),
	TEXT(hex),
	TEXT(kind),
	TEXT(context),
	{ { "present", 7 }, M_BOOL, offsetof(struct line, present), 0 },
#undef UINT
#undef TEXT
};

static int read_member(struct script *s, struct rs_json *j, const struct member *m, struct line *l)
{
	void *to = (char *)l + m->off;

	switch (m->kind) {
	case M_STR:
		rs_json_str(j, to);
		return 0;
	case M_BOOL:
		rs_json_bool(j, to);
		return 0;
	case M_UINT:
		if (rs_json_peek(j) != RS_JSON_NUMBER || !rs_json_u64(j, to) ||
		    *(uint64_t *)to > m->max)
			return bad(s, "\"%.*s\": an integer from 0 to %" PRIu64 " is expected",
				   STR_ARG(m->name), m->max);
	}
	return 0;
}

static int read_line(struct script *s, struct str text, struct line *l)
{
	struct rs_json j;
	size_t row, col;
	struct str key;
	int rc = 0;

	memset(l, 0, sizeof(*l));
	l->t = l->conn = l->pid = l->tid = l->off = l->len = l->seq = ABSENT;
	l->value = l->signal = l->code = l->ppid = l->goid = l->parent = l->stream = ABSENT;
	l->peer_conn = l->netns = l->slept = ABSENT;
	rs_arena_reset(&s->arena);
	rs_json_init(&j, text, &s->arena);
	rs_json_object(&j);
	while (!rc && rs_json_key(&j, &key)) {
		const struct member *m = NULL;

		for (size_t i = 0; i < sizeof(members) / sizeof(members[0]) && !m; i++)
			m = str_eq(members[i].name, key) ? &members[i] : NULL;
		if (m)
			rc = read_member(s, &j, m, l);
		else
			rs_json_skip(&j);
	}
	if (!rc && !j.err && rs_json_more(&j))
		return bad(s, "one object is expected, more follows");
	if (!rc && j.err) {
		rs_json_where(&j, &row, &col);
		return bad(s, "column %zu: %s", col, j.err);
	}
	return rc;
}

/* An optional or required word of a list; *ret is its position. */
static int get_word(struct script *s, const char *key, struct str w, const char *const *words,
		    bool required, unsigned *ret)
{
	char all[256] = "";
	size_t n = 0;

	if (!w.ptr)
		return required ? bad(s, "no \"%s\"", key) : 0;
	for (unsigned i = 0; words[i]; i++) {
		if (str_eq(w, str_c(words[i]))) {
			*ret = i;
			return 0;
		}
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", words[i]);
	}
	return bad(s, "\"%s\": one of %s is expected", key, all);
}

/* What stands there, or else. */
static uint64_t or_else(uint64_t v, uint64_t other)
{
	return v == ABSENT ? other : v;
}

static void header(struct rs_ev_hdr *h, enum rs_ev_type type, size_t len, uint64_t t)
{
	*h = (struct rs_ev_hdr){ .type = (uint16_t)type, .len = (uint32_t)len, .ts_ns = t };
}

static int emit(struct script *s, const void *ev)
{
	return s->fn(s->arg, ev) ? -ECANCELED : 0;
}

static void copy_comm(char to[RS_COMM_LEN], struct str comm)
{
	comm = str_at(comm, 0, RS_COMM_LEN - 1);
	if (comm.len)
		memcpy(to, comm.ptr, comm.len);
}

/* "1.2.3.4:80" or "[::1]:80". */
static int get_addr(struct script *s, const char *key, struct str text, unsigned family,
		    __u8 addr[16], __u16 *port)
{
	struct str host = text;
	char buf[64] = "";
	uint64_t p;

	if (!text.ptr)
		return 0;
	while (host.len && host.ptr[host.len - 1] != ':')
		host.len--;
	if (!host.len || !str_u64(str_from(text, host.len), &p) || p > 65535)
		return bad(
			s,
			"\"%s\": an address and port are expected, such as 10.0.0.1:80 or [::1]:80",
			key);
	host.len--;
	if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
		host = str_at(host, 1, host.len - 2);
	if (host.len < sizeof(buf))
		memcpy(buf, host.ptr, host.len);
	*port = (__u16)p;
	if (inet_pton(family == RS_FAMILY_INET6 ? AF_INET6 : AF_INET, buf, addr) != 1)
		return bad(s, "\"%s\": '%.*s' is not an address of its family", key, STR_ARG(host));
	return 0;
}

static struct totals *totals_of(struct script *s, uint64_t conn)
{
	struct totals *t = rs_map_get(&s->conns, conn);

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t || rs_map_put(&s->conns, conn, t)) {
		free(t);
		return NULL;
	}
	return t;
}

static int on_open(struct script *s, const struct line *l)
{
	static const char *const roles[] = { "unknown", "client", "server", NULL };
	static const char *const families[] = { "unknown", "inet", "inet6", "unix", NULL };
	static const char *const l4s[] = { "unknown", "tcp", "udp", NULL };
	unsigned role = 0, family = RS_FAMILY_INET, l4 = RS_L4_TCP;
	struct rs_ev_open ev = { .conn = l->conn };
	int rc;

	if ((rc = get_word(s, "role", l->role, roles, false, &role)) ||
	    (rc = get_word(s, "family", l->family, families, false, &family)) ||
	    (rc = get_word(s, "l4", l->l4, l4s, false, &l4)))
		return rc;
	header(&ev.h, RS_EV_OPEN, sizeof(ev), l->t);
	if (l->present)
		ev.h.flags |= RS_EVF_PRESENT;
	ev.tgid = (uint32_t)or_else(l->pid, 0);
	ev.tid = (uint32_t)or_else(l->tid, ev.tgid);
	ev.role = (uint8_t)role;
	ev.family = (uint8_t)family;
	ev.l4 = family == RS_FAMILY_UNIX ? RS_L4_UNKNOWN : (uint8_t)l4;
	copy_comm(ev.comm, l->comm);
	ev.peer_conn = or_else(l->peer_conn, 0);
	ev.netns = (uint32_t)or_else(l->netns, 0);
	if (family == RS_FAMILY_UNIX) {
		struct str path = str_at(l->local.len ? l->local : l->peer, 0, sizeof(ev.path));

		if (path.len)
			memcpy(ev.path, path.ptr, path.len);
	} else if ((rc = get_addr(s, "local", l->local, family, ev.laddr, &ev.lport)) ||
		   (rc = get_addr(s, "peer", l->peer, family, ev.raddr, &ev.rport))) {
		return rc;
	}
	return emit(s, &ev);
}

/* The bytes of "text" or "hex"; none without either. */
static int get_bytes(struct script *s, const struct line *l, struct str *ret)
{
	char *p;

	*ret = l->text;
	if (!l->hex.ptr)
		return 0;
	if (l->text.ptr)
		return bad(s, "\"text\" or \"hex\" is expected, not both");
	if (l->hex.len % 2)
		return bad(s, "\"hex\": an odd number of digits");
	p = rs_arena_alloc(&s->arena, l->hex.len / 2);
	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < l->hex.len; i += 2) {
		int byte = rs_hex_byte(l->hex.ptr + i);

		if (byte < 0)
			return bad(s, "\"hex\": digit %zu is not one",
				   i + (rs_hex_digit(l->hex.ptr[i]) < 0 ? 1 : 2));
		p[i / 2] = (char)byte;
	}
	*ret = str_of(p, l->hex.len / 2);
	return 0;
}

/* A long text becomes several records, as the kernel side would make them. */
static int emit_data(struct script *s, struct rs_ev_data *d, struct str bytes, uint64_t len)
{
	size_t done = 0, n = bytes.len;

	do {
		size_t cap = n - done < RS_CAP_MAX ? n - done : RS_CAP_MAX;
		int rc;

		if (cap)
			memcpy(d->data, bytes.ptr + done, cap);
		d->cap = (uint32_t)cap;
		/* The last record carries what was not captured. */
		d->len = (uint32_t)(done + cap < n ? cap : len - done);
		d->h.len = (uint32_t)(sizeof(*d) + cap);
		rc = emit(s, d);
		if (rc)
			return rc;
		d->off += d->len;
		d->seq += d->seq ? d->len : 0;
		done += cap;
	} while (done < n);
	return 0;
}

static int on_data(struct script *s, const struct line *l)
{
	static const char *const dirs[] = { "in", "out", NULL };
	static const char *const sources[] = { "socket", "tls", NULL };
	_Alignas(8) char buf[sizeof(struct rs_ev_data) + RS_CAP_MAX] = { 0 };
	struct rs_ev_data *d = (void *)buf;
	struct totals *tot = totals_of(s, l->conn);
	unsigned dir = 0, source = 0;
	struct str bytes;
	uint64_t len;
	int rc;

	if (!tot)
		return -ENOMEM;
	if ((rc = get_word(s, "dir", l->dir, dirs, true, &dir)) ||
	    (rc = get_word(s, "source", l->source, sources, false, &source)) ||
	    (rc = get_bytes(s, l, &bytes)))
		return rc;
	len = or_else(l->len, bytes.len);
	if (len < bytes.len)
		return bad(s, "\"len\": less than the %zu bytes given", bytes.len);
	if (len == 0)
		return bad(s, "no bytes: \"text\", \"hex\" or \"len\" is expected");
	header(&d->h, RS_EV_DATA, sizeof(*d), l->t);
	d->h.flags = bytes.len ? 0 : RS_EVF_NODATA;
	d->conn = l->conn;
	d->off = or_else(l->off, tot->off[source][dir]);
	d->tgid = (uint32_t)or_else(l->pid, 0);
	d->tid = (uint32_t)or_else(l->tid, d->tgid);
	d->task = or_else(l->goid, 0);
	d->slept = (uint8_t)or_else(l->slept, 0);
	d->seq = (uint32_t)or_else(l->seq, source == RS_SRC_SOCKET ? tot->seq[dir] : 0);
	d->dir = (uint8_t)dir;
	d->source = (uint8_t)source;
	tot->off[source][dir] = d->off + len;
	if (source == RS_SRC_SOCKET) /* the numbers are the socket's bytes' */
		tot->seq[dir] = d->seq ? (uint32_t)(d->seq + len) : 0;
	return emit_data(s, d, bytes, len);
}

static int on_close(struct script *s, const struct line *l)
{
	static const char *const hows[] = { "all", "in", "out", NULL };
	struct rs_ev_close ev = { .conn = l->conn };
	unsigned how = RS_CLOSE_ALL;
	int rc = get_word(s, "how", l->how, hows, false, &how);

	if (rc)
		return rc;
	header(&ev.h, RS_EV_CLOSE, sizeof(ev), l->t);
	ev.how = how;
	ev.tgid = (uint32_t)or_else(l->pid, 0);
	return emit(s, &ev);
}

static int on_fact(struct script *s, const struct line *l)
{
	static const char *const facts[] = { "retransmit", "reset_in",	  "reset_out",
					     "connect",	   "connected",	  "rto",
					     "run_queue",  "zero_window", NULL };
	struct rs_ev_fact ev = { .conn = l->conn };
	unsigned fact = 0;
	int rc = get_word(s, "fact", l->fact, facts, true, &fact);

	if (rc)
		return rc;
	header(&ev.h, RS_EV_FACT, sizeof(ev), l->t);
	ev.fact = fact + RS_FACT_RETRANSMIT;
	ev.value = (uint32_t)or_else(l->value, 0);
	ev.task = or_else(l->goid, 0);
	ev.tgid = (uint32_t)or_else(l->pid, 0);
	ev.slept = (uint8_t)or_else(l->slept, 0);
	return emit(s, &ev);
}

static int on_task(struct script *s, const struct line *l)
{
	static const char *const events[] = { "spawn", "calls", "serves", NULL };
	struct rs_ev_task ev = { 0 };
	unsigned event = 0;
	int rc = get_word(s, "event", l->event, events, true, &event);

	if (rc)
		return rc;
	if (l->pid == ABSENT || l->goid == ABSENT)
		return bad(s, "no \"%s\"", l->pid == ABSENT ? "pid" : "goid");
	header(&ev.h, RS_EV_TASK, sizeof(ev), l->t);
	ev.tgid = (uint32_t)l->pid;
	ev.kind = event + RS_TASK_SPAWN;
	ev.task = l->goid;
	ev.parent = or_else(l->parent, 0);
	ev.conn = or_else(l->conn, 0);
	ev.stream = (uint32_t)or_else(l->stream, 0);
	return emit(s, &ev);
}

static int on_proc(struct script *s, const struct line *l)
{
	static const char *const events[] = { "exec", "exit", "signal", "oom", "fork", NULL };
	struct rs_ev_proc ev = { 0 };
	unsigned event = 0;
	int rc = get_word(s, "event", l->event, events, true, &event);

	if (rc)
		return rc;
	if (l->pid == ABSENT)
		return bad(s, "no \"pid\"");
	header(&ev.h, RS_EV_PROC, sizeof(ev), l->t);
	ev.tgid = ev.tid = (uint32_t)l->pid;
	ev.event = event + RS_PROC_EXEC;
	ev.signal = (uint32_t)or_else(l->signal, 0);
	ev.code = (uint32_t)or_else(l->code, 0);
	ev.ppid = (uint32_t)or_else(l->ppid, 0);
	copy_comm(ev.comm, l->comm);
	return emit(s, &ev);
}

/* "context" is {trace id}-{span id}-{flags}, as the last three parts of a traceparent. */
static int on_context(struct script *s, const struct line *l)
{
	static const char *const kinds[] = { "sdk", "sent", "received", NULL };
	struct rs_ev_context ev = { .conn = l->conn };
	struct str hex = l->context;
	unsigned kind = 0;
	int rc = get_word(s, "kind", l->kind, kinds, true, &kind);

	if (rc)
		return rc;
	header(&ev.h, RS_EV_CONTEXT, sizeof(ev), l->t);
	ev.kind = (uint8_t)kind;
	ev.off = or_else(l->off, 0);
	ev.len = (uint32_t)or_else(l->len, INT32_MAX);
	ev.tid = (uint32_t)or_else(l->tid, or_else(l->pid, 0));
	if (hex.len != 52 || hex.ptr[32] != '-' || hex.ptr[49] != '-')
		return bad(s, "\"context\": 32 digits, 16 and 2 are expected, with - between");
	for (unsigned i = 0; i < 25; i++) {
		size_t at = i < 16 ? 2 * i : i < 24 ? 33 + 2 * (i - 16) : 50;
		int byte = rs_hex_byte(hex.ptr + at);
		uint8_t *to = i < 16 ? &ev.trace_id[i] : i < 24 ? &ev.span_id[i - 16] : &ev.flags;

		if (byte < 0)
			return bad(s, "\"context\": a character that is no digit");
		*to = (uint8_t)byte;
	}
	return emit(s, &ev);
}

/* A name server's answer, as "text" or "hex". */
static int on_names(struct script *s, const struct line *l)
{
	union {
		struct rs_ev_data d;
		char room[sizeof(struct rs_ev_data) + RS_CAP_MAX];
	} u = { 0 };
	struct str bytes;
	int rc = get_bytes(s, l, &bytes);

	if (rc)
		return rc;
	if (bytes.len > RS_CAP_MAX)
		return bad(s, "more than %d bytes", RS_CAP_MAX);
	header(&u.d.h, RS_EV_NAMES, (uint32_t)(sizeof(u.d) + bytes.len), l->t);
	u.d.conn = or_else(l->netns, 0);
	u.d.tgid = (uint32_t)or_else(l->pid, 0);
	u.d.tid = (uint32_t)or_else(l->tid, u.d.tgid);
	u.d.len = u.d.cap = (uint32_t)bytes.len;
	if (bytes.len)
		memcpy(u.d.data, bytes.ptr, bytes.len);
	return emit(s, &u.d);
}

static int on_line(struct script *s, struct str text)
{
	static const char *const types[] = { "open", "data",	"close", "fact", "proc",
					     "task", "context", "names", NULL };
	static int (*const fn[])(struct script *,
				 const struct line *) = { on_open, on_data, on_close,	on_fact,
							  on_proc, on_task, on_context, on_names };
	unsigned type = 0;
	struct line l;
	int rc = read_line(s, text, &l);

	if (!rc && l.t == ABSENT)
		rc = bad(s, "no \"t\"");
	if (!rc)
		rc = get_word(s, "type", l.type, types, true, &type);
	if (!rc && l.conn == ABSENT && fn[type] != on_proc && fn[type] != on_task &&
	    fn[type] != on_names)
		rc = bad(s, "no \"conn\"");
	return rc ? rc : fn[type](s, &l);
}

int rs_script_read(FILE *f, rs_record_fn fn, void *arg, char *err, size_t err_len)
{
	struct script s = { .fn = fn, .arg = arg, .err = err, .err_len = err_len };
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	uint32_t pos = 0;
	struct totals *t;
	int rc = 0;

	rs_map_init(&s.conns, SCRIPT_CONNS);
	rs_arena_init(&s.arena, 64 * 1024, 0);
	errno = 0;
	while (!rc && (n = getline(&line, &cap, f)) >= 0) {
		s.line++;
		if (strspn(line, " \t\r\n") == (size_t)n)
			continue;
		rc = on_line(&s, str_of(line, (size_t)n));
	}
	if (!rc && ferror(f)) {
		rc = -errno;
		snprintf(err, err_len, "%s", strerror(errno));
	} else if (rc == -ENOMEM) {
		snprintf(err, err_len, "line %lu: out of memory", s.line);
	}
	free(line);
	while ((t = rs_map_next(&s.conns, &pos)))
		free(t);
	rs_map_release(&s.conns);
	rs_arena_release(&s.arena);
	return rc;
}
