// SPDX-License-Identifier: Apache-2.0
/* Go's tables, and a whole program made here: an ELF file with two functions, one of which calls the other. */
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "go/buildinfo.h"
#include "go/pclntab.h"
#include "go/program.h"
#include "tls/elf.h"
#include "unit.h"

static void test_minor(void **state)
{
	static const struct {
		const char *text;
		int minor; /* -1: refused */
	} cases[] = {
		{ "go1.26.8", 26 },
		{ "go1.18", 18 },
		{ "go1.27rc1", 27 },
		{ "go1.26-custom X:y", 26 },
		{ "devel go1.28-abcdef Mon", 28 },
		{ "go2.1", -1 },
		{ "go1.", -1 },
		{ "", -1 },
		{ "go1.x", -1 },
		{ "devel +abc", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned minor = 0;
		int r = rs_go_minor(str_c(cases[i].text), &minor);

		assert_int_equal(r ? -1 : (int)minor, cases[i].minor);
	}
}

static size_t put_buildinfo(uint8_t *b, const char *version)
{
	memset(b, 0, 32);
	memcpy(b, "\xff Go buildinf:", 14);
	b[14] = 8;
	b[15] = 2;
	b[32] = (uint8_t)strlen(version);
	memcpy(b + 33, version, strlen(version));
	return 33 + strlen(version);
}

static void test_buildinfo(void **state)
{
	uint8_t b[128];
	size_t n = put_buildinfo(b, "go1.26.8");
	struct str v = STR_NONE;

	(void)state;
	assert_int_equal(rs_go_buildinfo(str_of((char *)b, n), &v), 0);
	assert_true(str_eq(v, STR("go1.26.8")));
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(rs_go_buildinfo(str_of((char *)b, cut), &v), -EBADMSG);
	b[15] = 0; /* of before 1.18 */
	assert_int_equal(rs_go_buildinfo(str_of((char *)b, n), &v), -EBADMSG);
	b[15] = 2;
	memset(b + 32, 0xff, 10); /* a length without end */
	assert_int_equal(rs_go_buildinfo(str_of((char *)b, sizeof(b)), &v), -EBADMSG);
}

/* A table of n functions, 16 bytes of code each, one after the other. */
static size_t put_pcln(uint8_t *b, uint32_t magic, uint64_t text, const char *const *names,
		       uint32_t n)
{
	uint64_t head[9] = { magic | 1ull << 48 | 8ull << 56, n, 0, text, 72 };
	uint32_t at = 72, name_at[8], u[2];
	uint64_t funcs;

	for (uint32_t i = 0; i < n; i++) {
		name_at[i] = at - 72;
		strcpy((char *)b + at, names[i]);
		at += (uint32_t)strlen(names[i]) + 1;
	}
	at = (at + 7) & ~7u;
	funcs = at;
	head[8] = funcs;
	memcpy(b, head, sizeof(head));
	for (uint32_t i = 0; i <= n; i++) {
		u[0] = i * 16;
		u[1] = (n + 1) * 8 + i * 8; /* its struct _func, from the table's beginning */
		memcpy(b + funcs + i * 8, u, i == n ? 4 : 8);
	}
	for (uint32_t i = 0; i < n; i++) {
		u[0] = i * 16;
		u[1] = name_at[i];
		memcpy(b + funcs + (n + 1) * 8 + i * 8, u, 8);
	}
	return funcs + (n + 1) * 8 + n * 8;
}

static const char *const names[] = { "runtime.newproc.func1", "runtime.runqput", "main.main" };

static void test_pclntab(void **state)
{
	uint8_t *b = calloc(1, 512);
	size_t n = put_pcln(b, 0xfffffff1, 0x401000, names, 3);
	struct rs_go_pcln p;
	struct rs_go_func f;

	(void)state;
	assert_int_equal(rs_go_pcln_open(str_of((char *)b, n), &p), 0);
	assert_int_equal(p.n, 3);
	assert_int_equal(p.text, 0x401000);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(rs_go_pcln_func(&p, i, &f));
		assert_true(str_eq(f.name, str_c(names[i])));
		assert_int_equal(f.start, i * 16);
		assert_int_equal(f.end, i * 16 + 16);
	}
	/* Cut anywhere: refused, or read no further than it goes (the sanitizer watches). */
	for (size_t cut = 0; cut < n; cut++) {
		char *less = malloc(cut ? cut : 1);

		memcpy(less, b, cut);
		if (rs_go_pcln_open(str_of(less, cut), &p) == 0) {
			for (uint32_t i = 0; i < p.n; i++)
				(void)rs_go_pcln_func(&p, i, &f);
		}
		free(less);
	}
	b[0] = 0xfb; /* Go 1.2 to 1.15 */
	assert_int_equal(rs_go_pcln_open(str_of((char *)b, n), &p), -EBADMSG);
	free(b);
}

#define TEXT 0x401000

