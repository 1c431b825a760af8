// SPDX-License-Identifier: Apache-2.0
#include "points.h"

#include <errno.h>
#include <string.h>

#include "shared/config.h"

int rs_tls_find(enum rs_tls_library lib, const struct rs_elf *e, struct rs_tls_points *ret)
{
	*ret = (struct rs_tls_points){ 0 };
	switch (lib) {
#define RS_TLS_LIBRARY(name_, mark)                                                                \
	case RS_TLS_LIB_##name_:                                                                   \
		ret->name = #name_;                                                                \
		return rs_tls_find_##name_(e, ret);
#include "libraries.def"
#undef RS_TLS_LIBRARY
	case RS_TLS_LIBRARIES:
		break;
	}
	return -ENOENT;
}

static bool on_name(void *arg, const char *name, uint64_t va, uint64_t size)
{
	static const char *const marks[RS_TLS_LIBRARIES] = {
#define RS_TLS_LIBRARY(name_, mark) [RS_TLS_LIB_##name_] = (mark),
#include "libraries.def"
#undef RS_TLS_LIBRARY
	};
	bool mangled = name[0] == '_' && (name[1] == 'R' || name[1] == 'Z');
	unsigned *found = arg;

	(void)va, (void)size;
	for (int i = 0; i < RS_TLS_LIBRARIES; i++) {
		if (mangled ? i == RS_TLS_LIB_rustls && strstr(name, marks[i])
			    : name[0] == marks[i][0] && strcmp(name, marks[i]) == 0)
			*found |= 1u << i;
	}
	return true;
}

unsigned rs_tls_marks(const struct rs_elf *e)
{
	unsigned found = 0;

	rs_elf_each_symbol(e, on_name, &found);
	return found;
}

int rs_tls_add(struct rs_tls_points *p, const struct rs_elf *e, enum rs_uprobe_prog prog,
	       uint64_t va, uint64_t cookie, bool cheap)
{
	uint64_t off = rs_elf_offset(e, va);

	if (off == UINT64_MAX)
		return -ENOEXEC;
	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i].at.offset == off && p->v[i].prog == prog)
			return 0;
	}
	if (p->n == RS_TLS_POINTS)
		return -E2BIG;
	p->v[p->n++] = (struct rs_tls_point){ prog, { off, cookie }, cheap };
	return 0;
}

int rs_tls_code(const struct rs_elf *e, uint64_t va, uint64_t size, struct rs_code *ret)
{
	struct rs_elf_bytes b = size ? rs_elf_code(e, va, size) : rs_elf_function(e, va);

	if (!b.len || b.va != va)
		return -ENOEXEC;
	return rs_code_read(&b, ret);
}

static int add_code_point(struct rs_tls_points *p, const struct rs_elf *e, enum rs_uprobe_prog prog,
			  const struct rs_code_point *at, uint32_t flags)
{
	if (at->below < INT16_MIN || at->below > INT16_MAX)
		return -ENOTSUP;
	return rs_tls_add(p, e, prog, at->va,
			  flags | (prog == RS_UPROBE_rs_text ? RS_TEXT_LEAVE : 0) |
				  (uint32_t)(uint16_t)at->below << RS_TLS_COOKIE_SP |
				  (uint32_t)at->reg << RS_TLS_COOKIE_REG,
			  at->cheap);
}

#define RETURNS 48
#define DEPTH	4 /* of functions that end in others */

/* Where `code` returns, or what it ends in. */
static int add_returns(struct rs_tls_points *p, const struct rs_elf *e, const struct rs_code *code,
		       uint32_t flags, unsigned depth, unsigned *dear)
{
	struct rs_code_point ret[RETURNS];
	uint64_t tails[RS_CODE_TAILS];
	int n = rs_code_returns(code, ret, RETURNS, tails), r;

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		r = add_code_point(p, e, RS_UPROBE_rs_text, &ret[i], flags);
		if (r)
			return r;
		*dear |= !ret[i].cheap;
	}
	for (unsigned i = 0; i < RS_CODE_TAILS && tails[i]; i++) {
		struct rs_code tail;

		if (depth == DEPTH)
			return -ENOTSUP;
		r = rs_tls_code(e, tails[i], 0, &tail);
		if (r)
			return -ENOTSUP;
		r = add_returns(p, e, &tail, flags, depth + 1, dear);
		rs_code_release(&tail);
		if (r)
			return r;
	}
	return 0;
}

