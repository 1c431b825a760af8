// SPDX-License-Identifier: Apache-2.0
#include "script.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

#define SCRIPT_CONNS 65536

/* Running offsets of a connection, for data without "off" and "seq". */
struct totals {
	uint64_t off[2];
	uint32_t seq[2];
};

struct script {
	unsigned long line;
	struct rs_map conns; /* conn -> struct totals */
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

/* An optional or required non-negative integer, at most max. */
static int get_uint(struct script *s, json_t *o, const char *key, uint64_t max, bool required, uint64_t *ret)
{
	json_t *v = json_object_get(o, key);

	if (!v)
		return required ? bad(s, "no \"%s\"", key) : 0;
	if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) > max)
		return bad(s, "\"%s\": an integer from 0 to %" PRIu64 " is expected", key, max);
	*ret = (uint64_t)json_integer_value(v);
	return 0;
}

/* An optional or required word of a list; *ret is its position. */
static int get_word(struct script *s, json_t *o, const char *key, const char *const *words, bool required,
		    unsigned *ret)
{
	json_t *v = json_object_get(o, key);
	const char *w;
	char all[256] = "";
	size_t n = 0;

	if (!v)
		return required ? bad(s, "no \"%s\"", key) : 0;
	w = json_string_value(v);
	for (unsigned i = 0; words[i]; i++) {
		if (w && strcmp(w, words[i]) == 0) {
			*ret = i;
			return 0;
		}
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", words[i]);
	}
	return bad(s, "\"%s\": one of %s is expected", key, all);
}

static void header(struct rs_ev_hdr *h, enum rs_ev_type type, size_t len, uint64_t t)
{
	*h = (struct rs_ev_hdr){ .type = (uint16_t)type, .len = (uint32_t)len, .ts_ns = t };
}

static int emit(struct script *s, const void *ev)
{
	return s->fn(s->arg, ev) ? -ECANCELED : 0;
}

static void copy_comm(char to[RS_COMM_LEN], json_t *o)
{
	const char *comm = json_string_value(json_object_get(o, "comm"));

	if (comm)
		memcpy(to, comm, strnlen(comm, RS_COMM_LEN - 1));
}

