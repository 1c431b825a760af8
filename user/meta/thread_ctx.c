// SPDX-License-Identifier: Apache-2.0
#include "thread_ctx.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MODULES_MAX 65536
#define STATIC_MAX  (1 << 24) /* bytes that a static block is from the thread pointer at most */

/* One file that is mapped into the process. */
struct object {
	uint32_t pid;
	Elf *elf;
	uint64_t start; /* where its first byte is mapped */
	bool program;	/* the executable, not a library */
	/* the symbol */
	Elf_Scn *symtab;
	size_t index;
	uint64_t value; /* offset in the file's own block */
};

static bool read_mem(uint32_t pid, uint64_t addr, void *to, size_t n)
{
	struct iovec local = { to, n }, remote = { (void *)(uintptr_t)addr, n };

	return process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

static bool find_symbol(struct object *o)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	GElf_Sym sym;

	while ((scn = elf_nextscn(o->elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_DYNSYM || !sh.sh_entsize)
			continue;
		data = elf_getdata(scn, NULL);
		for (size_t i = 0; data && i < sh.sh_size / sh.sh_entsize; i++) {
			const char *name;

			if (!gelf_getsym(data, (int)i, &sym) ||
			    GELF_ST_TYPE(sym.st_info) != STT_TLS || sym.st_shndx == SHN_UNDEF)
				continue;
			name = elf_strptr(o->elf, sh.sh_link, sym.st_name);
			if (!name || strcmp(name, RS_THREAD_CTX_SYMBOL) != 0)
				continue;
			o->symtab = scn;
			o->index = i;
			o->value = sym.st_value;
			return true;
		}
	}
	return false;
}

static bool header_of_type(Elf *elf, uint32_t type, GElf_Phdr *ret)
{
	size_t n = 0;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (gelf_getphdr(elf, (int)i, ret) && ret->p_type == type)
			return true;
	}
	return false;
}

/* What is added to the file's addresses to have the process's. */
static uint64_t bias(const struct object *o)
{
	GElf_Phdr ph;

	if (!header_of_type(o->elf, PT_LOAD, &ph))
		return o->start;
	return o->start - (ph.p_vaddr & ~(uint64_t)0xfff) + (ph.p_offset & ~(uint64_t)0xfff);
}

/* The program's block lies at a fixed place: below the thread pointer on x86-64, above it on AArch64. */
static bool local_exec(const struct object *o, struct rs_bpf_tlsvar *ret)
{
	GElf_Ehdr eh;
	GElf_Phdr tls;
	uint64_t align;

	if (!gelf_getehdr(o->elf, &eh) || !header_of_type(o->elf, PT_TLS, &tls))
		return false;
	align = tls.p_align ? tls.p_align : 1;
	if (eh.e_machine == EM_X86_64)
		ret->offset = (int64_t)(o->value - tls.p_memsz -
					((-tls.p_vaddr - tls.p_memsz) & (align - 1)));
	else if (eh.e_machine == EM_AARCH64)
		ret->offset = (int64_t)(o->value + 16 + ((tls.p_vaddr - 16) & (align - 1)));
	else
		return false;
	ret->module = 0;
	return true;
}

static bool set_dynamic(struct rs_bpf_tlsvar *ret, uint64_t module, uint64_t offset)
{
	if (!module || module >= MODULES_MAX || offset >= STATIC_MAX)
		return false;
	*ret = (struct rs_bpf_tlsvar){ .offset = (int64_t)offset, .module = module };
	return true;
}

static bool set_static(struct rs_bpf_tlsvar *ret, uint64_t offset)
{
	int64_t d = (int64_t)offset;

	if (d >= STATIC_MAX || d <= -STATIC_MAX || !d)
		return false;
	*ret = (struct rs_bpf_tlsvar){ .offset = d };
	return true;
}

/* What the loader made of a relocation that concerns the variable. */
static bool from_got(const struct object *o, const GElf_Rela *r, bool named,
		     struct rs_bpf_tlsvar *ret)
{
	uint64_t slot[2], pair[2];

