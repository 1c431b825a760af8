/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel — the only part that needs privilege: loads and attaches the BPF programs, reads their ring
 * buffer, tells them policies. Nothing outside user/kernel/ knows libbpf.
 *
 * Order: rs_kernel_open (load) - rs_kernel_attach - rs_kernel_begin - rs_kernel_drain in the loop - rs_kernel_close.
 * Nothing is pinned: when the process ends, however it ends, the kernel takes everything away.
 * Not thread-safe.
 */
#ifndef RS_KERNEL_KERNEL_H
#define RS_KERNEL_KERNEL_H

#include "base/counters.h"
#include "base/str.h"
#include "shared/config.h"

struct rs_kernel;

enum rs_capture_mode {
	RS_CAPTURE_AUTO,    /* socket where the kernel has the tracepoints, else syscall */
	RS_CAPTURE_SOCKET,  /* tp_btf/sock_send_length, sock_recv_length (6.5+) */
	RS_CAPTURE_SYSCALL, /* tp_btf/sys_enter, sys_exit */
};

struct rs_kernel_opts {
	enum rs_capture_mode mode;
	size_t ring_bytes;	  /* power of two; 0: default */
	struct rs_bpf_config cfg; /* filters and sizes; abi and self_tgid are filled in by open */
	const uint32_t *pids;	  /* with cfg.filter_pid: processes to trace, with their children */
	size_t npids;
	uint32_t max_conns; /* that rs_kernel_live() has room for; 0: 65536 */
	const char
		*inject_refused; /* with cfg.inject: why it is not to be done after all; or NULL */
};

/* Why something failed, for a person: one line, with what to do. */
struct rs_kernel_err {
	char msg[512];
	bool unsupported; /* missing privilege or kernel feature: exit code 3 */
};

/* Loads the programs. 0 or -errno with *err filled. */
int rs_kernel_open(const struct rs_kernel_opts *opts, struct rs_kernel **ret,
		   struct rs_kernel_err *err);
/* Attaches. Nothing is captured yet, but processes that come and go are told of. */
int rs_kernel_attach(struct rs_kernel *k, struct rs_kernel_err *err);
/*
 * Finds the connections that exist already (RS_EVF_PRESENT opens), and capturing starts: from now on the ring fills, so
 * whatever takes long is done before.
 */
void rs_kernel_begin(struct rs_kernel *k);
/* NULL is fine. */
void rs_kernel_close(struct rs_kernel *k);

/* Readable when a record was marked urgent (a process seen for the first time); to be watched edge-triggered:
 * data comes without wakeups, and is drained on a timer. */
int rs_kernel_fd(const struct rs_kernel *k);

/* Gives up to `budget` records to fn, in order; ev is valid during the call, its length checked against
 * its type. `ahead` (or NULL) is told of most of them a few records earlier. Returns how many were taken. */
typedef void (*rs_event_fn)(void *arg, const struct rs_ev_hdr *ev);
size_t rs_kernel_drain(struct rs_kernel *k, size_t budget, rs_event_fn ahead, rs_event_fn fn,
		       void *arg);

/* How far records have been put into the ring, and how far they were read: see rs_ring_written(). */
uint64_t rs_kernel_written(const struct rs_kernel *k);
uint64_t rs_kernel_read_pos(const struct rs_kernel *k);

/* Sets one connection's copy policy; NULL: forget it. 0 or -errno. */
int rs_kernel_policy(struct rs_kernel *k, uint64_t conn, const struct rs_bpf_policy *policy);
/* Where a process publishes the active span of its threads. 0 or -errno. */
int rs_kernel_publisher(struct rs_kernel *k, uint32_t tgid, const struct rs_bpf_tlsvar *tls);
/* With --inject: the next request on a connection begins at this offset of what is sent. */
void rs_kernel_request_start(struct rs_kernel *k, uint64_t conn, uint64_t off);
/* Can sockets be put into a sockmap without harm to their readers (FIONREAD)? 1, 0, or -errno: not tried. */
int rs_kernel_sockmap_ok(void);
/* Adds a process to the filter. 0 or -errno. */
int rs_kernel_add_pid(struct rs_kernel *k, uint32_t tgid);

/* Capabilities (bits of linux/capability.h's numbers) that attaching more programs later takes. */
uint64_t rs_kernel_later_caps(const struct rs_kernel *k);
/* Does the kernel still let us use our maps? (Before 5.19, and where unprivileged BPF is off, not without
 * CAP_BPF.) */
bool rs_kernel_reachable(const struct rs_kernel *k);

/* With cfg.discover: what of a process is wanted; 0: all (enum rs_bpf_verdict). 0 or -errno. */
int rs_kernel_verdict(struct rs_kernel *k, uint32_t tgid, uint32_t verdict);
/* All verdicts are forgotten: the rules are others. */
void rs_kernel_forget_verdicts(struct rs_kernel *k);
/* Ports that rules of discovery name, one bit each: RS_PORT_BITS elements of 64. 0 or -errno. */
#define RS_PORT_BITS 1024
int rs_kernel_ports(struct rs_kernel *k, const uint64_t bits[RS_PORT_BITS]);
/* Those that a process listens on; all 0: none. */
void rs_kernel_listening(struct rs_kernel *k, uint32_t tgid, struct rs_bpf_listening *ret);
/* Connections of processes that were not captured until now are older than their capture: call before they are, and
 * after rs_kernel_ports(): who listens on those is found too.
 * tgid 0: of all. Before 6.1
 * all descriptors of the machine are looked at in any case. */
void rs_kernel_adopt(struct rs_kernel *k, uint32_t tgid);

/* This process runs Go, laid out so. 0 or -errno. The kernel side forgets it when it ends or executes. */
int rs_kernel_go(struct rs_kernel *k, uint32_t tgid, const struct rs_bpf_go *layout);

/* Calls fn for the cookie of every socket that has capture state now: what is not named is gone. 0 or -errno, then nothing is
 * known; -E2BIG: there are more than there is room for. */
int rs_kernel_live(struct rs_kernel *k, void (*fn)(void *arg, uint64_t conn), void *arg);

/* What the BPF programs have counted, of all CPUs; and records that were refused here. */
void rs_kernel_counters(struct rs_kernel *k, uint64_t ret[RS_BPFC_COUNT]);

/* One attach point, for `check` and `status`. */
struct rs_probe_state {
	const char *name;    /* e.g. "tp_btf/sock_send_length" */
	const char *purpose; /* in words */
	bool attached;
	bool wanted;	    /* false: belongs to the other backend, or switched off */
	const char *reason; /* why it is not attached, or "" */
};
/* All attach points; *ret is valid until the close. Returns their number. */
size_t rs_kernel_probes(const struct rs_kernel *k, const struct rs_probe_state **ret);
/* "socket" or "syscall". */
const char *rs_kernel_backend(const struct rs_kernel *k);

struct rs_kernel_usage {
	uint64_t map_bytes; /* memory of all maps, ring included */
	uint64_t run_ns;    /* BPF programs' run time since attach, 0 when statistics are off */
	uint64_t runs;
	bool stats_on;
};
void rs_kernel_usage(struct rs_kernel *k, struct rs_kernel_usage *ret);

/* One requirement of this machine, for `check`; works without privilege as far as it can. */
struct rs_feature {
	char name[48];
	bool ok;
	bool required;	  /* false: a feature is lost, not the agent */
	char detail[160]; /* what was found; when not ok: what to do */
};
/* Fills at most max; returns how many. */
size_t rs_kernel_features(struct rs_feature *ret, size_t max);

#endif
