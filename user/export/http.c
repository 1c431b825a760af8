// SPDX-License-Identifier: Apache-2.0
#include "http.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"

#define MS	      1000000ull
#define NS_PER_S      1000000000ull
#define NEVER	      UINT64_MAX
#define CONNECT_MS    5000
#define UPLOAD_BUFFER (512 * 1024L)
#define ANSWER_KEEP   (64 * 1024) /* bytes of an answer's buffer kept for the next */
#define HEADER_MAX    8192
#define ERROR_TEXT    200 /* bytes of an answer shown */

/* One socket libcurl waits for. */
struct sock {
	struct rs_http *h;
	struct rs_loop_fd w;
};

/* -- the loop -- */

static void collect(struct rs_http *h)
{
	CURLMsg *m;
	int left;

	if (h->busy)
		return;
	h->busy = true;
	while ((m = curl_multi_info_read(h->multi, &left))) {
		struct rs_http_req *r = NULL;
		CURLcode rc = m->data.result;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &r);
		curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &r->status);
		curl_multi_remove_handle(h->multi, r->easy);
		curl_slist_free_all(r->headers);
		r->headers = NULL;
		r->busy = false;
		r->rc = rc;
		r->done(r->arg, r);
		if (!r->busy && r->body_cap > ANSWER_KEEP) {
			free(r->body);
			r->body = NULL;
			r->body_cap = 0;
		}
	}
	h->busy = false;
}

static void act(struct rs_http *h, curl_socket_t fd, int what)
{
	int running;

	curl_multi_socket_action(h->multi, fd, what, &running);
	collect(h);
}

static void on_socket(void *arg, uint32_t events)
{
	struct sock *s = arg;
	int what = 0;

	if (events & EPOLLIN)
		what |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		what |= CURL_CSELECT_OUT;
	if (events & (EPOLLERR | EPOLLHUP))
		what |= CURL_CSELECT_IN | CURL_CSELECT_OUT;
	act(s->h, s->w.fd, what);
}

/* Setting the timer costs a system call, and libcurl changes its mind several times per request: it is only
 * ever set earlier; when it goes off too early it is set anew. */
static int arm(struct rs_http *h, uint64_t now)
{
	h->armed_ns = h->wanted_ns;
	return rs_loop_timer_set(&h->timer, h->wanted_ns > now ? h->wanted_ns - now : 0, 0);
}

static void on_time(void *arg)
{
	struct rs_http *h = arg;
	uint64_t now = rs_clock_mono();

	h->armed_ns = NEVER;
	if (h->wanted_ns == NEVER)
		return;
	if (h->wanted_ns > now && arm(h, now) == 0)
		return;
	h->wanted_ns = NEVER;
	act(h, CURL_SOCKET_TIMEOUT, 0);
}

static uint32_t events_of(int what)
{
	return (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
}

static int socket_changed(CURL *easy, curl_socket_t fd, int what, void *arg, void *sockp)
{
	struct rs_http *h = arg;
	struct sock *s = sockp;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			rs_loop_del(h->loop, &s->w);
		free(s);
		return 0;
	}
	if (s)
		return rs_loop_mod(h->loop, &s->w, events_of(what)) ? -1 : 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -1;
	s->h = h;
	if (rs_loop_add(h->loop, &s->w, fd, events_of(what), on_socket, s)) {
		free(s);
		return -1;
	}
	curl_multi_assign(h->multi, fd, s);
	return 0;
}

static int timer_changed(CURLM *multi, long ms, void *arg)
{
	struct rs_http *h = arg;
	uint64_t now = rs_clock_mono();

	(void)multi;
	h->wanted_ns = ms < 0 ? NEVER : now + (uint64_t)ms * MS;
	return h->wanted_ns < h->armed_ns && arm(h, now) ? -1 : 0;
}

int rs_http_init(struct rs_http *h, struct rs_loop *loop)
{
	int rc;

	*h = (struct rs_http){ .loop = loop, .wanted_ns = NEVER, .armed_ns = NEVER };
	h->timer.w.fd = -1;
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return -ENOMEM;
	rc = rs_loop_timer_start(loop, &h->timer, 3600 * NS_PER_S, 0, on_time, h);
	if (rc)
		return rc;
	h->multi = curl_multi_init();
	if (!h->multi)
		return -ENOMEM;
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, socket_changed);
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, timer_changed);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
	return 0;
}

void rs_http_release(struct rs_http *h)
{
	if (!h->loop)
		return;
	/* Closing connections goes through the callbacks, which need the timer. */
	if (h->multi)
		curl_multi_cleanup(h->multi);
	rs_loop_timer_stop(h->loop, &h->timer);
	curl_global_cleanup();
	*h = (struct rs_http){ 0 };
}

/* -- one request -- */

