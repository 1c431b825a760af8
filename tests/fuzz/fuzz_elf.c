// SPDX-License-Identifier: Apache-2.0
/*
 * Target: tls/elf and what looks for TLS libraries in it. Any program on the node chooses the files we open here.
 * The seed is a library with the functions of OpenSSL that return at once.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "tls/points.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct rs_tls_points p;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct rs_elf *e;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (rs_elf_open(fd, &e) == 0) {
		for (int lib = 0; lib < RS_TLS_LIBRARIES; lib++) {
			int r = rs_tls_find((enum rs_tls_library)lib, e, &p);

			for (size_t i = 0; r == 0 && i < p.n; i++) {
				if (p.v[i].at.offset >= size)
					abort();
			}
		}
		(void)rs_elf_section(e, ".gopclntab");
		(void)rs_elf_function(e, 0x1000);
		rs_elf_close(e);
	}
	close(fd);
	return 0;
}
