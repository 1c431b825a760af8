// SPDX-License-Identifier: Apache-2.0
/*
 * For bench/tls.py: an empty program at places of a TLS library, until standard input ends.
 *   uprobes naive FILE    where SSL_read and SSL_write (and their _ex) begin, and return probes of the kernel's there
 *   uprobes points FILE   where ringspan's probes are
 * Prints "attached N" when it is.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tls/points.h"

#define UPROBE_MULTI	    48
#define UPROBE_MULTI_RETURN 1

static int load(void)
{
	/* r0 = 0; exit */
	const struct bpf_insn insns[] = { { .code = 0xb7 }, { .code = 0x95 } };
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = UPROBE_MULTI);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "empty", "GPL", insns, 2, &opts);
}

static int attach(int prog, const char *path, const uint64_t *offsets, uint32_t n, uint32_t flags)
{
	struct {
		uint32_t prog_fd, target_fd, attach_type, flags;
		uint64_t path, offsets, ref_ctr, cookies;
		uint32_t cnt, multi_flags, pid, pad;
	} attr = { .prog_fd = (uint32_t)prog,
		   .attach_type = UPROBE_MULTI,
		   .path = (uint64_t)(uintptr_t)path,
		   .offsets = (uint64_t)(uintptr_t)offsets,
		   .cnt = n,
		   .multi_flags = flags };
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	if (fd < 0) {
		fprintf(stderr, "uprobes: attach to %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return (int)fd;
}

int main(int argc, char **argv)
{
	struct rs_elf_sym syms[] = {
		{ .name = "SSL_read" },
		{ .name = "SSL_write" },
		{ .name = "SSL_read_ex" },
		{ .name = "SSL_write_ex" },
	};
	struct rs_tls_points p = { 0 };
	uint64_t at[RS_TLS_POINTS];
	uint32_t n = 0;
	struct rs_elf *e;
	int fd, prog;
	char c;

	if (argc != 3)
		return 2;
	fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	prog = load();
	if (fd < 0 || prog < 0 || rs_elf_open(fd, &e)) {
		fprintf(stderr, "uprobes: %s: %s\n", argv[2], strerror(errno));
		return 1;
	}
	if (strcmp(argv[1], "naive") == 0) {
		rs_elf_symbols(e, syms, 4);
		for (int i = 0; i < 4; i++) {
			if (syms[i].va)
				at[n++] = rs_elf_offset(e, syms[i].va);
		}
		attach(prog, argv[2], at, n, 0);
		attach(prog, argv[2], at, n, UPROBE_MULTI_RETURN);
	} else if (rs_tls_find(RS_TLS_LIB_openssl, e, &p) == 0) {
		while (n < p.n) {
			at[n] = p.v[n].at.offset;
			n++;
		}
		attach(prog, argv[2], at, n, 0);
	}
	printf("attached %u\n", n);
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	rs_elf_close(e);
	return 0;
}
