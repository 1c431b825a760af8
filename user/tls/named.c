// SPDX-License-Identifier: Apache-2.0
/*
 * Libraries whose reads and writes are one function each, f(session, buffer, length), which returns how much: GnuTLS
 * (gnutls_record_send is gnutls_record_send2 with other arguments, in those that have it, 3.6.3), mbedTLS, wolfSSL. And
 * NSS, which has none: its sessions are files among others of its portable runtime, whose functions are everybody's.
 */
#include <errno.h>
#include <stdio.h>

#include "points.h"

enum {
	READ,
	WRITE,
	WRITE_ELSE, /* in older ones */
	FREE,
	SYMBOLS,
};

static int find(const struct rs_elf *e, struct rs_tls_points *ret, const char *const names[SYMBOLS])
{
	struct rs_elf_sym sym[SYMBOLS];
	const struct rs_elf_sym *write;
	int r;

	for (int i = 0; i < SYMBOLS; i++)
		sym[i] = (struct rs_elf_sym){ .name = names[i] };
	rs_elf_symbols(e, sym, SYMBOLS);
	write = sym[WRITE].va ? &sym[WRITE] : &sym[WRITE_ELSE];
	if (!sym[READ].va || !write->va)
		return -ENOENT;
	r = rs_tls_add_function(ret, e, sym[READ].va, sym[READ].size, 0);
	if (!r)
		r = rs_tls_add_function(ret, e, write->va, write->size, RS_TLS_COOKIE_OUT);
	if (r) {
		snprintf(ret->what, sizeof(ret->what),
			 "%s, %s: no place for a probe at their returns", names[READ], write->name);
		return r == -ENOMEM ? r : -EOPNOTSUPP;
	}
	if (sym[FREE].va)
		r = rs_tls_add(ret, e, RS_UPROBE_rs_tls_forget, sym[FREE].va, 0, true);
	snprintf(ret->what, sizeof(ret->what), "%s, %s", names[READ], write->name);
	return r;
}

int rs_tls_find_gnutls(const struct rs_elf *e, struct rs_tls_points *ret)
{
	static const char *const names[SYMBOLS] = { "gnutls_record_recv", "gnutls_record_send2",
						    "gnutls_record_send", "gnutls_deinit" };

	return find(e, ret, names);
}

int rs_tls_find_mbedtls(const struct rs_elf *e, struct rs_tls_points *ret)
{
	static const char *const names[SYMBOLS] = { "mbedtls_ssl_read", "mbedtls_ssl_write",
						    "mbedtls_ssl_write", "mbedtls_ssl_free" };

	return find(e, ret, names);
}

int rs_tls_find_wolfssl(const struct rs_elf *e, struct rs_tls_points *ret)
{
	static const char *const names[SYMBOLS] = { "wolfSSL_read", "wolfSSL_write",
						    "wolfSSL_write", "wolfSSL_free" };

	return find(e, ret, names);
}

int rs_tls_find_nss(const struct rs_elf *e, struct rs_tls_points *ret)
{
	struct rs_elf_sym sym = { .name = "SSL_ImportFD" };

	if (!rs_elf_symbols(e, &sym, 1))
		return -ENOENT;
	snprintf(ret->what, sizeof(ret->what),
		 "its reads and writes have no names of their own: handshakes only");
	return -EOPNOTSUPP;
}