void rs_http_header(struct rs_http_req *r, const char *fmt, ...)
{
	struct curl_slist *more = NULL;
	char line[HEADER_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < sizeof(line) && !strpbrk(line, "\r\n"))
		more = curl_slist_append(r->headers, line);
	if (more)
		r->headers = more;
	else
		r->no_memory = true;
}

static size_t read_body(char *to, size_t size, size_t n, void *arg)
{
	struct rs_http_req *r = arg;
	size_t room = size * n, done = 0;

	while (room > done && r->at < r->niov) {
		size_t left = r->iov[r->at].iov_len - r->off;
		size_t k = left < room - done ? left : room - done;

		memcpy(to + done, (const char *)r->iov[r->at].iov_base + r->off, k);
		done += k;
		r->off += k;
		if (r->off == r->iov[r->at].iov_len) {
			r->at++;
			r->off = 0;
		}
	}
	r->sent_all = r->at == r->niov;
	return done;
}

/* libcurl starts over: only ever from the beginning. */
static int seek_body(void *arg, curl_off_t offset, int origin)
{
	struct rs_http_req *r = arg;

	if (origin != SEEK_SET || offset)
		return CURL_SEEKFUNC_CANTSEEK;
	r->at = 0;
	r->off = 0;
	r->sent_all = false;
	return CURL_SEEKFUNC_OK;
}

static size_t write_body(char *from, size_t size, size_t n, void *arg)
{
	struct rs_http_req *r = arg;
	size_t bytes = size * n;
	long status = 0;

	if (r->on_body) {
		curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
		if (status == 200)
			return r->on_body(r->arg, str_of(from, bytes)) ? bytes : 0;
	}
	if (r->body_len + bytes > RS_HTTP_ANSWER_MAX) {
		r->too_big = true;
		return 0;
	}
	if (r->body_len + bytes + 1 > r->body_cap) {
		size_t cap = r->body_cap ? r->body_cap : 4096;
		char *p;

		while (cap < r->body_len + bytes + 1)
			cap *= 2;
		p = realloc(r->body, cap);
		if (!p)
			return 0;
		r->body = p;
		r->body_cap = cap;
	}
	memcpy(r->body + r->body_len, from, bytes);
	r->body_len += bytes;
	r->body[r->body_len] = 0;
	return bytes;
}

uint64_t rs_http_retry_after(struct str value, int64_t wall_now_s)
{
	char text[64];
	char *end;
	double s;
	time_t when;

	value = str_trim(value);
	snprintf(text, sizeof(text), "%.*s", STR_ARG(value));
	if (*text >= '0' && *text <= '9') {
		s = strtod(text, &end);
		/* More than a year: no time at all. */
		if (!*end && s >= 0 && s < 31536000)
			return (uint64_t)(s * 1e9);
		return RS_HTTP_NO_WAIT;
	}
	when = curl_getdate(text, NULL);
	if (when < 0)
		return RS_HTTP_NO_WAIT;
	return when > wall_now_s ? (uint64_t)(when - wall_now_s) * NS_PER_S : 0;
}

static size_t read_header(char *line, size_t size, size_t n, void *arg)
{
	struct rs_http_req *r = arg;
	struct str all = str_of(line, size * n), name, value;
	struct timespec ts;

	while (all.len && (all.ptr[all.len - 1] == '\n' || all.ptr[all.len - 1] == '\r'))
		all.len--;
	if (str_find(all, ':') == all.len)
		return size * n; /* a status line or the end */
	value = str_trim(str_cut(all, ':', &name));
	if (str_ieq(name, STR("retry-after"))) {
		clock_gettime(CLOCK_REALTIME, &ts);
		r->retry_after_ns = rs_http_retry_after(value, ts.tv_sec);
	}
	if (r->on_header)
		r->on_header(r->arg, name, value);
	return size * n;
}

int rs_http_check_pem(const struct rs_config *cfg, const char *file, char *err, size_t size)
{
	bool found = false;
	char *line = NULL;
	size_t room = 0;
	struct stat st;
	FILE *f = NULL;

	if (!file)
		return 0;
	/* Not opened before it is known to be a file: a pipe would hold us up. */
	errno = 0;
	if (stat(file, &st) == 0 && S_ISREG(st.st_mode))
		f = fopen(file, "re");
	if (!f)
		return rs_config_wrong(cfg, file, err, size, "%s: %s", file,
				       errno ? strerror(errno) : "not a regular file");
	while (!found && getline(&line, &room, f) > 0)
		found = strncmp(line, "-----BEGIN ", 11) == 0;
	free(line);
	fclose(f);
	return found ? 0
		     : rs_config_wrong(cfg, file, err, size,
				       "%s: there is no PEM in it (a line -----BEGIN …)", file);
}

static long to_ms(uint64_t ns)
{
	return ns ? (long)((ns + MS - 1) / MS) : 0;
}

