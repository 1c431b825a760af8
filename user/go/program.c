// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "go/buildinfo.h"
#include "go/pclntab.h"
#include "tls/elf.h"

#define CALLERS 512 /* functions that may hold a place */

static const struct point {
	struct str caller, callee;
	uint8_t kind;
	bool prefix;
} points[] = {
#define RS_GO_POINT(kind_, caller_, callee_)                                                       \
	{ .caller = { caller_, sizeof(caller_) - 1 },                                              \
	  .callee = { callee_, sizeof(callee_) - 1 },                                              \
	  .kind = RS_GO_##kind_,                                                                   \
	  .prefix = caller_[sizeof(caller_) - 2] == '*' },
#include "points.def"
#undef RS_GO_POINT
};
#define POINTS (sizeof(points) / sizeof(points[0]))

static const struct {
	unsigned minor;
	struct rs_bpf_go layout;
} layouts[] = {
#define RS_GO_LAYOUT(minor, ...) { minor, { __VA_ARGS__, 0 } },
#include "layouts.def"
#undef RS_GO_LAYOUT
};
#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

/* What the functions' names tell. */
struct search {
	const struct rs_elf *e;
	struct rs_go_program *p;
	uint32_t callee
		[POINTS]; /* offset in the code; UINT32_MAX: the program has no such function */
	struct caller {
		uint32_t start, end, point;
	} callers[CALLERS];
	uint32_t ncallers;
};

static bool is_caller(const struct point *pt, struct str name)
{
	return pt->prefix ? str_starts(name, str_at(pt->caller, 0, pt->caller.len - 1))
			  : str_eq(name, pt->caller);
}

static void find_functions(struct search *s, const struct rs_go_pcln *tab)
{
	struct rs_go_func f;

	memset(s->callee, 0xff, sizeof(s->callee));
	for (uint32_t i = 0; i < tab->n; i++) {
		if (!rs_go_pcln_func(tab, i, &f))
			continue;
		for (uint32_t k = 0; k < POINTS; k++) {
			if (str_eq(f.name, points[k].callee))
				s->callee[k] = f.start;
			if (s->ncallers < CALLERS && is_caller(&points[k], f.name))
				s->callers[s->ncallers++] = (struct caller){ f.start, f.end, k };
		}
	}
}

/* Does a call of `target` begin at code[at]? Addresses are relative to the same place. */
static bool is_call(struct rs_elf_bytes code, size_t at, uint64_t pc, uint64_t target)
{
#if defined(__x86_64__)
	int32_t rel;

	if (code.ptr[at] != 0xe8 || code.len - at < 5)
		return false;
	memcpy(&rel, code.ptr + at + 1, sizeof(rel));
	return pc + 5 + (uint64_t)(int64_t)rel == target;
#elif defined(__aarch64__)
	uint32_t insn; /* BL: 100101, then a signed distance in words */

	if (at % 4 || code.len - at < 4)
		return false;
	memcpy(&insn, code.ptr + at, sizeof(insn));
	return insn >> 26 == 0x25 &&
	       pc + (uint64_t)((int64_t)((uint64_t)insn << 38) >> 36) == target;
#else
	(void)code, (void)at, (void)pc, (void)target;
	return false;
#endif
}

/* Places, if the code begins at address text: then calls lead where the table says. */
static bool find_places(struct search *s, uint64_t text)
{
	struct rs_go_program *p = s->p;

	p->nplaces = 0;
	for (uint32_t i = 0; i < s->ncallers; i++) {
		const struct caller *c = &s->callers[i];
		uint64_t target = text + s->callee[c->point];
		struct rs_elf_bytes code;

		if (s->callee[c->point] == UINT32_MAX)
			continue;
		code = rs_elf_code(s->e, text + c->start,
				   c->end - c->start < RS_ELF_FUNCTION_MAX ? c->end - c->start
									   : RS_ELF_FUNCTION_MAX);
		for (size_t at = 0; at < code.len && p->nplaces < RS_GO_PLACES; at++) {
			if (is_call(code, at, code.va + at, target))
				p->places[p->nplaces++] = (struct rs_go_place){
					.offset = rs_elf_offset(s->e, code.va + at),
					.kind = points[c->point].kind,
				};
		}
	}
	return p->nplaces > 0; /* every program makes goroutines: there is one at least */
}

static uint64_t word_at(struct rs_elf_bytes b, size_t at)
{
	uint64_t v = 0;

	if (b.len >= at + sizeof(v))
		memcpy(&v, b.ptr + at, sizeof(v));
	return v;
}

#define MODULE_MINPC 160 /* in runtime.moduledata: the first function's address */

/* The table tells the code's address up to 1.25, unless the loader fills it in; a symbol does when there are
 * symbols, the module's data from 1.26 on; and without C in the program it is the section. */
static int find_text(struct search *s, const struct rs_go_pcln *tab)
{
	struct rs_elf_sym sym = { .name = "runtime.text" };
	uint64_t minpc = word_at(rs_elf_section(s->e, ".go.module"), MODULE_MINPC);
	struct rs_go_func first;
	uint64_t tries[4] = { tab->text };

	if (rs_elf_symbols(s->e, &sym, 1) == 1)
		tries[1] = sym.va;
	if (minpc && rs_go_pcln_func(tab, 0, &first))
		tries[2] = minpc - first.start;
	tries[3] = rs_elf_section(s->e, ".text").va;
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		if (tries[i] && find_places(s, tries[i]))
			return 0;
	}
	return -EBADMSG;
}

static bool set_layout(struct rs_go_program *p, unsigned minor)
{
	if (minor < layouts[0].minor || minor > RS_GO_MINOR_MAX)
		return false;
	for (size_t i = 0; i < LAYOUTS && layouts[i].minor <= minor; i++)
		p->layout = layouts[i].layout;
	return true;
}

static struct rs_elf_bytes find_table(const struct rs_elf *e)
{
	struct rs_elf_bytes b = rs_elf_section(e, ".gopclntab");

	return b.len ? b : rs_elf_section(e, ".data.rel.ro.gopclntab"); /* PIE, before 1.26 */
}

int rs_go_inspect(const struct rs_elf *e, struct rs_go_program *ret)
{
	struct rs_elf_bytes info = rs_elf_section(e, ".go.buildinfo"), tab;
	struct rs_go_pcln pcln;
	struct search *s;
	struct str version;
	unsigned minor;
	int r;

	if (!info.len || rs_go_buildinfo(str_of((const char *)info.ptr, info.len), &version) ||
	    rs_go_minor(version, &minor))
		return -ENOEXEC;
	*ret = (struct rs_go_program){ .nplaces = 0 };
	snprintf(ret->version, sizeof(ret->version), "%.*s", STR_ARG(version));
	if (minor < layouts[0].minor)
		return -ENOEXEC;
	if (!set_layout(ret, minor))
		return -ENOTSUP;
	tab = find_table(e);
	if (!tab.len || rs_go_pcln_open(str_of((const char *)tab.ptr, tab.len), &pcln))
		return -EBADMSG;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->e = e;
	s->p = ret;
	find_functions(s, &pcln);
	r = find_text(s, &pcln);
	free(s);
	return r;
}
