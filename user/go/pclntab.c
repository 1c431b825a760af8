// SPDX-License-Identifier: Apache-2.0
#include "pclntab.h"

#include <errno.h>
#include <string.h>

#define MAGIC_118 0xfffffff0u
#define MAGIC_120 0xfffffff1u

/* struct pcHeader: offsets of its fields in a 64-bit program */
#define PTR_SIZE   7
#define NFUNC	   8
#define TEXT	   24
#define FUNC_NAMES 32
#define PCLN	   64
#define HEADER	   72

#define ENTRY	 8 /* of the table of entries: offset of the code, offset of struct _func */
#define FUNC_MIN 8 /* of struct _func: offset of the code, offset of the name */

static uint32_t u32(struct str s, uint64_t at)
{
	uint32_t v;

	memcpy(&v, s.ptr + at, sizeof(v));
	return v;
}

static uint64_t u64(struct str s, uint64_t at)
{
	uint64_t v;

	memcpy(&v, s.ptr + at, sizeof(v));
	return v;
}

int rs_go_pcln_open(struct str tab, struct rs_go_pcln *ret)
{
	uint64_t n, names, funcs;
	uint32_t magic;

	if (tab.len < HEADER)
		return -EBADMSG;
	magic = u32(tab, 0);
	if ((magic != MAGIC_118 && magic != MAGIC_120) || tab.ptr[PTR_SIZE] != 8)
		return -EBADMSG;
	n = u64(tab, NFUNC);
	names = u64(tab, FUNC_NAMES);
	funcs = u64(tab, PCLN);
	if (names > tab.len || funcs > tab.len || !n || n > UINT32_MAX / ENTRY ||
	    tab.len - funcs < n * ENTRY + 4)
		return -EBADMSG;
	*ret = (struct rs_go_pcln){
		.names = str_from(tab, names),
		.funcs = str_from(tab, funcs),
		.n = (uint32_t)n,
		.text = u64(tab, TEXT),
	};
	return 0;
}

bool rs_go_pcln_func(const struct rs_go_pcln *p, uint32_t i, struct rs_go_func *ret)
{
	uint64_t at = (uint64_t)i * ENTRY;
	uint32_t func = u32(p->funcs, at + 4), name;
	const char *end;

	ret->start = u32(p->funcs, at);
	ret->end = u32(p->funcs,
		       at + ENTRY); /* the last one's: a single offset stands behind the table */
	if (ret->end < ret->start || p->funcs.len < FUNC_MIN || func > p->funcs.len - FUNC_MIN)
		return false;
	name = u32(p->funcs, (uint64_t)func + 4);
	if (name >= p->names.len)
		return false;
	ret->name = str_from(p->names, name);
	end = memchr(ret->name.ptr, 0, ret->name.len);
	if (!end)
		return false;
	ret->name.len = (size_t)(end - ret->name.ptr);
	return true;
}
