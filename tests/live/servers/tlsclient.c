// SPDX-License-Identifier: Apache-2.0
/*
 * An HTTPS client over OpenSSL that does what probes in a program must not disturb.
 * tlsclient MODE PORT COUNT PREFIX: GET /PREFIX0, /PREFIX1, … on one connection. Modes:
 *  plain    nothing special
 *  seccomp  after the handshake and one request, only read, write and exit are allowed (strict mode)
 *  unwind   inside the library's reads, the whole stack must be seen by backtrace(3)
 *  fibers   two connections by turns, each on a stack of its own; the switch is inside the library's reads
 */
#include <arpa/inet.h>
#include <errno.h>
#include <execinfo.h>
#include <linux/seccomp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static const char *mode, *prefix;
static int port, count;
static ucontext_t fiber[2], main_ctx;
static int running, ended[2], result[2];

static int is(const char *m)
{
	return strcmp(mode, m) == 0;
}

static void yield(void)
{
	int me = running;

	if (ended[!me])
		return;
	running = !me;
	swapcontext(&fiber[me], &fiber[!me]);
}

/* The outermost frame must be there: libc's start, below main. */
static void look(void)
{
	void *at[64];
	int n = backtrace(at, 64);
	char **names = backtrace_symbols(at, n);
	int ok = 0;

	for (int i = 0; i < n; i++)
		ok |= strstr(names[i], "__libc_start_main") != NULL;
	free(names);
	if (!ok) {
		fprintf(stderr, "the stack ends after %d frames\n", n);
		_exit(9);
	}
}

static int bio_read(BIO *b, char *to, int n)
{
	int fd = (int)(long)BIO_get_data(b), r;

	BIO_clear_retry_flags(b);
	if (is("unwind"))
		look();
	if (is("fibers"))
		yield();
	do
		r = (int)read(fd, to, (size_t)n);
	while (r < 0 && errno == EINTR);
	return r;
}

static int bio_write(BIO *b, const char *from, int n)
{
	return (int)write((int)(long)BIO_get_data(b), from, (size_t)n);
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
	(void)b;
	(void)num;
	(void)ptr;
	return cmd == BIO_CTRL_FLUSH;
}

static SSL *dial(SSL_CTX *ctx)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	SSL *s = SSL_new(ctx);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return NULL;
	if (is("unwind") || is("fibers")) {
		BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "own");
		BIO *b;

		BIO_meth_set_read(m, bio_read);
		BIO_meth_set_write(m, bio_write);
		BIO_meth_set_ctrl(m, bio_ctrl);
		b = BIO_new(m);
		BIO_set_init(b, 1);
		BIO_set_data(b, (void *)(long)fd);
		SSL_set_bio(s, b, b);
	} else {
		SSL_set_fd(s, fd);
	}
	return SSL_connect(s) == 1 ? s : NULL;
}

static int get(SSL *s, const char *kind, int i)
{
	char buf[8192], *end, *cl;
	int n = snprintf(buf, sizeof(buf), "GET /%s%s%d HTTP/1.1\r\nHost: localhost\r\n\r\n",
			 prefix, kind, i);
	int got = 0, want;

	if (SSL_write(s, buf, n) != n)
		return 4;
	do {
		n = SSL_read(s, buf + got, (int)sizeof(buf) - 1 - got);
		if (n <= 0)
			return 5;
		got += n;
		buf[got] = 0;
	} while (!(end = strstr(buf, "\r\n\r\n")));
	cl = strcasestr(buf, "content-length:");
	want = (int)(end + 4 - buf) + (cl ? atoi(cl + 15) : 0);
	while (got < want) {
		n = SSL_read(s, buf + got, (int)sizeof(buf) - 1 - got);
		if (n <= 0)
			return 6;
		got += n;
	}
	return strncmp(buf, "HTTP/1.1 200", 12) ? 7 : 0;
}

static int run(const char *kind)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *s = dial(ctx);
	int r = s ? 0 : 3;

	for (int i = 0; i < count && !r; i++) {
		r = get(s, kind, i);
		if (i == 0 && is("seccomp"))
			prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	}
	if (is("seccomp"))
		syscall(SYS_exit, r);
	return r;
}

static void on_fiber(int me)
{
	char kind[] = { (char)('a' + me), 0 };

	result[me] = run(kind);
	ended[me] = 1;
	if (!ended[!me]) {
		running = !me;
		setcontext(&fiber[!me]);
	}
	setcontext(&main_ctx);
}

int main(int argc, char **argv)
{
	volatile int back = 0;

	if (argc != 5)
		return 2;
	mode = argv[1];
	port = atoi(argv[2]);
	count = atoi(argv[3]);
	prefix = argv[4];
	if (!is("fibers"))
		return run("");
	for (int i = 0; i < 2; i++) {
		getcontext(&fiber[i]);
		fiber[i].uc_stack.ss_sp = malloc(1 << 18);
		fiber[i].uc_stack.ss_size = 1 << 18;
		makecontext(&fiber[i], (void (*)(void))on_fiber, 1, i);
	}
	getcontext(&main_ctx);
	if (!back) {
		back = 1;
		setcontext(&fiber[0]);
	}
	return result[0] ? result[0] : result[1];
}
