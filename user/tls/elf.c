// SPDX-License-Identifier: Apache-2.0
#include "elf.h"

#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS 16 /* loaded segments kept; programs have four or five */

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#error "which ELF machine is this?"
#endif

struct segment {
	uint64_t va, off, len;
	bool exec;
};

struct rs_elf {
	Elf *elf;
	uint64_t size;
	struct segment seg[SEGMENTS];
	unsigned nseg;
	bool executable;
	size_t shstr;
	uint64_t frames_va, frames_off, frames_len; /* .eh_frame_hdr */
};

/* len bytes of the file; NULL: it has not so many. */
static const uint8_t *chunk(const struct rs_elf *e, uint64_t off, uint64_t len)
{
	Elf_Data *d;

	if (!len || off > e->size || len > e->size - off)
		return NULL;
	d = elf_getdata_rawchunk(e->elf, (int64_t)off, len, ELF_T_BYTE);
	return d && d->d_size == len ? d->d_buf : NULL;
}

static void read_dynamic(struct rs_elf *e, const GElf_Phdr *ph)
{
	const uint8_t *p = chunk(e, ph->p_offset, ph->p_filesz);

	for (uint64_t i = 0; p && i + sizeof(Elf64_Dyn) <= ph->p_filesz; i += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;

		memcpy(&d, p + i, sizeof(d));
		if (d.d_tag == DT_NULL)
			return;
		if (d.d_tag == DT_FLAGS_1 && d.d_un.d_val & DF_1_PIE)
			e->executable = true;
	}
}

static int read_segments(struct rs_elf *e)
{
	size_t n;

	if (elf_getphdrnum(e->elf, &n))
		return -ENOEXEC;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(e->elf, (int)i, &ph))
			return -ENOEXEC;
		if (ph.p_type == PT_LOAD && e->nseg < SEGMENTS)
			e->seg[e->nseg++] = (struct segment){ ph.p_vaddr, ph.p_offset, ph.p_filesz,
							      ph.p_flags & PF_X };
		else if (ph.p_type == PT_INTERP)
			e->executable = true;
		else if (ph.p_type == PT_DYNAMIC)
			read_dynamic(e, &ph);
		else if (ph.p_type == PT_GNU_EH_FRAME) {
			e->frames_va = ph.p_vaddr;
			e->frames_off = ph.p_offset;
			e->frames_len = ph.p_filesz;
		}
	}
	return 0;
}

int rs_elf_open(int fd, struct rs_elf **ret)
{
	struct rs_elf *e;
	struct stat st;
	GElf_Ehdr eh;
	int r = -ENOEXEC;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(Elf64_Ehdr))
		return -ENOEXEC;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->size = (uint64_t)st.st_size;
	elf_version(EV_CURRENT);
	e->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!e->elf || elf_kind(e->elf) != ELF_K_ELF || !gelf_getehdr(e->elf, &eh))
		goto fail;
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_machine != MACHINE ||
	    (eh.e_type != ET_EXEC && eh.e_type != ET_DYN))
		goto fail;
	e->executable = eh.e_type == ET_EXEC;
	r = read_segments(e);
	if (r)
		goto fail;
	if (elf_getshdrstrndx(e->elf, &e->shstr))
		e->shstr = 0;
	*ret = e;
	return 0;
fail:
	rs_elf_close(e);
	return r;
}

void rs_elf_close(struct rs_elf *e)
{
	if (!e)
		return;
	elf_end(e->elf);
	free(e);
}

void rs_elf_each_symbol(const struct rs_elf *e,
			bool (*fn)(void *arg, const char *name, uint64_t va, uint64_t size),
			void *arg)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(e->elf, scn))) {
		Elf_Data *data;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) ||
		    (sh.sh_type != SHT_SYMTAB && sh.sh_type != SHT_DYNSYM))
			continue;
		data = elf_getdata(scn, NULL);
		if (!data || !data->d_buf)
			continue;
		for (size_t i = 0; i + 1 <= data->d_size / sizeof(Elf64_Sym); i++) {
			const char *name;
			GElf_Sym sym;

			if (!gelf_getsym(data, (int)i, &sym))
				break;
			if (GELF_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF ||
			    !sym.st_value)
				continue;
			name = elf_strptr(e->elf, sh.sh_link, sym.st_name);
			if (name && !fn(arg, name, sym.st_value, sym.st_size))
				return;
		}
	}
}

struct wanted {
	struct rs_elf_sym *v;
	size_t n, found;
};

static bool match(void *arg, const char *name, uint64_t va, uint64_t size)
{
	struct wanted *w = arg;

	for (size_t i = 0; i < w->n; i++) {
		if (w->v[i].va || strcmp(w->v[i].name, name) != 0)
			continue;
		w->v[i].va = va;
		w->v[i].size = size;
		w->found++;
	}
	return w->found < w->n;
}

