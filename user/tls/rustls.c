// SPDX-License-Identifier: Apache-2.0
/*
 * rustls, in programs that have their symbols, as Rust's release builds have unless they are stripped. What it gives to the
 * program is inlined, differently in each; but records are encrypted and decrypted by methods that are called through
 * tables (dyn MessageDecrypter, MessageEncrypter, Tls13AeadAlgorithm), whatever the provider of cryptography. Their
 * arguments are checked where they are read (bpf/probes/rustls.bpf.c). As of 0.23, which decrypts where records were
 * received; it is known by a method that came with it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "points.h"
#include "shared/config.h"

enum {
	DECRYPT,
	ENCRYPT,
	MAKE,
	KINDS,
};

/* Ends of names, as the two ways to mangle them have it; a hash may follow. */
static const struct {
	const char *legacy, *v0;
	int kind; /* KINDS: it shows the release */
} names[] = {
	{ "..MessageDecrypter$GT$7decrypt17h", "16MessageDecrypter7decrypt", DECRYPT },
	{ "..MessageEncrypter$GT$7encrypt17h", "16MessageEncrypter7encrypt", ENCRYPT },
	{ "AeadAlgorithm$GT$9encrypter17h", "AeadAlgorithm9encrypter", MAKE },
	{ "13AeadAlgorithm9encrypter17h", "AeadAlgorithm9encrypter", MAKE },
	{ "..MessageEncrypter$GT$21encrypted_payload_len17h", "21encrypted_payload_len", KINDS },
};

#define EACH 16 /* of a kind: three for each provider that is linked */

struct found {
	struct rs_elf_sym v[KINDS][EACH];
	size_t n[KINDS];
	bool release;
};

static bool on_symbol(void *arg, const char *name, uint64_t va, uint64_t size)
{
	struct found *f = arg;
	bool v0 = strncmp(name, "_R", 2) == 0;

	if ((!v0 && strncmp(name, "_ZN", 3) != 0) || !strstr(name, "rustls") ||
	    strstr(name, "InvalidMessage"))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int kind = names[i].kind;

		if (!strstr(name, v0 ? names[i].v0 : names[i].legacy))
			continue;
		if (kind == KINDS)
			f->release = true;
		else if (f->n[kind] < EACH)
			f->v[kind][f->n[kind]++] = (struct rs_elf_sym){ NULL, va, size };
		break;
	}
	return true;
}

/* Where it returns; none if it ends in another one of them. Its jumps by tables do not matter: nothing waits for a return. */
static int add_returns(struct rs_tls_points *p, const struct rs_elf *e, const struct rs_elf_sym *s,
		       enum rs_uprobe_prog prog, uint64_t cookie)
{
	struct rs_code code;
	int r = rs_tls_code(e, s->va, s->size, &code);

	for (size_t i = 0; !r && i < code.n; i++) {
		if (code.v[i].kind == RS_INSN_RETURN)
			r = rs_tls_add(p, e, prog, code.v[i].va, cookie, code.v[i].cheap);
	}
	rs_code_release(&code);
	return r;
}

static int add_entry(struct rs_tls_points *p, const struct rs_elf *e, const struct rs_elf_sym *s)
{
	struct rs_code_point at;
	struct rs_code code;
	int r = rs_tls_code(e, s->va, s->size, &code);

	if (r)
		return r;
	at = rs_code_entry(&code, RS_REG_ARG2 | RS_REG_ARG3);
	p->dear |= !at.cheap;
	rs_code_release(&code);
	return rs_tls_add(p, e, RS_UPROBE_rs_text, at.va, RS_TEXT_SEALS, at.cheap);
}

static size_t count(const struct rs_tls_points *p, uint64_t cookie)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += p->v[i].at.cookie == cookie;
	return n;
}

int rs_tls_find_rustls(const struct rs_elf *e, struct rs_tls_points *ret)
{
	struct found f = { 0 };
	int r = 0;

	rs_elf_each_symbol(e, on_symbol, &f);
	if (!f.n[DECRYPT] || !f.n[ENCRYPT])
		return -ENOENT;
#if !defined(__x86_64__)
	snprintf(ret->what, sizeof(ret->what), "it is read on x86-64 alone");
	return -EOPNOTSUPP;
#endif
	if (!f.release) {
		snprintf(ret->what, sizeof(ret->what), "of a release before 0.23");
		return -EOPNOTSUPP;
	}
	for (size_t i = 0; i < f.n[DECRYPT] && !r; i++)
		r = add_returns(ret, e, &f.v[DECRYPT][i], RS_UPROBE_rs_text, RS_TEXT_OPENED);
	for (size_t i = 0; i < f.n[MAKE] && !r; i++)
		r = add_returns(ret, e, &f.v[MAKE][i], RS_UPROBE_rs_tls_forget, RS_TEXT_MADE);
	ret->dear = 1; /* returns are single-stepped */
	for (size_t i = 0; i < f.n[ENCRYPT] && !r; i++)
		r = add_entry(ret, e, &f.v[ENCRYPT][i]);
	if (r || !count(ret, RS_TEXT_OPENED) || !count(ret, RS_TEXT_MADE)) {
		snprintf(ret->what, sizeof(ret->what),
			 "no place for a probe where records are decrypted");
		return r == -ENOMEM ? r : -EOPNOTSUPP;
	}
	snprintf(ret->what, sizeof(ret->what), "where records are decrypted and encrypted");
	return 0;
}
