/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 1: the system calls that move bytes through a socket, per architecture: where their numbers
 * and arguments are, and what the arguments mean.
 */
#ifndef RS_LIB_SYSCALLS_H
#define RS_LIB_SYSCALLS_H

#include "base.bpf.h"

#if defined(__TARGET_ARCH_x86)

#define rs_sys_nr(regs)	  ((__u32)(regs)->orig_ax)
#define rs_sys_arg0(regs) ((regs)->di)
#define rs_sys_arg1(regs) ((regs)->si)
#define rs_sys_arg2(regs) ((regs)->dx)
#define rs_sys_arg3(regs) ((regs)->r10)
#define rs_sys_arg4(regs) ((regs)->r8)

enum {
	RS_NR_mmap = 9,
	RS_NR_read = 0,
	RS_NR_write = 1,
	RS_NR_readv = 19,
	RS_NR_writev = 20,
	RS_NR_sendfile = 40,
	RS_NR_sendto = 44,
	RS_NR_recvfrom = 45,
	RS_NR_sendmsg = 46,
	RS_NR_recvmsg = 47,
	RS_NR_splice = 275,
	RS_NR_recvmmsg = 299,
	RS_NR_sendmmsg = 307,
	RS_NR_preadv2 = 327,
	RS_NR_pwritev2 = 328,
	RS_NR_io_uring_enter = 426,
};

#elif defined(__TARGET_ARCH_arm64)

#define rs_sys_nr(regs)	  ((__u32)(regs)->syscallno)
#define rs_sys_arg0(regs) ((regs)->orig_x0)
#define rs_sys_arg1(regs) ((regs)->regs[1])
#define rs_sys_arg2(regs) ((regs)->regs[2])
#define rs_sys_arg3(regs) ((regs)->regs[3])
#define rs_sys_arg4(regs) ((regs)->regs[4])

enum {
	RS_NR_mmap = 222,
	RS_NR_read = 63,
	RS_NR_write = 64,
	RS_NR_readv = 65,
	RS_NR_writev = 66,
	RS_NR_sendfile = 71,
	RS_NR_splice = 76,
	RS_NR_sendto = 206,
	RS_NR_recvfrom = 207,
	RS_NR_sendmsg = 211,
	RS_NR_recvmsg = 212,
	RS_NR_recvmmsg = 243,
	RS_NR_sendmmsg = 269,
	RS_NR_preadv2 = 286,
	RS_NR_pwritev2 = 287,
	RS_NR_io_uring_enter = 426,
};

#else
#error "system call numbers of this architecture are not known"
#endif

/* Where a system call's bytes are. All of these have the socket's descriptor first. */
enum rs_sys_kind {
	RS_SYS_NONE,	 /* not one of ours */
	RS_SYS_BUF,	 /* (fd, buffer, length, ...) */
	RS_SYS_IOV,	 /* (fd, iovec array, count, ...) */
	RS_SYS_MSG,	 /* (fd, msghdr, ...) */
	RS_SYS_MMSG,	 /* (fd, mmsghdr array, count, ...) */
	RS_SYS_SENDFILE, /* (out, in, ...): no buffer of the process */
	RS_SYS_SPLICE,	 /* (in, offset, out, ...): no buffer of the process */
};

static __always_inline enum rs_sys_kind rs_sys_kind(__u32 nr)
{
	switch (nr) {
	case RS_NR_read:
	case RS_NR_write:
	case RS_NR_recvfrom:
	case RS_NR_sendto:
		return RS_SYS_BUF;
	case RS_NR_readv:
	case RS_NR_writev:
	case RS_NR_preadv2:
	case RS_NR_pwritev2:
		return RS_SYS_IOV;
	case RS_NR_recvmsg:
	case RS_NR_sendmsg:
		return RS_SYS_MSG;
	case RS_NR_recvmmsg:
	case RS_NR_sendmmsg:
		return RS_SYS_MMSG;
	case RS_NR_sendfile:
		return RS_SYS_SENDFILE;
	case RS_NR_splice:
		return RS_SYS_SPLICE;
	}
	return RS_SYS_NONE;
}

/* Direction of the calls above, but splice's, which depends on which end is the socket. */
static __always_inline enum rs_ev_dir rs_sys_dir(__u32 nr)
{
	switch (nr) {
	case RS_NR_read:
	case RS_NR_recvfrom:
	case RS_NR_readv:
	case RS_NR_preadv2:
	case RS_NR_recvmsg:
	case RS_NR_recvmmsg:
		return RS_DIR_IN;
	}
	return RS_DIR_OUT;
}

#endif
