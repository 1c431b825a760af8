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

#define MAX_FEATURES 64
#define NAME_COLS    30

struct check {
	struct utsname uts;
	struct rs_feature feature[MAX_FEATURES];
	size_t nfeatures;
	struct rs_kernel *kernel; /* NULL: it could not be loaded */
	const struct rs_probe_state *probe;
	size_t nprobes, attached, missing;
	struct rs_kernel_err err; /* why capture is impossible; empty: it is possible */
};

/* What is understood of the bytes, and what is out of reach whatever the machine. */
static const struct {
	const char *name, *detail;
	bool ok;
} protocols[] = {
	{ "http1", "HTTP/1.0 and 1.1; to websockets and other upgrades: until they begin", true },
	{ "http2", "HTTP/2 and gRPC: in clear text, and where TLS is read", true },
	{ "http3",
	  "QUIC (UDP, mostly port 443) is encrypted within the program: out of reach, not traced; "
	  "clients that fall back to HTTP/2 are seen",
	  false },
};
#define NPROTOCOLS (sizeof(protocols) / sizeof(protocols[0]))

static void try_capture(struct check *c, const struct rs_config *cfg)
{
	const struct rs_kernel_opts opts = { .mode = (enum rs_capture_mode)cfg->capture };

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
}

static const char *probe_state(const struct rs_probe_state *p)
{
	return p->attached ? "attached" : p->wanted ? "failed" : "off";
}

/* -- JSON -- */

static void set(json_t *o, const char *key, const char *value)
{
	char clean[1024];

	rs_utf8_clean(clean, sizeof(clean), str_c(value ? value : ""), 0);
	json_object_set_new(o, key, json_string(clean));
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
	for (size_t i = 0; i < NPROTOCOLS; i++) {
		json_t *one = json_object();

		set(one, "name", protocols[i].name);
		json_object_set_new(one, "ok", json_boolean(protocols[i].ok));
		set(one, "detail", protocols[i].detail);
		json_array_append_new(spoken, one);
	}
	json_object_set_new(o, "protocols", spoken);
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
	for (size_t i = 0; i < NPROTOCOLS; i++)
		print_row(protocols[i].ok ? st->green : st->dim, st, protocols[i].ok ? "ok" : "no",
			  protocols[i].name, protocols[i].detail, width);
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
	rs_kernel_close(c->kernel);
	free(c);
	return rc;
}