static void set_options(struct rs_http_req *r, const struct rs_http_conf *c, const char *url)
{
	CURL *e = r->easy;
	long timeout = to_ms(c->timeout_ns);
	bool tls = strncmp(url, "https:", 6) == 0;

	curl_easy_reset(e);
	curl_easy_setopt(e, CURLOPT_PRIVATE, r);
	curl_easy_setopt(e, CURLOPT_URL, url);
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, r->error);
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, timeout);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS,
			 timeout && timeout < CONNECT_MS ? timeout : CONNECT_MS);
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, r->headers);
	curl_easy_setopt(e, CURLOPT_USERAGENT, c->user_agent);
	curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, c->unix_path);
	curl_easy_setopt(e, CURLOPT_USERPWD, c->userpwd);
	if (c->ca)
		curl_easy_setopt(e, CURLOPT_CAINFO, c->ca);
	curl_easy_setopt(e, CURLOPT_SSLCERT, c->cert);
	curl_easy_setopt(e, CURLOPT_SSLKEY, c->key);
	curl_easy_setopt(e, CURLOPT_HTTP_VERSION,
			 c->http2 && tls ? CURL_HTTP_VERSION_2TLS
			 : c->http2	 ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
					 : CURL_HTTP_VERSION_1_1);
	/* libcurl before 8.0 greets a second time on a kept connection without TLS, and the server hangs up
	 * (seen with Debian 12's 7.88.1): a new connection for each request. */
	if (c->http2 && !tls && curl_version_info(CURLVERSION_NOW)->version_num < 0x080000) {
		curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L);
		curl_easy_setopt(e, CURLOPT_FORBID_REUSE, 1L);
	}
	if (c->no_proxy)
		curl_easy_setopt(e, CURLOPT_NOPROXY, "*");
	if (c->insecure) {
		curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (c->idle_ns) {
		curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
		curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (to_ms(c->idle_ns) + 999) / 1000);
		curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
		curl_easy_setopt(e, CURLOPT_TCP_KEEPIDLE, 15L);
		curl_easy_setopt(e, CURLOPT_TCP_KEEPINTVL, 5L);
	}
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, write_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, read_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, r);
	if (!c->http2)
		curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip");
	if (!r->niov)
		return;
	curl_easy_setopt(e, CURLOPT_POST, 1L);
	curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->len);
	curl_easy_setopt(e, CURLOPT_READFUNCTION, read_body);
	curl_easy_setopt(e, CURLOPT_READDATA, r);
	curl_easy_setopt(e, CURLOPT_SEEKFUNCTION, seek_body);
	curl_easy_setopt(e, CURLOPT_SEEKDATA, r);
	curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER);
}

int rs_http_start(struct rs_http *h, struct rs_http_req *r, const struct rs_http_conf *conf,
		  const char *url)
{
	r->h = h;
	if (!r->easy)
		r->easy = curl_easy_init();
	/* libcurl would wait for "100 Continue", which backends do not send. */
	if (r->niov)
		rs_http_header(r, "Expect:");
	r->at = 0;
	r->off = r->body_len = 0;
	r->status = 0;
	r->too_big = r->sent_all = false;
	r->retry_after_ns = RS_HTTP_NO_WAIT;
	r->error[0] = 0;
	if (r->easy && !r->no_memory) {
		set_options(r, conf, url);
		r->busy = curl_multi_add_handle(h->multi, r->easy) == CURLM_OK;
	}
	if (r->busy)
		return 0;
	curl_slist_free_all(r->headers);
	r->headers = NULL;
	r->no_memory = false;
	return -ENOMEM;
}

void rs_http_cancel(struct rs_http_req *r)
{
	if (r->busy)
		curl_multi_remove_handle(r->h->multi, r->easy);
	r->busy = false;
	curl_slist_free_all(r->headers);
	r->headers = NULL;
}

void rs_http_req_release(struct rs_http_req *r)
{
	rs_http_cancel(r);
	if (r->easy)
		curl_easy_cleanup(r->easy);
	free(r->body);
	*r = (struct rs_http_req){ 0 };
}

void rs_http_explain(const struct rs_http_req *r, char *buf, size_t size)
{
	size_t n, k = 0;

	if (r->too_big) {
		snprintf(buf, size, "the answer is over %u bytes", RS_HTTP_ANSWER_MAX);
		return;
	}
	if (r->rc != CURLE_OK) {
		snprintf(buf, size, "%s", *r->error ? r->error : curl_easy_strerror(r->rc));
		return;
	}
	n = (size_t)snprintf(buf, size, "HTTP %ld%s", r->status, r->body_len ? ": " : "");
	for (size_t i = 0; i < r->body_len && k < ERROR_TEXT && n + 1 < size; i++, k++) {
		char c = r->body[i];

		buf[n++] = c >= ' ' && c < 0x7f ? c : ' ';
	}
	while (n && buf[n - 1] == ' ')
		n--;
	buf[n < size ? n : size - 1] = 0;
}
