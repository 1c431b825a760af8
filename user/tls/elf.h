/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf — what an executable or library file says of itself: symbols, functions, code bytes.
 *
 * Addresses (va) are the file's own, before it is loaded; offsets are into the file, which is what
 * uprobes are attached by. What is asked for is read (never mapped: somebody may cut the file short), kept,
 * and valid until rs_elf_close. Malformed files give errors or nothing, never a wrong read.
 */
#ifndef RS_TLS_ELF_H
#define RS_TLS_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rs_elf;

/* A piece of the file that has an address. len 0: there is none. */
struct rs_elf_bytes {
	const uint8_t *ptr;
	uint64_t va;
	size_t len;
};

struct rs_elf_sym {
	const char *name; /* in: without version; searched exactly */
	uint64_t va;	  /* out; 0: not there */
	uint64_t size;	  /* out; 0: not known */
};

/* fd stays the caller's, and open until rs_elf_close. 0, or -errno: -ENOEXEC (no ELF file of this machine's
 * kind), -ENOMEM, … */
int rs_elf_open(int fd, struct rs_elf **ret);
/* NULL is fine. */
void rs_elf_close(struct rs_elf *e);

/* Fills in those of syms[n] that are functions defined here, from .symtab and .dynsym, in one pass.
 * Returns how many were found. */
size_t rs_elf_symbols(const struct rs_elf *e, struct rs_elf_sym *syms, size_t n);
/* Calls fn for every function defined here; false from fn ends it. */
void rs_elf_each_symbol(const struct rs_elf *e,
			bool (*fn)(void *arg, const char *name, uint64_t va, uint64_t size),
			void *arg);
/* ET_EXEC, or a PIE with an interpreter or DF_1_PIE. */
bool rs_elf_is_executable(const struct rs_elf *e);

/* File offset of an address in a segment that is loaded to be executed, or UINT64_MAX. */
uint64_t rs_elf_offset(const struct rs_elf *e, uint64_t va);
/* At most max bytes of code from va on, as far as the file has them. */
struct rs_elf_bytes rs_elf_code(const struct rs_elf *e, uint64_t va, size_t max);
/* Executable segment number i, whole; len 0: there are no more. */
struct rs_elf_bytes rs_elf_text(const struct rs_elf *e, unsigned i);
struct rs_elf_bytes rs_elf_section(const struct rs_elf *e, const char *name);
#define RS_ELF_FUNCTION_MAX 65536 /* bytes of a function that are looked at */
/* The function that va is in, by .eh_frame_hdr, which has the stripped ones too. len 0: not known. */
struct rs_elf_bytes rs_elf_function(const struct rs_elf *e, uint64_t va);

#endif