/* -- who calls a function, in this file -- */

#define CALLERS 24

/* Calls of va: functions of the file are decoded where four bytes look like its distance. */
static int add_after_calls(struct rs_tls_points *p, const struct rs_elf *e, uint64_t va,
			   uint32_t flags, unsigned *dear)
{
	unsigned found = 0;
	struct rs_elf_bytes text;

	for (unsigned s = 0; (text = rs_elf_text(e, s)).len; s++) {
		const uint8_t *from = text.ptr, *end = text.ptr + (text.len < 5 ? 0 : text.len - 4);

		/* Programs with a library in them have tens of megabytes. */
		for (; from < end && (from = memchr(from, 0xe8, (size_t)(end - from))); from++) {
			size_t i = (size_t)(from - text.ptr);
			struct rs_elf_bytes f;
			struct rs_code code;
			int32_t distance;
			int r;

			memcpy(&distance, text.ptr + i + 1, sizeof(distance));
			if (text.va + i + 5 + (uint64_t)(int64_t)distance != va)
				continue;
			f = rs_elf_function(e, text.va + i);
			if (!f.len || rs_code_read(&f, &code))
				return -ENOTSUP;
			r = 0;
			for (size_t k = 0; k < code.n && !r; k++) {
				struct rs_code_point at;

				if (code.v[k].va != text.va + i || code.v[k].kind != RS_INSN_CALL)
					continue;
				if (++found > CALLERS) {
					r = -ENOTSUP;
					break;
				}
				at = rs_code_after_call(&code, k);
				r = add_code_point(p, e, RS_UPROBE_rs_text, &at, flags);
				*dear |= !at.cheap;
			}
			rs_code_release(&code);
			if (r)
				return r;
		}
	}
	return found ? 0 : -ENOTSUP;
}

/* In a program the callers of a linked library are in the same file: perhaps there it is cheaper. */
static void cheaper_calls(struct rs_tls_points *p, const struct rs_elf *e, uint64_t va,
			  uint32_t flags, size_t from, unsigned *dear)
{
	struct rs_tls_points calls = *p;
	unsigned d = 0;

	calls.n = from;
	if (add_after_calls(&calls, e, va, flags, &d) || d)
		return;
	*p = calls;
	*dear = 0;
}

int rs_tls_add_function(struct rs_tls_points *p, const struct rs_elf *e, uint64_t va, uint64_t size,
			uint32_t flags)
{
	struct rs_code_point entry;
	unsigned dear_out = 0;
	size_t before = p->n, inside;
	struct rs_code code;
	int r;

	r = rs_tls_code(e, va, size, &code);
	if (r)
		return r;
	entry = rs_code_entry(&code, RS_REG_ARG1 | RS_REG_ARG2 |
					     (flags & RS_TLS_COOKIE_COUNT5   ? RS_REG_ARG5
					      : flags & RS_TLS_COOKIE_COUNTP ? RS_REG_ARG4
									     : 0));
	r = add_code_point(p, e, RS_UPROBE_rs_tls_enter, &entry, flags);
	inside = p->n;
	if (!r)
		r = add_returns(p, e, &code, flags, 0, &dear_out);
	if (r ==
	    -ENOTSUP) { /* it ends in what is only known when it runs: then where it was called from */
		p->n = inside;
		dear_out = 0;
		r = add_after_calls(p, e, va, flags, &dear_out);
	} else if (!r && dear_out && rs_elf_is_executable(e)) {
		cheaper_calls(p, e, va, flags, inside, &dear_out);
	}
	if (!r && p->dear < !entry.cheap + dear_out)
		p->dear = !entry.cheap + dear_out;
	if (r)
		p->n = before;
	rs_code_release(&code);
	return r;
}
