// SPDX-License-Identifier: Apache-2.0
#include "version.h"

#include <bpf/libbpf.h>

void rs_kernel_libbpf_version(unsigned *ret_major, unsigned *ret_minor)
{
	*ret_major = libbpf_major_version();
	*ret_minor = libbpf_minor_version();
}
