// SPDX-License-Identifier: Apache-2.0
/* The tables of a Go program: its version (first byte odd) or its functions' names (even). */
#include "fuzz.h"
#include "go/buildinfo.h"
#include "go/pclntab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = str_of((const char *)data + 1, size ? size - 1 : 0), version;
	struct rs_go_pcln tab;
	struct rs_go_func f;
	unsigned minor;

	if (!size)
		return 0;
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
