// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd.h"
#include "status/control.h"
#include "status/view.h"

/* Prints one answer in the wanted form. 0 or -errno. */
static int print(const struct rs_config *cfg, struct rs_view *v, struct str json, FILE *out)
{
	if (cfg->json) {
		fwrite(json.ptr, 1, json.len, out);
		return 0;
	}
	return cfg->dump ? rs_view_dump(json, out) : rs_view_text(v, json, out);
}

/* Likewise, of what the user wants to see of it. */
static int print_wanted(const struct rs_config *cfg, struct rs_view *v, struct str json, FILE *out)
{
	struct rs_view_filter f = { .pids = cfg->pids.v, .npids = cfg->pids.n };
	size_t len;
	char *some;
	int e;

	for (uint32_t i = 0; i < cfg->comms.n && i < sizeof(f.comms) / sizeof(f.comms[0]); i++)
		f.comms[f.ncomms++] = cfg->comms.v[i];
	f.service = cfg->service;
	f.pod = cfg->pod;
	if (!rs_view_filters(&f))
		return print(cfg, v, json, out);
	some = rs_view_filter(&f, json, &len);
	if (!some)
		return -EBADMSG;
	e = print(cfg, v, str_of(some, len), out);
	if (cfg->json)
		fputc('\n', out);
	free(some);
	return e;
}

static int show(const struct rs_config *cfg, struct rs_view *v, FILE *out, char *err, size_t size)
{
	char *text;
	size_t len;
	int e = rs_control_ask(cfg->socket, "status", &text, &len, err, size);

	if (e)
		return e;
	if (rs_view_error(str_of(text, len), err, size)) {
		e = -EBUSY;
	} else {
		e = print_wanted(cfg, v, str_of(text, len), out);
		if (e)
			snprintf(err, size, "%s: what answers there is no ringspan agent",
				 cfg->socket);
	}
	free(text);
	return e;
}

/* What of a screen fits into the terminal: the top of it is what matters most. */
static size_t fitting(const char *screen, size_t len, int height)
{
	for (size_t i = 0; height > 0 && i < len; i++) {
		if (screen[i] == '\n' && --height == 0)
			return i;
	}
	return len;
}

/* The terminal while it is watched: a page of its own, lines cut instead of wrapped, keys as they are pressed. */
struct page {
	struct termios before;
	bool keys; /* there is a keyboard */
	int signals;
};

static void open_page(struct page *p)
{
	struct termios t;
	static const int ours[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		sigaddset(&set, ours[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	p->signals = signalfd(-1, &set, SFD_CLOEXEC);
	p->keys = isatty(STDIN_FILENO) && !tcgetattr(STDIN_FILENO, &p->before);
	if (p->keys) {
		t = p->before;
		t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		tcsetattr(STDIN_FILENO, TCSANOW, &t);
	}
	fputs("\033[?1049h\033[?7l\033[?25l", stdout);
}

static void close_page(struct page *p)
{
	fputs("\033[?25h\033[?7h\033[?1049l", stdout);
	fflush(stdout);
	if (p->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &p->before);
	close(p->signals);
}

/* True: it is to end. Else it was stopped, and goes on: the terminal was the shell's meanwhile. */
static bool on_signal(struct page *p)
{
	struct signalfd_siginfo s;

	if (read(p->signals, &s, sizeof(s)) != sizeof(s) || s.ssi_signo != SIGTSTP)
		return true;
	close_page(p);
	raise(SIGSTOP);
	open_page(p);
	return false;
}

/* For a second, or until a key is pressed. True: it is to end. */
static bool wait_on_page(struct page *p)
{
	struct pollfd fd[2] = { { .fd = p->signals, .events = POLLIN },
				{ .fd = p->keys ? STDIN_FILENO : -1, .events = POLLIN } };
	char key;

	if (poll(fd, 2, 1000) <= 0)
		return false;
	if (fd[0].revents)
		return on_signal(p);
	return read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q';
}

/* The screen that is to be shown next, malloc'ed. 0, or -errno and *ret_screen NULL. */
static int next_screen(const struct rs_config *cfg, struct rs_view *v, bool first,
		       char **ret_screen, size_t *ret_len)
{
	FILE *mem = open_memstream(ret_screen, ret_len);
	char err[512];
	int e;

	if (!mem)
		return -errno;
	v->width = rs_term_width(STDOUT_FILENO);
	e = show(cfg, v, mem, err, sizeof(err));
	if (e && !first)
		fprintf(mem, "%s\n", err); /* it may come back */
	fclose(mem);
	if (!e || !first)
		return 0;
	free(*ret_screen);
	rs_error("%s", err);
	return e;
}

/*
 * One screen a second. It is put together first and written at once, over the one before, so that it
 * does not flicker; what is not a terminal gets one after the other.
 */
static int watch(const struct rs_config *cfg, struct rs_view *v)
{
	bool tty = rs_term_moves(STDOUT_FILENO) && !cfg->json && !cfg->dump, end = false;
	struct page page;
	int e;

	for (bool first = true; !end; first = false) {
		char *screen;
		size_t len;

		e = next_screen(cfg, v, first, &screen, &len);
		if (e && first)
			return e;
		if (e)
			break;
		if (tty && first)
			open_page(&page);
		if (tty) {
			fputs("\033[H\033[J", stdout);
			len = fitting(screen, len, rs_term_height(STDOUT_FILENO));
		}
		fwrite(screen, 1, len, stdout);
		if (!tty && !cfg->json)
			fputc('\n', stdout);
		free(screen);
		e = fflush(stdout) && errno != EPIPE ? -errno : 0;
		if (ferror(stdout))
			break;
		if (tty)
			end = wait_on_page(&page);
		else
			nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	}
	if (tty)
		close_page(&page);
	return e;
}

int rs_cmd_status(struct rs_config *cfg)
{
	struct rs_view v;
	char err[512];
	int e;

	if (rs_cmd_no_args(cfg))
		return RS_EXIT_USAGE;
	if (cfg->json && cfg->dump) {
		rs_error("--json and --dump exclude each other");
		return RS_EXIT_USAGE;
	}
	rs_view_init(&v, rs_term_color(STDOUT_FILENO, (enum rs_color)cfg->color),
		     rs_term_width(STDOUT_FILENO));
	v.sort = (enum rs_view_sort)cfg->sort;
	if (cfg->watch) {
		e = watch(cfg, &v);
	} else {
		e = show(cfg, &v, stdout, err, sizeof(err));
		if (e)
			rs_error("%s", err);
	}
	rs_view_release(&v);
	return e ? RS_EXIT_FAILED : RS_EXIT_OK;
}
