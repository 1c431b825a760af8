// SPDX-License-Identifier: Apache-2.0
/*
 * bugreport — one archive with what a maintainer asks for: what `check` says, the running agent's status,
 * options and last log lines, and facts of the machine. Nothing of what went over the wire is in it, and
 * no secrets: the options' values are masked by the agent (config/show.c), the environment and command
 * lines of processes are not read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include <jansson.h>

#include "base/log.h"
#include "base/str.h"
#include "cmd.h"
#include "status/control.h"
#include "status/view.h"

#define DIR_NAME "ringspan-bugreport"
#define TAR	 512
#define FILE_MAX (8u << 20) /* bytes of one member */

struct report {
	const struct rs_config *cfg;
	gzFile out;
	time_t now;
	bool failed;
};

/* -- the archive: POSIX.1-1988 tar (ustar), gzip -- */

static void member(struct report *r, const char *name, const char *text, size_t len)
{
	char head[TAR] = "", pad[TAR] = "";
	unsigned sum = 0;

	len = len < FILE_MAX ? len : FILE_MAX;
	snprintf(head, 100, DIR_NAME "/%s", name);
	memcpy(head + 100,
	       "0000644\0"
	       "0000000\0"
	       "0000000",
	       24);
	snprintf(head + 124, 12, "%011lo", (unsigned long)len);
	snprintf(head + 136, 12, "%011lo", (unsigned long)r->now);
	memset(head + 148, ' ', 8);
	head[156] = '0';
	memcpy(head + 257,
	       "ustar\0"
	       "00",
	       8);
	for (int i = 0; i < TAR; i++)
		sum += (unsigned char)head[i];
	snprintf(head + 148, 8, "%06o", sum);
	r->failed |= gzwrite(r->out, head, TAR) != TAR;
	r->failed |= len && gzwrite(r->out, text, (unsigned)len) != (int)len;
	len = (TAR - len % TAR) % TAR;
	r->failed |= len && gzwrite(r->out, pad, (unsigned)len) != (int)len;
}

static void member_end(struct report *r)
{
	char zeros[2 * TAR] = "";

	r->failed |= gzwrite(r->out, zeros, sizeof(zeros)) != (int)sizeof(zeros);
}

/* -- what is in it -- */

static void add_file(FILE *out, const char *path)
{
	char buf[16 * 1024];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf));

	fprintf(out, "== %s\n", path);
	if (n < 0)
		fprintf(out, "(%s)\n", strerror(errno));
	else
		fwrite(buf, 1, (size_t)n, out);
	if (n > 0 && buf[n - 1] != '\n')
		fputc('\n', out);
	if (fd >= 0)
		close(fd);
}

/* Lines of a file that begin with one of the words (with | between). */
static void add_lines(FILE *out, const char *path, const char *words)
{
	char line[512];
	FILE *in = fopen(path, "re");

	fprintf(out, "== %s\n", path);
	while (in && fgets(line, sizeof(line), in)) {
		struct str rest = str_c(words), one;

		while (rest.len) {
			rest = str_cut(rest, '|', &one);
			if (str_starts(str_c(line), one)) {
				fputs(line, out);
				break;
			}
		}
	}
	if (in)
		fclose(in);
}

static void machine(struct report *r, unsigned agent)
{
	static const char *const files[] = {
		"/proc/sys/kernel/unprivileged_bpf_disabled",
		"/proc/sys/kernel/perf_event_paranoid",
		"/proc/sys/kernel/kptr_restrict",
		"/proc/sys/kernel/bpf_stats_enabled",
		"/proc/sys/kernel/seccomp/actions_avail",
		"/proc/sys/net/core/bpf_jit_enable",
		"/sys/kernel/security/lockdown",
		"/sys/kernel/security/lsm",
		"/proc/self/cgroup",
		"/proc/self/uid_map",
		"/proc/loadavg",
	};
	struct utsname u;
	char *text = NULL, path[64];
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out) {
		r->failed = true;
		return;
	}
	if (!uname(&u))
		fprintf(out, "== kernel\n%s %s %s %s\n", u.sysname, u.release, u.version,
			u.machine);
	fprintf(out, "== CPUs\n%ld\n", sysconf(_SC_NPROCESSORS_ONLN));
	add_lines(out, "/etc/os-release", "NAME=|VERSION=|ID=");
	add_lines(out, "/proc/meminfo", "MemTotal|MemAvailable");
	add_lines(out, "/proc/filesystems", "nodev\tcgroup|nodev\tbpf|nodev\ttracefs");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		add_file(out, files[i]);
	if (agent) {
		snprintf(path, sizeof(path), "/proc/%u/status", agent);
		add_lines(out, path, "State|Threads|Uid|Cap|NoNewPrivs|Seccomp|Vm|Rss");
		snprintf(path, sizeof(path), "/proc/%u/limits", agent);
		add_file(out, path);
		snprintf(path, sizeof(path), "/proc/%u/cgroup", agent);
		add_file(out, path);
	}
	if (!fclose(out))
		member(r, "machine.txt", text, len);
	free(text);
}