	if (!read_mem(o->pid, bias(o) + r->r_offset, slot, sizeof(slot)))
		return false;
	switch (GELF_R_TYPE(r->r_info)) {
	case R_X86_64_TPOFF64:
	case R_AARCH64_TLS_TPREL:
		return set_static(ret, slot[0]);
	case R_X86_64_TLSDESC:
	case R_AARCH64_TLSDESC:
		if (set_static(ret, slot[1]))
			return true;
		return read_mem(o->pid, slot[1], pair, sizeof(pair)) &&
		       set_dynamic(ret, pair[0], pair[1]);
	case R_X86_64_DTPMOD64:
	case R_AARCH64_TLS_DTPMOD:
		/* Without a name it is the whole block's: the variable's place in it is the symbol's value. */
		return set_dynamic(ret, slot[0], named ? slot[1] : o->value);
	}
	return false;
}

static bool is_tls(uint64_t info, bool named)
{
	switch (GELF_R_TYPE(info)) {
	case R_X86_64_TPOFF64:
	case R_AARCH64_TLS_TPREL:
	case R_X86_64_TLSDESC:
	case R_AARCH64_TLSDESC:
		return named;
	case R_X86_64_DTPMOD64:
	case R_AARCH64_TLS_DTPMOD:
		return true;
	}
	return false;
}

/* Relocations that name the variable; with named == false, those of the file's block as a whole. */
static bool from_relocations(const struct object *o, bool named, struct rs_bpf_tlsvar *ret)
{
	size_t wanted = named ? o->index : 0;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	GElf_Rela r;

	while ((scn = elf_nextscn(o->elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_RELA || !sh.sh_entsize ||
		    sh.sh_link != elf_ndxscn(o->symtab))
			continue;
		data = elf_getdata(scn, NULL);
		for (size_t i = 0; data && i < sh.sh_size / sh.sh_entsize; i++) {
			if (gelf_getrela(data, (int)i, &r) && GELF_R_SYM(r.r_info) == wanted &&
			    is_tls(r.r_info, named) && from_got(o, &r, named, ret))
				return true;
		}
	}
	return false;
}

/* 0, -ENOENT: not in this file, -ENOTSUP. */
static int look(struct object *o, int fd, struct rs_bpf_tlsvar *ret)
{
	int rc = -ENOENT;

	o->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!o->elf)
		return -ENOENT;
	if (gelf_getclass(o->elf) == ELFCLASS64 && find_symbol(o))
		rc = from_relocations(o, true, ret) || (o->program && local_exec(o, ret)) ||
				     from_relocations(o, false, ret)
			     ? 0
			     : -ENOTSUP;
	elf_end(o->elf);
	return rc;
}

static int look_at(uint32_t pid, uint64_t start, const char *name, const struct stat *exe,
		   struct rs_bpf_tlsvar *ret)
{
	struct object o = { .pid = pid, .start = start };
	char path[4352];
	struct stat st;
	int fd, rc = -ENOENT;

	snprintf(path, sizeof(path), "/proc/%u/root%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -ENOENT;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		o.program = st.st_dev == exe->st_dev && st.st_ino == exe->st_ino;
		rc = look(&o, fd, ret);
	}
	close(fd);
	return rc;
}

int rs_thread_ctx_find(uint32_t pid, struct rs_bpf_tlsvar *ret)
{
	char line[4352], name[4200], path[64];
	unsigned long long start, off;
	struct stat exe = { 0 };
	int rc = -ENOENT;
	FILE *f;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOTSUP;
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	if (stat(path, &exe))
		return -errno;
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (rc == -ENOENT && fgets(line, sizeof(line), f)) {
		/* A file's first bytes, of which the program headers are, are mapped once. */
		if (sscanf(line, "%llx-%*x %*s %llx %*s %*s %4199[^\n]", &start, &off, name) == 3 &&
		    off == 0 && name[0] == '/')
			rc = look_at(pid, start, name, &exe, ret);
	}
	fclose(f);
	return rc;
}
