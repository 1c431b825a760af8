// SPDX-License-Identifier: Apache-2.0
/*
 * check — what this machine allows: the kernel's features, then the programs loaded and attached for a
 * moment, one by one. What a bug report should hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <jansson.h>

#include "base/log.h"
#include "base/term.h"
#include "base/utf8.h"
#include "cmd.h"
#include "kernel/kernel.h"
#include "proto/proto.h"
#include "tls/tls.h"

#define MAX_FEATURES 64
#define NAME_COLS    30

struct check {
	struct utsname uts;
	struct rs_feature feature[MAX_FEATURES];
	size_t nfeatures;
	struct rs_kernel *kernel; /* NULL: it could not be loaded */
	const struct rs_probe_state *probe;
	size_t nprobes, attached, missing;
	struct rs_counters n;
	struct rs_tls_watch tls;
	struct rs_kernel_err err; /* why capture is impossible; empty: it is possible */
};

/* Out of reach, whatever the machine. */
static const char http3[] =
	"QUIC (UDP, mostly port 443) is encrypted within the program: out of reach, not traced; "
	"clients that fall back to HTTP/2 are seen";

static void try_capture(struct check *c, const struct rs_config *cfg)
{
	const struct rs_kernel_opts opts = { .mode = (enum rs_capture_mode)cfg->capture,
					     .cfg = { .tls = cfg->tls != RS_TLS_NEVER } };

	if (rs_kernel_open(&opts, &c->kernel, &c->err))
		c->kernel = NULL;
	else if (rs_kernel_attach(c->kernel, &c->err) == 0)
		c->err.msg[0] = 0;
	if (!c->kernel)
		return;
	c->nprobes = rs_kernel_probes(c->kernel, &c->probe);
	for (size_t i = 0; i < c->nprobes; i++) {
		c->attached += c->probe[i].attached;
		c->missing += c->probe[i].wanted && !c->probe[i].attached;
	}
	/* What TLS libraries are there, in what runs now? Nothing is attached to them. */
	rs_tls_init(&c->tls, c->kernel, (enum rs_tls_mode)cfg->tls, cfg->tls_exclude, &c->n);
	c->tls.dry = true;
	rs_tls_look_all(&c->tls, NULL, NULL);
}

static const char *probe_state(const struct rs_probe_state *p)
{
	return p->attached ? "attached" : p->wanted ? "failed" : "off";
}

/* TLS that is not read, whatever the machine. */
static const struct {
	const char *name, *detail;
} opaque[] = {
	{ "java",
	  "JSSE is compiled while it runs, so that there is no place for a probe: handshakes are seen (who talks to "
	  "whom), requests are not. Through OpenSSL (netty-tcnative, Conscrypt) they are, if it has symbols" },
	{ "others", "NSS, and OpenSSL, BoringSSL or rustls in stripped programs: handshakes only" },
};
#define NOPAQUE (sizeof(opaque) / sizeof(opaque[0]))

static const char *const tls_states[] = {
	[RS_TLS_HOOKED] = "ok",
	[RS_TLS_DECLINED] = "declined",
	[RS_TLS_FAILED] = "no",
};

/* What a probe costs, in words. */
static void price_words(const struct check *c, char *ret, size_t size)
{
	const struct rs_tls_price *p = &c->tls.price;

	if (p->cheap)
		snprintf(
			ret, size,
			"%u.%02u µs at an instruction the kernel emulates, %u.%02u µs at one that it single-steps: "
			"measured now; --tls auto takes calls of up to 15 µs",
			p->cheap / 1000, p->cheap % 1000 / 10, p->dear / 1000, p->dear % 1000 / 10);
	else
		snprintf(ret, size, "could not be measured");
}

/* -- JSON -- */

static void set(json_t *o, const char *key, const char *value)
{
	char clean[1024];

	rs_utf8_clean(clean, sizeof(clean), str_c(value ? value : ""), 0);
	json_object_set_new(o, key, json_string(clean));
}

static void json_library(void *arg, const struct rs_tls_info *info, uint32_t procs)
{
	json_t *one = json_object();

	set(one, "library", info->library);
	set(one, "path", info->path);
	set(one, "state", tls_states[info->state]);
	set(one, "detail", info->why);
	json_object_set_new(one, "processes", json_integer(procs));
	json_array_append_new(arg, one);
}

