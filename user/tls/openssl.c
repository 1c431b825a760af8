// SPDX-License-Identifier: Apache-2.0
/*
 * OpenSSL 1.1 and 3, LibreSSL, BoringSSL: libssl.so, or linked into a program that has its symbols.
 *
 * In OpenSSL, SSL_read and SSL_read_ex both call ssl_read_internal first, and so does the BIO that TLS is done
 * through (BIO_f_ssl); SSL_peek does not, so that nothing is seen twice. It is local, without a symbol in a
 * stripped library: the target that both agree on. Where compilers have put it into its callers, they do not
 * agree, and the public functions are taken one by one.
 */
#include <errno.h>
#include <stdio.h>

#include "points.h"

enum {
	READ,
	READ_EX,
	WRITE,
	WRITE_EX,
	WRITE_EX2,
	FREE,
	READ_INTERNAL,
	WRITE_INTERNAL,
	SYMBOLS,
};

static uint64_t first_call(const struct rs_elf *e, const struct rs_elf_sym *s)
{
	uint64_t target = 0;
	struct rs_code code;

	if (s->va && !rs_tls_code(e, s->va, s->size, &code)) {
		target = rs_code_first_call(&code);
		rs_code_release(&code);
	}
	return target;
}

/* ssl_read_internal or ssl_write_internal, if the public functions call it; else 0. */
static uint64_t internal(const struct rs_elf *e, const struct rs_elf_sym *plain,
			 const struct rs_elf_sym *ex)
{
	uint64_t a = first_call(e, plain), b = first_call(e, ex);

	/* A function of its own, not an entry of the procedure linkage table. */
	return a && a == b && rs_elf_function(e, a).va == a ? a : 0;
}

/* Is all that this function does to call that one (SSL_write_ex, since 3.3)? */
static bool only_calls(const struct rs_elf *e, const struct rs_elf_sym *s, uint64_t other)
{
	uint64_t tails[RS_CODE_TAILS];
	struct rs_code_point at[1];
	struct rs_code code;
	bool only;

	if (!s->va || !other || rs_tls_code(e, s->va, s->size, &code))
		return false;
	only = rs_code_returns(&code, at, 1, tails) == 0 && tails[0] == other && !tails[1];
	rs_code_release(&code);
	return only;
}

/* One direction. *ret_how: what the points are at. */
static int add(struct rs_tls_points *p, const struct rs_elf *e, const struct rs_elf_sym *sym,
	       bool out, const char **ret_how)
{
	const struct rs_elf_sym *plain = &sym[out ? WRITE : READ];
	const struct rs_elf_sym *ex = &sym[out ? WRITE_EX : READ_EX];
	const struct rs_elf_sym *own = &sym[out ? WRITE_INTERNAL : READ_INTERNAL];
	const struct rs_elf_sym *ex2 = out && sym[WRITE_EX2].va ? &sym[WRITE_EX2] : NULL;
	uint32_t dir = out ? RS_TLS_COOKIE_OUT : 0, counted = dir | RS_TLS_COOKIE_COUNTP;
	/* Since 3.3 flags stand before the count: (session, buffer, length, flags, count). */
	uint32_t inner_flags = counted | (ex2 ? RS_TLS_COOKIE_COUNT5 : 0);
	uint64_t inner = internal(e, plain, ex2 ? ex2 : ex);
	int r;

	if (inner) {
		*ret_how = "the local function that all of them call";
		if (!rs_tls_add_function(p, e, inner, 0, inner_flags))
			return 0;
	}
	*ret_how = "the public functions";
	r = rs_tls_add_function(p, e, plain->va, plain->size, dir);
	if (!r && ex2)
		r = rs_tls_add_function(p, e, ex2->va, ex2->size, inner_flags);
	if (!r && ex->va && !(ex2 && only_calls(e, ex, ex2->va)))
		r = rs_tls_add_function(p, e, ex->va, ex->size, counted);
	/* Others that call it: BIO_f_ssl's. It is not needed by most, so it may fail. */
	if (!r && own->va)
		(void)rs_tls_add_function(p, e, own->va, own->size, inner_flags);
	return r;
}

int rs_tls_find_openssl(const struct rs_elf *e, struct rs_tls_points *ret)
{
	struct rs_elf_sym sym[SYMBOLS] = {
		[READ] = { .name = "SSL_read" },
		[READ_EX] = { .name = "SSL_read_ex" },
		[WRITE] = { .name = "SSL_write" },
		[WRITE_EX] = { .name = "SSL_write_ex" },
		[WRITE_EX2] = { .name = "SSL_write_ex2" },
		[FREE] = { .name = "SSL_free" },
		[READ_INTERNAL] = { .name = "ssl_read_internal" },
		[WRITE_INTERNAL] = { .name = "ssl_write_internal" },
	};
	const char *in = "", *out = "";
	int r;

	rs_elf_symbols(e, sym, SYMBOLS);
	if (!sym[READ].va || !sym[WRITE].va)
		return -ENOENT;
	r = add(ret, e, sym, false, &in);
	if (!r)
		r = add(ret, e, sym, true, &out);
	if (r) {
		snprintf(ret->what, sizeof(ret->what),
			 "SSL_read, SSL_write: no place for a probe at their returns");
		return r == -ENOMEM ? r : -EOPNOTSUPP;
	}
	if (sym[FREE].va)
		r = rs_tls_add(ret, e, RS_UPROBE_rs_tls_forget, sym[FREE].va, 0, true);
	snprintf(ret->what, sizeof(ret->what), "reads: %s; writes: %s", in, out);
	return r;
}
