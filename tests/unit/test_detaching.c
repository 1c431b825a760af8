// SPDX-License-Identifier: Apache-2.0
/*
 * tls/tls, go/gos: files whose probes are given up, with a kernel of our own that takes its time. Whatever asks for it, only
 * so many go at once; what was not to be had meanwhile is found later; all that was attached is counted when it goes.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "go/gos.h"
#include "go/program.h"
#include "kernel/kernel.h"
#include "kernel/uprobe.h"
#include "tls/tls.h"
#include "unit.h"

#define AT_ONCE 32 /* files */
#define NEW	40

extern char **environ;

/* -- a kernel: detaching is done when it has been asked for three times -- */

struct rs_uprobe {
	bool going;
	unsigned asked;
};

static struct {
	unsigned attached, going, most;
} kernel;

int rs_uprobe_file(int fd, struct rs_uprobe_file *ret)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*ret = (struct rs_uprobe_file){ st.st_dev, st.st_ino, st.st_size, st.st_ctim };
	return 0;
}

bool rs_uprobe_same_file(const struct rs_uprobe_file *a, bool held, const struct rs_uprobe_file *b)
{
	(void)held;
	return a->dev == b->dev && a->ino == b->ino;
}

int rs_uprobe_attach(struct rs_kernel *k, enum rs_uprobe_prog prog, const char *path, uint32_t tgid,
		     const struct rs_uprobe_at *at, size_t n, struct rs_uprobe **ret)
{
	(void)k, (void)prog, (void)path, (void)tgid, (void)at, (void)n;
	*ret = calloc(1, sizeof(**ret));
	kernel.attached++;
	return 0;
}

bool rs_uprobe_guarded(const struct rs_uprobe *u)
{
	(void)u;
	return true;
}

bool rs_uprobe_in_the_way(const struct rs_uprobe *u)
{
	(void)u;
	return false;
}

void rs_uprobe_detach(struct rs_uprobe *u)
{
	kernel.attached -= u != NULL;
	free(u);
}

void rs_uprobe_let_go(struct rs_uprobe *u)
{
	if (!u)
		return;
	assert_false(u->going);
	u->going = true;
	if (++kernel.going > kernel.most)
		kernel.most = kernel.going;
}

bool rs_uprobe_gone(struct rs_uprobe *u)
{
	if (u && (!u->going || u->asked++ < 3))
		return false;
	kernel.going -= u != NULL;
	rs_uprobe_detach(u);
	return true;
}

bool rs_uprobe_by_process(const struct rs_kernel *k)
{
	(void)k;
	return false;
}

bool rs_uprobe_loaded(const struct rs_kernel *k, enum rs_uprobe_prog prog, const char **ret_reason)
{
	(void)k, (void)prog, (void)ret_reason;
	return true;
}

int rs_kernel_go(struct rs_kernel *k, uint32_t tgid, const struct rs_bpf_go *layout)
{
	(void)k, (void)tgid, (void)layout;
	return 0;
}

/* Every executable is one of Go. */
int rs_go_inspect(const struct rs_elf *e, struct rs_go_program *ret)
{
	(void)e;
	*ret = (struct rs_go_program){ .version = "go1.26.8", .nplaces = 2 };
	ret->places[1].kind = RS_GO_READ;
	return 0;
}

#define KERNEL ((struct rs_kernel *)&kernel) /* never looked into */

/* -- files -- */