static json_t *json_tls(const struct check *c)
{
	json_t *o = json_object(), *libs = json_array();

	json_object_set_new(o, "possible", json_boolean(c->tls.kernel != NULL));
	json_object_set_new(o, "emulated_ns", json_integer(c->tls.price.cheap));
	json_object_set_new(o, "single_stepped_ns", json_integer(c->tls.price.dear));
	rs_tls_each(&c->tls, json_library, libs);
	json_object_set_new(o, "libraries", libs);
	return o;
}

static json_t *json_protocol(const char *name, bool ok, const char *detail)
{
	json_t *o = json_object();

	set(o, "name", name);
	json_object_set_new(o, "ok", json_boolean(ok));
	set(o, "detail", detail);
	return o;
}

static int print_json(const struct check *c)
{
	json_t *o = json_object(), *features = json_array(), *probes = json_array();
	json_t *spoken = json_array();
	int rc;

	set(o, "version", RS_VERSION);
	set(o, "kernel", c->uts.release);
	set(o, "arch", c->uts.machine);
	json_object_set_new(o, "can_capture", json_boolean(!c->err.msg[0]));
	set(o, "reason", c->err.msg);
	set(o, "backend", c->kernel ? rs_kernel_backend(c->kernel) : "");
	for (size_t i = 0; i < c->nfeatures; i++) {
		const struct rs_feature *f = &c->feature[i];
		json_t *one = json_object();

		set(one, "name", f->name);
		json_object_set_new(one, "ok", json_boolean(f->ok));
		json_object_set_new(one, "required", json_boolean(f->required));
		set(one, "detail", f->detail);
		json_array_append_new(features, one);
	}
	for (size_t i = 0; i < c->nprobes; i++) {
		const struct rs_probe_state *p = &c->probe[i];
		json_t *one = json_object();

		set(one, "name", p->name);
		set(one, "purpose", p->purpose);
		set(one, "state", probe_state(p));
		set(one, "reason", p->reason);
		json_array_append_new(probes, one);
	}
	json_object_set_new(o, "features", features);
	json_object_set_new(o, "probes", probes);
	for (size_t i = 0; i < RS_PROTO_COUNT; i++)
		json_array_append_new(spoken,
				      json_protocol(rs_protos[i]->name, true, rs_protos[i]->about));
	json_array_append_new(spoken, json_protocol("http3", false, http3));
	json_object_set_new(o, "protocols", spoken);
	json_object_set_new(o, "tls", json_tls(c));
	rc = json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
	return rc;
}

/* -- text -- */

