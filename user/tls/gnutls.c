// SPDX-License-Identifier: Apache-2.0
/*
 * GnuTLS: gnutls_record_recv returns as the function does that it ends in; gnutls_record_send is
 * gnutls_record_send2 with other arguments, in libraries that have it (3.6.3).
 */
#include <errno.h>
#include <stdio.h>

#include "points.h"

enum {
	RECV,
	SEND,
	SEND2,
	DEINIT,
	SYMBOLS,
};

int rs_tls_find_gnutls(const struct rs_elf *e, struct rs_tls_points *ret)
{
	struct rs_elf_sym sym[SYMBOLS] = {
		[RECV] = { .name = "gnutls_record_recv" },
		[SEND] = { .name = "gnutls_record_send" },
		[SEND2] = { .name = "gnutls_record_send2" },
		[DEINIT] = { .name = "gnutls_deinit" },
	};
	const struct rs_elf_sym *send;
	int r;

	rs_elf_symbols(e, sym, SYMBOLS);
	send = sym[SEND2].va ? &sym[SEND2] : &sym[SEND];
	if (!sym[RECV].va || !send->va)
		return -ENOENT;
	r = rs_tls_add_function(ret, e, sym[RECV].va, sym[RECV].size, 0);
	if (!r)
		r = rs_tls_add_function(ret, e, send->va, send->size, RS_TLS_COOKIE_OUT);
	if (r) {
		snprintf(ret->what, sizeof(ret->what),
			 "gnutls_record_recv, %s: no place for a probe at their returns",
			 send->name);
		return r == -ENOMEM ? r : -EOPNOTSUPP;
	}
	if (sym[DEINIT].va)
		r = rs_tls_add(ret, e, RS_UPROBE_rs_tls_forget, sym[DEINIT].va, 0, true);
	snprintf(ret->what, sizeof(ret->what), "gnutls_record_recv, %s", send->name);
	return r;
}
