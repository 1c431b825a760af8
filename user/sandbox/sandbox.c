// SPDX-License-Identifier: Apache-2.0
#include "sandbox.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define NR_TOLD 512 /* system call numbers that are told once each */

/* The signal handler's: there is no other way to give it memory. */
static volatile sig_atomic_t told[NR_TOLD];
static uint64_t refused;

/* -- capabilities -- */

struct caps {
	uint64_t effective, permitted, inheritable;
};

static int get_caps(struct caps *c)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { 0 };

	if (syscall(SYS_capget, &h, d))
		return -errno;
	*c = (struct caps){ d[0].effective | (uint64_t)d[1].effective << 32,
			    d[0].permitted | (uint64_t)d[1].permitted << 32,
			    d[0].inheritable | (uint64_t)d[1].inheritable << 32 };
	return 0;
}

static int set_caps(const struct caps *c)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];

	for (int i = 0; i < 2; i++) {
		d[i].effective = (uint32_t)(c->effective >> 32 * i);
		d[i].permitted = (uint32_t)(c->permitted >> 32 * i);
		d[i].inheritable = (uint32_t)(c->inheritable >> 32 * i);
	}
	return syscall(SYS_capset, &h, d) ? -errno : 0;
}

/* The effective capabilities of the calling thread. */
static uint64_t effective_caps(void)
{
	struct caps c;

	return get_caps(&c) ? 0 : c.effective;
}

bool rs_sandbox_without(uint64_t caps, bool (*fn)(const void *arg), const void *arg)
{
	struct caps was, less;
	bool ok;

	if (get_caps(&was))
		return false;
	less = was;
	less.effective &= ~caps;
	if (set_caps(&less))
		return false;
	ok = fn(arg);
	(void)set_caps(&was); /* cannot fail: all of it is permitted */
	return ok;
}

static int drop_caps(uint64_t keep)
{
	struct caps c;
	int rc = get_caps(&c);

	if (rc)
		return rc;
	/* The bounding set takes CAP_SETPCAP; who started us without it has set it as wanted. */
	for (unsigned i = 0; i < 64; i++) {
		if (!(keep >> i & 1) && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
			(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	}
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	c.effective &= keep;
	c.permitted &= keep;
	c.inheritable = 0;
	return set_caps(&c);
}

/* -- system calls -- */

static char *put_number(char *p, unsigned n)
{
	char digits[12];
	int i = 0;

	do
		digits[i++] = (char)('0' + n % 10);
	while (n /= 10);
	while (i)
		*p++ = digits[--i];
	return p;
}

/* Only what a signal handler may do. */
static void on_refused(int signo, siginfo_t *info, void *ctx)
{
	static const char head[] = "ringspan: warning: the sandbox refused system call ",
			  tail[] = "; please report it (--sandbox off allows it)\n";
	ucontext_t *u = ctx;
	char line[sizeof(head) + sizeof(tail) + 12], *p = line;
	int err = errno, nr = info->si_syscall;

	(void)signo;
#if defined(__x86_64__)
	u->uc_mcontext.gregs[REG_RAX] = -EPERM;
#elif defined(__aarch64__)
	u->uc_mcontext.regs[0] = (unsigned long)-EPERM;
#else
#error "where does this architecture return a system call's result?"
#endif
	__atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
	if (nr >= 0 && nr < NR_TOLD && !told[nr]) {
		told[nr] = 1;
		p = (char *)memcpy(p, head, sizeof(head) - 1) + sizeof(head) - 1;
		p = put_number(p, (unsigned)nr);
		p = (char *)memcpy(p, tail, sizeof(tail) - 1) + sizeof(tail) - 1;
		if (write(STDERR_FILENO, line, (size_t)(p - line)) < 0)
			told[nr] = 0; /* perhaps the next time */
	}
	errno = err;
}

uint64_t rs_sandbox_refused(void)
{
	return __atomic_load_n(&refused, __ATOMIC_RELAXED);
}

static int allow(scmp_filter_ctx f, const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);

	/* Unknown to this libseccomp, or none of this architecture's (negative: a pseudo number). */
	return nr < 0 ? 0 : seccomp_rule_add(f, SCMP_ACT_ALLOW, nr, 0);
}

static int filter(bool kills)
{
	static const char *const names[] = {
#define RS_SYSCALL(name) #name,
#include "syscalls.def"
#undef RS_SYSCALL
	};
	struct sigaction sa = { .sa_sigaction = on_refused, .sa_flags = SA_SIGINFO | SA_NODEFER };
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_TRAP);
	int rc = f ? 0 : -ENOMEM;

	for (size_t i = 0; !rc && i < sizeof(names) / sizeof(names[0]); i++)
		rc = allow(f, names[i]);
	/* New threads, but no new processes. What clone3 is asked for cannot be seen: the C library goes
	 * back to clone when there is none. */
	if (!rc)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				      SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	if (!rc)
		rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	/* Signals to others only when there is a command to pass them on to; to itself: abort(). */
	if (!rc && kills)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(kill), 0);
	else if (!rc)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(kill), 1,
				      SCMP_A1_32(SCMP_CMP_EQ, 0));
	if (!rc)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				      SCMP_A0_32(SCMP_CMP_EQ, (uint32_t)getpid()));
	if (!rc && sigaction(SIGSYS, &sa, NULL))
		rc = -errno;
	if (!rc)
		(void)seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE,
				       2); /* a tree; older ones: a list */
	if (!rc)
		rc = seccomp_load(f);
	if (f)
		seccomp_release(f);
	return rc;
}

/* -- all of it -- */

void rs_sandbox_look(struct rs_sandbox *ret)
{
	*ret = (struct rs_sandbox){
		.caps = effective_caps(),
		.no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
		.seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2,
	};
}

int rs_sandbox_enter(uint64_t keep, struct rs_sandbox *ret)
{
	int rc = drop_caps(keep), err;

	if (!rc && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		rc = -errno;
	if (rc)
		return rc;
	err = filter(keep & RS_CAP(KILL));
	rs_sandbox_look(ret);
	ret->seccomp = !err;
	ret->seccomp_err = err;
	return 0;
}

const char *rs_sandbox_names(uint64_t caps, char *buf, size_t size)
{
	static const struct {
		unsigned cap;
		const char *name;
	} known[] = {
		{ CAP_BPF, "BPF" },
		{ CAP_PERFMON, "PERFMON" },
		{ CAP_SYS_ADMIN, "SYS_ADMIN" },
		{ CAP_NET_ADMIN, "NET_ADMIN" },
		{ CAP_SYS_PTRACE, "SYS_PTRACE" },
		{ CAP_DAC_READ_SEARCH, "DAC_READ_SEARCH" },
		{ CAP_CHECKPOINT_RESTORE, "CHECKPOINT_RESTORE" },
		{ CAP_DAC_OVERRIDE, "DAC_OVERRIDE" },
		{ CAP_KILL, "KILL" },
	};
	size_t n = 0, others;

	*buf = 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && n < size; i++) {
		if (!(caps >> known[i].cap & 1))
			continue;
		n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " " : "", known[i].name);
		caps &= ~(1ull << known[i].cap);
	}
	others = (size_t)__builtin_popcountll(caps);
	if (others && n < size)
		snprintf(buf + n, size - n, "%s%zu others", n ? " and " : "", others);
	else if (!n)
		snprintf(buf, size, "none");
	return buf;
}