struct image {
	uint8_t b[8192];
	size_t len;
	Elf64_Shdr sh[8];
	unsigned nsh;
	char strings[256];
	uint32_t nstrings;
};

static void add(struct image *m, const char *name, uint32_t type, uint64_t va, size_t at,
		size_t len)
{
	m->sh[m->nsh++] = (Elf64_Shdr){ .sh_name = m->nstrings,
					.sh_type = type,
					.sh_flags = va ? SHF_ALLOC : 0,
					.sh_addr = va,
					.sh_offset = at,
					.sh_size = len,
					.sh_addralign = 1 };
	strcpy(m->strings + m->nstrings, name);
	m->nstrings += (uint32_t)strlen(name) + 1;
}

/* A program of this Go. told: its table says where the code is. */
static int make(const char *version, bool told, bool calls)
{
	struct image *m = calloc(1, sizeof(*m));
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(eh),
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1,
			  .e_shentsize = sizeof(Elf64_Shdr) };
	Elf64_Phdr ph = { .p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_vaddr = TEXT - 0x1000,
			  .p_filesz = 0x1400,
			  .p_memsz = 0x1400,
			  .p_align = 0x1000 };
	int fd = memfd_create("program", MFD_CLOEXEC);
	size_t n;

#if defined(__x86_64__)
	static const uint8_t call[] = {
		0x90, 0x90, 0xe8, 9, 0, 0, 0
	}; /* at 2: to 2 + 5 + 9 = 16 */
	eh.e_machine = EM_X86_64;
#else
	static const uint8_t call[] = {
		0x1f, 0x20, 0x03, 0xd5, 3, 0, 0, 0x94
	}; /* at 4: BL 12 further */
	eh.e_machine = EM_AARCH64;
#endif
	if (calls)
		memcpy(m->b + 0x1000, call, sizeof(call));
	m->sh[m->nsh++] = (Elf64_Shdr){ 0 };
	m->strings[m->nstrings++] = 0;
	add(m, ".text", SHT_PROGBITS, TEXT, 0x1000, 48);
	n = put_pcln(m->b + 0x1100, 0xfffffff1, told ? TEXT : 0, names, 3);
	add(m, ".gopclntab", SHT_PROGBITS, TEXT + 0x100, 0x1100, n);
	n = put_buildinfo(m->b + 0x1300, version);
	add(m, ".go.buildinfo", SHT_PROGBITS, TEXT + 0x300, 0x1300, n);
	add(m, ".shstrtab", SHT_STRTAB, 0, 0x1400, 0);
	m->sh[m->nsh - 1].sh_size = m->nstrings;
	memcpy(m->b + 0x1400, m->strings, m->nstrings);
	eh.e_shoff = 0x1600;
	eh.e_shnum = (uint16_t)m->nsh;
	eh.e_shstrndx = (uint16_t)(m->nsh - 1);
	memcpy(m->b, &eh, sizeof(eh));
	memcpy(m->b + sizeof(eh), &ph, sizeof(ph));
	memcpy(m->b + 0x1600, m->sh, m->nsh * sizeof(m->sh[0]));
	assert_int_equal(write(fd, m->b, sizeof(m->b)), sizeof(m->b));
	free(m);
	return fd;
}

static int inspect(int fd, struct rs_go_program *g)
{
	struct rs_elf *e;
	int r = rs_elf_open(fd, &e);

	assert_int_equal(r, 0);
	r = rs_go_inspect(e, g);
	rs_elf_close(e);
	close(fd);
	return r;
}

static void test_program(void **state)
{
	struct rs_go_program g;

	(void)state;
	for (int told = 0; told < 2; told++) {
		assert_int_equal(inspect(make("go1.26.8", told, true), &g), 0);
		assert_string_equal(g.version, "go1.26.8");
		assert_int_equal(g.nplaces, 1);
		assert_int_equal(g.places[0].kind, RS_GO_SPAWN);
#if defined(__x86_64__)
		assert_int_equal(g.places[0].offset, 0x1002);
#else
		assert_int_equal(g.places[0].offset, 0x1004);
#endif
	}
	assert_int_equal(g.layout.goid, 152);
	assert_int_equal(inspect(make("go1.24.1", true, true), &g), 0);
	assert_int_equal(g.layout.goid, 160);
	assert_int_equal(g.layout.m_curg, 192);
	assert_int_equal(inspect(make("go1.17.13", true, true), &g), -ENOEXEC);
	assert_int_equal(inspect(make("go1.99", true, true), &g), -ENOTSUP);
	assert_string_equal(g.version, "go1.99");
	assert_int_equal(inspect(make("python", true, true), &g), -ENOEXEC);
	assert_int_equal(inspect(make("go1.26", true, false), &g), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_minor),
		cmocka_unit_test(test_buildinfo),
		cmocka_unit_test(test_pclntab),
		cmocka_unit_test(test_program),
	};

	return cmocka_run_group_tests_name("go", tests, NULL, NULL);
}
