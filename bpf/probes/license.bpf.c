// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";