/* What our own command prints, both streams. */
static void command(struct report *r, const char *name, const char *word, const char *option)
{
	char *text = malloc(FILE_MAX);
	size_t len = 0;
	ssize_t n;
	int fd[2];
	pid_t pid;

	if (!text || pipe2(fd, O_CLOEXEC)) {
		free(text);
		r->failed = true;
		return;
	}
	pid = fork();
	if (pid == 0) {
		dup2(fd[1], STDOUT_FILENO);
		dup2(fd[1], STDERR_FILENO);
		execl("/proc/self/exe", "ringspan", word, option, (char *)NULL);
		_exit(127);
	}
	close(fd[1]);
	while (pid > 0 && len < FILE_MAX && (n = read(fd[0], text + len, FILE_MAX - len)) > 0)
		len += (size_t)n;
	close(fd[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	member(r, name, text, len);
	free(text);
}

/* The answer to a request, or why there is none. Malloc'ed; NULL then. */
static char *ask(struct report *r, const char *name, const char *request, size_t *ret_len)
{
	char err[512], *text = NULL;

	if (rs_control_ask(r->cfg->socket, request, &text, ret_len, err, sizeof(err))) {
		member(r, name, err, strlen(err));
		return NULL;
	}
	member(r, name, text, *ret_len);
	return text;
}

static unsigned status(struct report *r)
{
	char *screen = NULL, *json;
	size_t len = 0, screen_len = 0;
	unsigned pid = 0;
	struct rs_view v;
	json_t *o;
	FILE *out;

	json = ask(r, "status.json", "status", &len);
	out = json ? open_memstream(&screen, &screen_len) : NULL;
	if (out) {
		rs_view_init(&v, false, 0);
		(void)rs_view_text(&v, str_of(json, len), out);
		rs_view_release(&v);
		if (!fclose(out))
			member(r, "status.txt", screen, screen_len);
		free(screen);
		o = json_loadb(json, len, 0, NULL);
		pid = (unsigned)json_integer_value(json_object_get(o, "pid"));
		json_decref(o);
	}
	free(json);
	return pid;
}

static void fill(struct report *r)
{
	static const char about[] =
		"What `ringspan bugreport` has collected. Look through it before you pass it on: it names\n"
		"this machine's processes and services and the addresses of backends, but nothing of what\n"
		"went over the wire, and no secrets.\n\n"
		"status.json, status.txt  the running agent, or why it could not be asked\n"
		"config.txt               its options that are set; secrets are masked\n"
		"log.txt                  its last log lines\n"
		"check.json               what this kernel and these rights allow\n"
		"version.json, machine.txt\n";
	unsigned pid;
	size_t len;

	member(r, "README.txt", about, sizeof(about) - 1);
	pid = status(r);
	free(ask(r, "config.txt", "config", &len));
	free(ask(r, "log.txt", "log", &len));
	command(r, "version.json", "version", "--json");
	command(r, "check.json", "check", "--json");
	machine(r, pid);
	member_end(r);
}

int rs_cmd_bugreport(struct rs_config *cfg)
{
	struct report r = { .cfg = cfg, .now = time(NULL) };
	char name[64] = DIR_NAME ".tar.gz";
	const char *path = cfg->output ? cfg->output : name;
	struct tm tm;
	int fd;

	if (rs_cmd_no_args(cfg))
		return RS_EXIT_USAGE;
	if (localtime_r(&r.now, &tm))
		strftime(name, sizeof(name), DIR_NAME "-%Y%m%d-%H%M%S.tar.gz", &tm);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	r.out = fd < 0 ? NULL : gzdopen(fd, "wb9");
	if (!r.out) {
		rs_error("cannot write %s: %s", path, strerror(errno));
		return RS_EXIT_FAILED;
	}
	fill(&r);
	if (gzclose(r.out) != Z_OK || r.failed) {
		rs_error("cannot write %s: %s", path, errno ? strerror(errno) : "failed");
		return RS_EXIT_FAILED;
	}
	printf("%s\n", path);
	return RS_EXIT_OK;
}
