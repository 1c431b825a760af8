/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_ctx — where a process publishes the active span of each of its threads (OTEP 4947): a thread-local
 * pointer named otel_thread_ctx_v1, in the dynamic symbols of the program or of one of its libraries.
 *
 * How compilers reach such a variable, and so where its place is written (ELF Handling For Thread-Local
 * Storage, U. Drepper; psABI supplements for x86-64 and AArch64):
 *   local exec          in the program: the distance from the thread pointer follows from the ELF file alone
 *   initial exec        the loader wrote that distance into a GOT entry (TPOFF64, TLS_TPREL)
 *   TLS descriptor      a GOT entry of two words: a function, and the distance or a pointer to module, offset
 *   general, local dyn. a GOT entry of two words: module, offset (DTPMOD64, DTPOFF64)
 * Modules are numbers in glibc's dynamic thread vector. Reads the process's memory and files; writes nothing.
 */
#ifndef RS_META_THREAD_CTX_H
#define RS_META_THREAD_CTX_H

#include <stdint.h>

#include "shared/config.h"

#define RS_THREAD_CTX_SYMBOL "otel_thread_ctx_v1"

/* 0; -ENOENT: no file of the process has the symbol; -ENOTSUP: where it is cannot be known; or -errno. */
int rs_thread_ctx_find(uint32_t pid, struct rs_bpf_tlsvar *ret);

#endif
