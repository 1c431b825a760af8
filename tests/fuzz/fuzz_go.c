// SPDX-License-Identifier: Apache-2.0
/* A Go program (first byte 0xff, then the file), or its tables: its version (odd) or its functions' names (even). */
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "go/buildinfo.h"
#include "go/pclntab.h"
#include "go/program.h"
#include "tls/elf.h"

static void program(const uint8_t *data, size_t size)
{
	struct rs_go_program g;
	struct rs_elf *e;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, data, size) == (ssize_t)size && rs_elf_open(fd, &e) == 0) {
		if (rs_go_inspect(e, &g) == 0)
			FUZZ_CHECK(g.nplaces <= RS_GO_PLACES);
		rs_elf_close(e);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = str_of((const char *)data + 1, size ? size - 1 : 0), version;
	struct rs_go_pcln tab;
	struct rs_go_func f;
	unsigned minor;

	if (!size)
		return 0;
	if (data[0] == 0xff) {
		program(data + 1, size - 1);
		return 0;
	}
	if (data[0] & 1) {
		if (rs_go_buildinfo(in, &version) == 0) {
			FUZZ_CHECK(version.ptr >= in.ptr &&
				   version.ptr + version.len <= in.ptr + in.len);
			(void)rs_go_minor(version, &minor);
		}
		(void)rs_go_minor(in, &minor);
		return 0;
	}
	if (rs_go_pcln_open(in, &tab))
		return 0;
	for (uint32_t i = 0; i < tab.n; i++) {
		if (!rs_go_pcln_func(&tab, i, &f))
			continue;
		FUZZ_CHECK(f.end >= f.start);
		FUZZ_CHECK(str_find(f.name, '\0') == f.name.len);
	}
	return 0;
}
