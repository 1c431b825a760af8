/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject — what --inject needs of the kernel beside the programs: a cgroup to attach to, and the knowledge
 * whether sockets in a sockmap still say how much can be read. Private to user/kernel/.
 *
 * Since commit 929e30f93125 some kernels answer FIONREAD on a socket in a sockmap with what is in the
 * sockmap's own queue, that is 0: programs that ask before they read then wait for ever.
 */
#ifndef RS_KERNEL_INJECT_H
#define RS_KERNEL_INJECT_H

/* 1: FIONREAD is right for a socket in a sockmap with a message verdict; 0: it is not; -errno: cannot be tried. */
int rs_inject_fionread(void);

/* Root of the cgroup v2 hierarchy, opened; or -errno (-ENOENT: none is mounted). The caller closes it. */
int rs_inject_cgroup(void);

#endif