static void shell(const char *format, ...)
{
	char cmd[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(cmd, sizeof(cmd), format, ap);
	va_end(ap);
	assert_int_equal(system(cmd), 0);
}

/* Copies with the numbers [from, to) behind their names. */
static void copies(const char *from_path, const char *name, unsigned from, unsigned to)
{
	shell("i=%u; while [ $i -lt %u ]; do cp %s %s$i || exit 1; i=$((i+1)); done", from, to,
	      from_path, name);
}

static void count_new(void *arg, const struct rs_tls_info *info, uint32_t procs)
{
	(void)procs;
	*(unsigned *)arg += strstr(info->path, "/libnewssl") != NULL;
}

static void test_libraries(void **state)
{
	static struct rs_counters n;
	char root[] = "/tmp/rs-detach-XXXXXX", path[128];
	uint64_t now = rs_clock_mono();
	struct rs_tls_info info[RS_TLS_PER_PROC];
	struct rs_tls_watch w;
	unsigned found = 0;
	bool excluded;

	(void)state;
#if !defined(__x86_64__)
	skip();
#endif
	memset(&kernel, 0, sizeof(kernel));
	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/usr/lib/libssl.so", root);
	shell("mkdir -p %s/usr/lib %s/old", root, root);
	copies("tests/fuzz/corpus/elf/openssl", path, 0, RS_TLS_FILES);
	rs_tls_init(&w, KERNEL, RS_TLS_ALWAYS, NULL, &n);
	rs_tls_look_system(&w, root);
	assert_int_equal(n.v[RS_C_TLS_ATTACHED], RS_TLS_FILES);
	/* Others take their place; they are all found, at last. */
	shell("mv %s/usr/lib/* %s/old", root, root);
	snprintf(path, sizeof(path), "%s/usr/lib/libnewssl.so", root);
	copies("tests/fuzz/corpus/elf/openssl", path, 0, NEW);
	for (int i = 0; i < 200 && found < NEW; i++) {
		now += 1100000000ull;
		rs_tls_tick(&w, now);
		found = 0;
		rs_tls_each(&w, count_new, &found);
	}
	assert_int_equal(found, NEW);
	assert_int_equal(n.v[RS_C_TLS_NO_ROOM], 0);
	assert_in_range(kernel.most, 1, AT_ONCE * RS_UPROBE_COUNT);
	/* A process with more of them than are followed. */
	for (unsigned i = 0; i <= RS_TLS_PER_PROC; i++) {
		struct stat st;

		snprintf(path, sizeof(path), "%s/usr/lib/libnewssl.so%u", root, i);
		assert_int_equal(stat(path, &st), 0);
		rs_tls_loads(&w, 1, major(st.st_dev) << 20 | minor(st.st_dev), st.st_ino);
	}
	assert_int_equal(rs_tls_process(&w, 1, info, &excluded), RS_TLS_PER_PROC);
	assert_int_equal(n.v[RS_C_TLS_NO_ROOM], 1);
	rs_tls_release(&w);
	assert_int_equal(n.v[RS_C_TLS_ATTACHED], n.v[RS_C_TLS_DETACHED]);
	assert_int_equal(kernel.attached, 0);
	assert_in_range(kernel.most, 1, AT_ONCE * RS_UPROBE_COUNT);
	shell("rm -r %s", root);
}

/* One that is not known gets its room while `ask` asks; then it ends. */
static void run(struct rs_gos *gs, const char *name, unsigned number)
{
	char path[160], *argv[] = { path, (char *)"1000", NULL };
	struct rs_gos_info info;
	pid_t pid;

	snprintf(path, sizeof(path), "%s%u", name, number);
	assert_int_equal(posix_spawn(&pid, path, NULL, NULL, argv, environ), 0);
	for (int i = 0; i < 200 && !rs_gos_process(gs, (uint32_t)pid, &info); i++)
		rs_gos_look(gs, (uint32_t)pid, true);
	assert_true(rs_gos_process(gs, (uint32_t)pid, &info));
	assert_true(info.tls);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	rs_gos_tick(gs);
}

static void test_programs(void **state)
{
	static struct rs_counters n;
	char dir[] = "/tmp/rs-detach-XXXXXX", path[128];
	struct rs_gos gs;

	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/program", dir);
	copies("$(command -v sleep)", path, 0, RS_GO_FILES + NEW);
	rs_gos_init(&gs, KERNEL, &n);
	for (unsigned i = 0; i < RS_GO_FILES + NEW; i++)
		run(&gs, path, i);
	assert_in_range(kernel.most, 1, AT_ONCE * 2);
	rs_gos_release(&gs);
	assert_int_equal(kernel.attached, 0);
	assert_in_range(kernel.most, 1, AT_ONCE * 2);
	shell("rm -r %s", dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