/* "  ok    name          words": words are broken at the end of the terminal's line. */
static void print_row(const char *color, const struct rs_style *st, const char *mark,
		      const char *name, const char *words, int width)
{
	const int indent = 2 + 9 + NAME_COLS + 2;
	struct str rest = str_c(words), word;
	int at = indent, w = rs_utf8_width(str_c(name));

	printf("  %s%-8s%s %s%*s ", color, mark, *color ? st->reset : "", name,
	       w < NAME_COLS + 1 ? NAME_COLS + 1 - w : 1, "");
	if (w > NAME_COLS)
		at += w - NAME_COLS;
	while (rest.len) {
		rest = str_cut(rest, ' ', &word);
		w = rs_utf8_width(word);
		if (width && at > indent && at + 1 + w > width) {
			printf("\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			putchar(' ');
			at++;
		}
		printf("%.*s", STR_ARG(word));
		at += w;
	}
	putchar('\n');
}

static void print_features(const struct check *c, const struct rs_style *st, int width)
{
	if (c->nfeatures)
		printf("\n  %sTHIS MACHINE%s\n", st->bold, st->reset);
	for (size_t i = 0; i < c->nfeatures; i++) {
		const struct rs_feature *f = &c->feature[i];

		print_row(f->ok		? st->green
			  : f->required ? st->red
					: st->yellow,
			  st,
			  f->ok		? "ok"
			  : f->required ? "MISSING"
					: "no",
			  f->name, f->detail, width);
	}
}

static void print_probes(const struct check *c, const struct rs_style *st, int width)
{
	char words[700];

	if (c->nprobes)
		printf("\n  %sPROBES%s\n", st->bold, st->reset);
	for (size_t i = 0; i < c->nprobes; i++) {
		const struct rs_probe_state *p = &c->probe[i];

		snprintf(words, sizeof(words), "%s%s%s", p->purpose, *p->reason ? ": " : "",
			 p->reason);
		if (p->attached)
			print_row(st->green, st, "ok", p->name, p->purpose, width);
		else if (p->wanted)
			print_row(st->yellow, st, "no", p->name, words, width);
		else
			print_row(st->dim, st, "off", p->name, words, width);
	}
}

static void print_protocols(const struct rs_style *st, int width)
{
	printf("\n  %sPROTOCOLS%s\n", st->bold, st->reset);
	for (size_t i = 0; i < RS_PROTO_COUNT; i++)
		print_row(st->green, st, "ok", rs_protos[i]->name, rs_protos[i]->about, width);
	print_row(st->dim, st, "no", "http3", http3, width);
}

struct printing {
	const struct rs_style *st;
	int width;
};

static void print_library(void *arg, const struct rs_tls_info *info, uint32_t procs)
{
	const struct printing *p = arg;
	char words[600];

	snprintf(words, sizeof(words), "%s, %u process%s: %s", info->path, procs,
		 procs == 1 ? "" : "es", info->why);
	print_row(info->state == RS_TLS_HOOKED ? p->st->green : p->st->yellow, p->st,
		  tls_states[info->state], info->library, words, p->width);
}

static void print_tls(const struct check *c, const struct rs_style *st, int width)
{
	struct printing p = { st, width };
	char words[300];

	printf("\n  %sPLAIN TEXT OF TLS%s\n", st->bold, st->reset);
	if (!c->tls.kernel) {
		print_row(st->yellow, st, "no", "probes in programs",
			  "not loaded (see PROBES), or --tls never: only handshakes are seen",
			  width);
		return;
	}
	price_words(c, words, sizeof(words));
	print_row(st->green, st, "ok", "price of a probe", words, width);
	rs_tls_each(&c->tls, print_library, &p);
	for (size_t i = 0; i < NOPAQUE; i++)
		print_row(st->dim, st, "no", opaque[i].name, opaque[i].detail, width);
}

static void print_text(const struct check *c, const struct rs_config *cfg)
{
	int width = rs_term_width(STDOUT_FILENO);
	struct rs_style st;

	rs_style_init(&st, rs_term_color(STDOUT_FILENO, (enum rs_color)cfg->color));
	printf("%sringspan %s%s  kernel %s, %s\n", st.bold, RS_VERSION, st.reset, c->uts.release,
	       c->uts.machine);
	print_features(c, &st, width);
	print_probes(c, &st, width);
	print_protocols(&st, width);
	print_tls(c, &st, width);
	if (c->err.msg[0])
		return;
	printf("\n%sCapture works%s: %s backend, %zu probes", st.green, st.reset,
	       rs_kernel_backend(c->kernel), c->attached);
	if (c->missing)
		printf("; %zu missing, what they are for is lost", c->missing);
	putchar('\n');
}

int rs_cmd_check(struct rs_config *cfg)
{
	struct check *c;
	int rc = RS_EXIT_OK;

	if (rs_cmd_no_args(cfg))
		return RS_EXIT_USAGE;
	c = calloc(1, sizeof(*c));
	if (!c) {
		rs_error("out of memory");
		return RS_EXIT_FAILED;
	}
	uname(&c->uts);
	c->nfeatures = rs_kernel_features(c->feature, MAX_FEATURES);
	try_capture(c, cfg);
	if (!cfg->json)
		print_text(c, cfg);
	else if (print_json(c))
		rc = RS_EXIT_FAILED;
	if (c->err.msg[0]) {
		fflush(stdout);
		rs_error("capture is not possible: %s", c->err.msg);
		rc = RS_EXIT_UNSUPPORTED;
	}
	rs_tls_release(&c->tls);
	rs_kernel_close(c->kernel);
	free(c);
	return rc;
}
