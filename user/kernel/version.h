/* SPDX-License-Identifier: Apache-2.0 */
/* version — which libbpf the program runs with. */
#ifndef RS_KERNEL_VERSION_H
#define RS_KERNEL_VERSION_H

void rs_kernel_libbpf_version(unsigned *ret_major, unsigned *ret_minor);

#endif
