/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Layer 1: where a transfer's bytes are: the arguments of the system call, and descriptors. */
#ifndef RS_LIB_LOCATE_H
#define RS_LIB_LOCATE_H

#include "buffer.bpf.h"
#include "syscalls.bpf.h"

/* In a system call of 32-bit programs, which has other numbers and other structs. task: a trusted pointer. */
static __always_inline bool rs_task_compat(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread_info.status & TS_COMPAT;
#else
	return task->thread_info.flags & (1UL << TIF_32BIT);
#endif
}

/* The same through any pointer. */
static __always_inline bool rs_task_compat_any(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread_info.status) & TS_COMPAT;
#else
	return BPF_CORE_READ(task, thread_info.flags) & (1UL << TIF_32BIT);
#endif
}

/* The open file behind a descriptor of the task, or NULL. No trusted pointer. */
static __always_inline struct file *rs_fd_file(struct task_struct *task, __u32 fd)
{
	struct fdtable *fdt = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL;

	if (fd < BPF_CORE_READ(fdt, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(fdt, fd) + fd);
	return file;
}

/* The same when it is a socket, else NULL. */
static __always_inline struct file *rs_fd_socket(struct task_struct *task, __u32 fd)
{
	struct file *file = rs_fd_file(task, fd);

	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return NULL;
	return file;
}

/*
 * The same for the current task (a trusted pointer: 5.11), whose table is read in place. *ret_inode: the file's. With direct
 * false, a constant, it is for any kernel.
 */
static __always_inline struct file *rs_fd_socket_here(struct task_struct *task, __u32 fd,
						      struct inode **ret_inode, bool direct)
{
	struct fdtable *fdt;
	struct file *file = NULL;

	if (direct) {
		fdt = task->files->fdt;
		if (fd >= fdt->max_fds ||
		    bpf_probe_read_kernel(&file, sizeof(file), fdt->fd + fd) || !file)
			return NULL;
	} else {
		fdt = BPF_CORE_READ(task, files, fdt);
		if (fd >= BPF_CORE_READ(fdt, max_fds) ||
		    bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(fdt, fd) + fd) ||
		    !file)
			return NULL;
	}
	*ret_inode = BPF_CORE_READ(file, f_inode);
	return (BPF_CORE_READ(*ret_inode, i_mode) & S_IFMT) == S_IFSOCK ? file : NULL;
}

static __always_inline struct sock *rs_file_sock(struct file *file)
{
	struct socket *sock = BPF_CORE_READ(file, private_data);

	return BPF_CORE_READ(sock, sk);
}

/* Sets s->base and s->niov. False: the bytes cannot be known (counted). */
static __always_inline bool rs_locate(struct rs_scratch *s, struct pt_regs *regs,
				      enum rs_sys_kind kind)
{
	__u64 msg[2]; /* user_msghdr.msg_iov, msg_iovlen */

	switch (kind) {
	case RS_SYS_BUF:
		s->base = rs_sys_arg1(regs);
		s->niov = 0;
		return true;
	case RS_SYS_IOV:
		s->base = rs_sys_arg1(regs);
		s->niov = rs_sys_arg2(regs);
		return s->niov != 0;
	case RS_SYS_MMSG: /* of the first message; its header is a msghdr */
	case RS_SYS_MSG:
		if (bpf_probe_read_user(
			    msg, sizeof(msg),
			    (void *)(rs_sys_arg1(regs) +
				     __builtin_offsetof(struct user_msghdr, msg_iov)))) {
			rs_count(RS_N_READ_FAULT);
			return false;
		}
		s->base = msg[0];
		s->niov = msg[1];
		return s->niov != 0;
	case RS_SYS_SENDFILE:
	case RS_SYS_SPLICE:
		rs_count(RS_N_NODATA_SENDFILE);
		return false;
	case RS_SYS_NONE:
		break;
	}
	rs_count(RS_N_NODATA_OTHER);
	return false;
}

#endif