size_t rs_elf_symbols(const struct rs_elf *e, struct rs_elf_sym *syms, size_t n)
{
	struct wanted w = { syms, n, 0 };

	rs_elf_each_symbol(e, match, &w);
	return w.found;
}

bool rs_elf_is_executable(const struct rs_elf *e)
{
	return e->executable;
}

static const struct segment *segment_of(const struct rs_elf *e, uint64_t va)
{
	for (unsigned i = 0; i < e->nseg; i++) {
		if (va >= e->seg[i].va && va - e->seg[i].va < e->seg[i].len)
			return &e->seg[i];
	}
	return NULL;
}

uint64_t rs_elf_offset(const struct rs_elf *e, uint64_t va)
{
	const struct segment *s = segment_of(e, va);

	/* The file may be shorter than its headers say. */
	return s && s->exec && va - s->va + s->off < e->size ? va - s->va + s->off : UINT64_MAX;
}

/* At most max bytes from va on that the file has. */
static struct rs_elf_bytes loaded(const struct rs_elf *e, uint64_t va, size_t max)
{
	const struct segment *s = segment_of(e, va);
	struct rs_elf_bytes b = { .va = va };

	if (!s)
		return b;
	b.len = s->len - (va - s->va);
	if (b.len > max)
		b.len = max;
	b.ptr = chunk(e, s->off + (va - s->va), b.len);
	if (!b.ptr)
		b.len = 0;
	return b;
}

struct rs_elf_bytes rs_elf_code(const struct rs_elf *e, uint64_t va, size_t max)
{
	const struct segment *s = segment_of(e, va);

	return s && s->exec ? loaded(e, va, max) : (struct rs_elf_bytes){ 0 };
}

struct rs_elf_bytes rs_elf_text(const struct rs_elf *e, unsigned i)
{
	for (unsigned k = 0; k < e->nseg; k++) {
		if (e->seg[k].exec && i-- == 0)
			return loaded(e, e->seg[k].va, SIZE_MAX);
	}
	return (struct rs_elf_bytes){ 0 };
}

struct rs_elf_bytes rs_elf_section(const struct rs_elf *e, const char *name)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(e->elf, scn))) {
		const char *have;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS)
			continue;
		have = elf_strptr(e->elf, e->shstr, sh.sh_name);
		if (have && strcmp(have, name) == 0) {
			struct rs_elf_bytes b = { chunk(e, sh.sh_offset, sh.sh_size), sh.sh_addr,
						  sh.sh_size };

			return b.ptr ? b : (struct rs_elf_bytes){ 0 };
		}
	}
	return (struct rs_elf_bytes){ 0 };
}

/*
 * LSB core, .eh_frame_hdr: version, three encodings, two values, then a table of (first address, where its
 * entry is), sorted. Linkers write one shape of it: four-byte numbers relative to the header itself.
 */
#define DATAREL_SDATA4 0x3b
#define UDATA4	       0x03

struct frames {
	const uint8_t *table;
	uint64_t va;
	uint32_t n;
};

static bool read_frames(const struct rs_elf *e, struct frames *f)
{
	const uint8_t *h = chunk(e, e->frames_off, e->frames_len);

	if (!h || e->frames_len < 12 || h[0] != 1 || h[2] != UDATA4 || h[3] != DATAREL_SDATA4)
		return false;
	memcpy(&f->n, h + 8, sizeof(f->n));
	f->table = h + 12;
	f->va = e->frames_va;
	return f->n && f->n <= (e->frames_len - 12) / 8;
}

static uint64_t frame_start(const struct frames *f, size_t i)
{
	int32_t v;

	memcpy(&v, f->table + 8 * i, sizeof(v));
	return f->va + (uint64_t)(int64_t)v;
}

struct rs_elf_bytes rs_elf_function(const struct rs_elf *e, uint64_t va)
{
	uint64_t start, len = RS_ELF_FUNCTION_MAX;
	struct frames f;
	size_t lo = 0, hi;

	if (!read_frames(e, &f))
		return (struct rs_elf_bytes){ 0 };
	hi = f.n;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (frame_start(&f, mid) <= va)
			lo = mid;
		else
			hi = mid;
	}
	start = frame_start(&f, lo);
	if (lo + 1 < f.n && frame_start(&f, lo + 1) - start < len)
		len = frame_start(&f, lo + 1) - start;
	if (va < start || va - start >= len)
		return (struct rs_elf_bytes){ 0 };
	return rs_elf_code(e, start, len);
}