/* "1.2.3.4:80", "[::1]:80", or, for Unix, a path. */
static int get_addr(struct script *s, json_t *o, const char *key, unsigned family, __u8 addr[16], __u16 *port)
{
	const char *text = json_string_value(json_object_get(o, key)), *colon;
	char host[64];
	size_t n;
	long p;

	if (!json_object_get(o, key))
		return 0;
	colon = text ? strrchr(text, ':') : NULL;
	if (!colon)
		return bad(s, "\"%s\": an address and port are expected, such as 10.0.0.1:80 or [::1]:80", key);
	n = (size_t)(colon - text);
	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	p = strtol(colon + 1, NULL, 10);
	if (n >= sizeof(host) || p < 0 || p > 65535)
		return bad(s, "\"%s\": not an address and port", key);
	memcpy(host, text, n);
	host[n] = '\0';
	if (inet_pton(family == RS_FAMILY_INET6 ? AF_INET6 : AF_INET, host, addr) != 1)
		return bad(s, "\"%s\": '%s' is not an address of its family", key, host);
	*port = (__u16)p;
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

static int on_open(struct script *s, json_t *o, uint64_t t, uint64_t conn)
{
	static const char *const roles[] = { "unknown", "client", "server", NULL };
	static const char *const families[] = { "unknown", "inet", "inet6", "unix", NULL };
	static const char *const l4s[] = { "unknown", "tcp", "udp", NULL };
	unsigned role = 0, family = RS_FAMILY_INET, l4 = RS_L4_TCP;
	uint64_t pid = 0, tid = 0;
	struct rs_ev_open ev = { .conn = conn };
	int rc;

	if ((rc = get_uint(s, o, "pid", UINT32_MAX, false, &pid)) || (tid = pid, 0) ||
	    (rc = get_uint(s, o, "tid", UINT32_MAX, false, &tid)) ||
	    (rc = get_word(s, o, "role", roles, false, &role)) ||
	    (rc = get_word(s, o, "family", families, false, &family)) ||
	    (rc = get_word(s, o, "l4", l4s, false, &l4)))
		return rc;
	header(&ev.h, RS_EV_OPEN, sizeof(ev), t);
	if (json_is_true(json_object_get(o, "present")))
		ev.h.flags |= RS_EVF_PRESENT;
	ev.tgid = (uint32_t)pid;
	ev.tid = (uint32_t)tid;
	ev.role = (uint8_t)role;
	ev.family = (uint8_t)family;
	ev.l4 = family == RS_FAMILY_UNIX ? RS_L4_UNKNOWN : (uint8_t)l4;
	copy_comm(ev.comm, o);
	if (family == RS_FAMILY_UNIX) {
		const char *path = json_string_value(json_object_get(o, "local"));

		if (!path || !*path)
			path = json_string_value(json_object_get(o, "peer"));
		if (path)
			memcpy(ev.path, path, strnlen(path, sizeof(ev.path)));
	} else if ((rc = get_addr(s, o, "local", family, ev.laddr, &ev.lport)) ||
		   (rc = get_addr(s, o, "peer", family, ev.raddr, &ev.rport))) {
		return rc;
	}
	return emit(s, &ev);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The bytes of "text" or "hex", allocated; *ret_n 0 without either. */
static int get_bytes(struct script *s, json_t *o, char **ret, size_t *ret_n)
{
	json_t *text = json_object_get(o, "text"), *hex = json_object_get(o, "hex");
	json_t *v = text ? text : hex;
	size_t n;
	char *p;

	*ret = NULL;
	*ret_n = 0;
	if (!v)
		return 0;
	if (!json_is_string(v) || (text && hex))
		return bad(s, "one string is expected: \"text\" or \"hex\"");
	n = json_string_length(v);
	if (hex && n % 2)
		return bad(s, "\"hex\": an odd number of digits");
	p = malloc(n + 1);
	if (!p)
		return -ENOMEM;
	memcpy(p, json_string_value(v), n);
	if (hex) {
		for (size_t i = 0; i < n; i += 2) {
			int hi = hex_digit(p[i]), lo = hex_digit(p[i + 1]);

			if (hi < 0 || lo < 0) {
				free(p);
				return bad(s, "\"hex\": digit %zu is not one", i + 1);
			}
			p[i / 2] = (char)(hi << 4 | lo);
		}
		n /= 2;
	}
	*ret = p;
	*ret_n = n;
	return 0;
}

/* A long text becomes several records, as the kernel side would make them. */
static int emit_data(struct script *s, struct rs_ev_data *d, const char *bytes, size_t n, uint64_t len)
{
	size_t done = 0;

	do {
		size_t cap = n - done < RS_CAP_MAX ? n - done : RS_CAP_MAX;
		int rc;

		if (cap)
			memcpy(d->data, bytes + done, cap);
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

static int on_data(struct script *s, json_t *o, uint64_t t, uint64_t conn)
{
	static const char *const dirs[] = { "in", "out", NULL };
	static const char *const sources[] = { "socket", "tls", NULL };
	_Alignas(8) char buf[sizeof(struct rs_ev_data) + RS_CAP_MAX] = { 0 };
	struct rs_ev_data *d = (void *)buf;
	unsigned dir = 0, source = 0;
	uint64_t pid = 0, tid, off, len, seq;
	struct totals *tot = totals_of(s, conn);
	char *bytes;
	size_t n;
	int rc;

	if (!tot)
		return -ENOMEM;
	if ((rc = get_word(s, o, "dir", dirs, true, &dir)) || (rc = get_word(s, o, "source", sources, false, &source)) ||
	    (rc = get_uint(s, o, "pid", UINT32_MAX, false, &pid)) || (rc = get_bytes(s, o, &bytes, &n)))
		return rc;
	tid = pid;
	off = tot->off[dir];
	len = n;
	seq = tot->seq[dir];
	if ((rc = get_uint(s, o, "tid", UINT32_MAX, false, &tid)) || (rc = get_uint(s, o, "off", INT64_MAX, false, &off)) ||
	    (rc = get_uint(s, o, "len", INT32_MAX, false, &len)) ||
	    (rc = get_uint(s, o, "seq", UINT32_MAX, false, &seq)))
		goto out;
	if (len < n) {
		rc = bad(s, "\"len\": less than the %zu bytes given", n);
		goto out;
	}
	if (len == 0) {
		rc = bad(s, "no bytes: \"text\", \"hex\" or \"len\" is expected");
		goto out;
	}
	header(&d->h, RS_EV_DATA, sizeof(*d), t);
	d->h.flags = n ? 0 : RS_EVF_NODATA;
	d->conn = conn;
	d->off = off;
	d->tgid = (uint32_t)pid;
	d->tid = (uint32_t)tid;
	d->seq = (uint32_t)seq;
	d->dir = (uint8_t)dir;
	d->source = (uint8_t)source;
	tot->off[dir] = off + len;
	tot->seq[dir] = seq ? (uint32_t)(seq + len) : 0;
	rc = emit_data(s, d, bytes, n, len);
out:
	free(bytes);
	return rc;
}

static int on_close(struct script *s, json_t *o, uint64_t t, uint64_t conn)
{
	static const char *const hows[] = { "all", "in", "out", NULL };
	struct rs_ev_close ev = { .conn = conn };
	unsigned how = RS_CLOSE_ALL;
	uint64_t pid = 0;
	int rc;

	if ((rc = get_word(s, o, "how", hows, false, &how)) || (rc = get_uint(s, o, "pid", UINT32_MAX, false, &pid)))
		return rc;
	header(&ev.h, RS_EV_CLOSE, sizeof(ev), t);
	ev.how = how;
	ev.tgid = (uint32_t)pid;
	return emit(s, &ev);
}

static int on_fact(struct script *s, json_t *o, uint64_t t, uint64_t conn)
{
	static const char *const facts[] = { "", "retransmit", "reset_in", "reset_out", NULL };
	struct rs_ev_fact ev = { .conn = conn };
	uint64_t value = 0;
	unsigned fact = 0;
	int rc;

	if ((rc = get_word(s, o, "fact", facts + 1, true, &fact)) ||
	    (rc = get_uint(s, o, "value", UINT32_MAX, false, &value)))
		return rc;
	header(&ev.h, RS_EV_FACT, sizeof(ev), t);
	ev.fact = fact + 1;
	ev.value = (uint32_t)value;
	return emit(s, &ev);
}

static int on_proc(struct script *s, json_t *o, uint64_t t)
{
	static const char *const events[] = { "exec", "exit", "signal", "oom", "fork", NULL };
	struct rs_ev_proc ev = { 0 };
	uint64_t pid = 0, signal = 0, code = 0, ppid = 0;
	unsigned event = 0;
	int rc;

	if ((rc = get_uint(s, o, "pid", UINT32_MAX, true, &pid)) || (rc = get_word(s, o, "event", events, true, &event)) ||
	    (rc = get_uint(s, o, "signal", 255, false, &signal)) ||
	    (rc = get_uint(s, o, "code", UINT32_MAX, false, &code)) ||
	    (rc = get_uint(s, o, "ppid", UINT32_MAX, false, &ppid)))
		return rc;
	header(&ev.h, RS_EV_PROC, sizeof(ev), t);
	ev.tgid = ev.tid = (uint32_t)pid;
	ev.event = event + 1;
	ev.signal = (uint32_t)signal;
	ev.code = (uint32_t)code;
	ev.ppid = (uint32_t)ppid;
	copy_comm(ev.comm, o);
	return emit(s, &ev);
}

static int on_record(struct script *s, json_t *o)
{
	static const char *const types[] = { "open", "data", "close", "fact", "proc", NULL };
	uint64_t t = 0, conn = 0;
	unsigned type = 0;
	int rc;

	if (!json_is_object(o))
		return bad(s, "an object is expected");
	if ((rc = get_uint(s, o, "t", INT64_MAX, true, &t)) || (rc = get_word(s, o, "type", types, true, &type)) ||
	    (rc = get_uint(s, o, "conn", INT64_MAX, type != 4, &conn)))
		return rc;
	switch (type) {
	case 0:
		return on_open(s, o, t, conn);
	case 1:
		return on_data(s, o, t, conn);
	case 2:
		return on_close(s, o, t, conn);
	case 3:
		return on_fact(s, o, t, conn);
	default:
		return on_proc(s, o, t);
	}
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
	errno = 0;
	while (!rc && (n = getline(&line, &cap, f)) >= 0) {
		json_error_t jerr;
		json_t *o;

		s.line++;
		if (strspn(line, " \t\r\n") == (size_t)n)
			continue;
		o = json_loadb(line, (size_t)n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &jerr);
		if (!o)
			rc = bad(&s, "column %d: %s", jerr.column, jerr.text);
		else
			rc = on_record(&s, o);
		json_decref(o);
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
	return rc;
}
