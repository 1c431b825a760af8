/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http — requests through libcurl, in the agent's event loop.
 *
 * One thread: libcurl's multi interface tells which sockets and which time to wait for, and the loop
 * calls it back. (Names are looked up by libcurl's own helper thread, if at all.) Connections are kept
 * and shared between requests to the same place. Proxies come from the environment (http_proxy,
 * https_proxy, no_proxy), as for every libcurl program.
 *
 * A request struct is the caller's, made once and used again and again; what it holds (headers, the
 * answer's buffer) is its own. The body is read from the caller's iovecs, in place, and read again when
 * libcurl had to start over on a new connection: it must not move until `done` was called.
 * Redirects are not followed: headers with keys in them would go to another place.
 */
#ifndef RS_EXPORT_HTTP_H
#define RS_EXPORT_HTTP_H

#include <curl/curl.h>
#include <sys/uio.h>

#include "base/str.h"
#include "config/config.h"
#include "loop/loop.h"

#define RS_HTTP_ANSWER_MAX (4u << 20) /* bytes of an answer, after decompression (OTLP) */
#define RS_HTTP_NO_WAIT	   UINT64_MAX /* the answer names no time to wait */

struct rs_http {
	struct rs_loop *loop;
	CURLM *multi;
	struct rs_loop_timer timer;
	uint64_t wanted_ns, armed_ns; /* libcurl's time, and the timer's; UINT64_MAX: none */
	bool busy;		      /* inside libcurl: finished requests are collected later */
};

/* Where and how; of an exporter. Strings are the caller's and stay. NULL: not used. */
struct rs_http_conf {
	const char *unix_path;	     /* connect here; the URL's host is a name only */
	const char *ca, *cert, *key; /* PEM files */
	const char *userpwd;	     /* "user:password", percent-encoded */
	const char *user_agent;
	bool http2;	     /* HTTP/2 at once, without TLS too (gRPC) */
	bool no_proxy;	     /* whatever the environment says */
	bool insecure;	     /* the server's certificate is not checked */
	uint64_t timeout_ns; /* of a whole request; 0: none */
	uint64_t idle_ns;    /* nothing has come for so long: it is broken off; 0: never */
};

struct rs_http_req {
	struct rs_http *h;
	CURL *easy;
	struct curl_slist *headers;
	bool no_memory; /* a header could not be added */
	bool busy;

	/* To be set before the start: */
	const struct iovec *iov; /* body; niov 0: GET */
	int niov;
	size_t len; /* bytes of all iovecs */
	/* Each header line of the answer, trailers too; name as the server wrote it. May be NULL. */
	void (*on_header)(void *arg, struct str name, struct str value);
	/* The body of an answer with status 200, as it comes, instead of into `body`; false: break it off. May
	 * be NULL. */
	bool (*on_body)(void *arg, struct str bytes);
	void (*done)(void *arg, struct rs_http_req *r);
	void *arg;

	/* The answer: */
	CURLcode rc; /* CURLE_OK: there is a status */
	long status;
	uint64_t retry_after_ns; /* Retry-After, seconds or date; RS_HTTP_NO_WAIT */
	bool sent_all;		 /* the whole body had left when it ended */
	bool too_big;		 /* the answer was over RS_HTTP_ANSWER_MAX and was broken off */
	char *body;
	size_t body_len, body_cap;
	char error[CURL_ERROR_SIZE];

	int at; /* reading: iovec, and bytes of it */
	size_t off;
};

/* 0 or -ENOMEM, -errno of the timer. */
int rs_http_init(struct rs_http *h, struct rs_loop *loop);
/* No request is running any more. Harmless on a zeroed struct. */
void rs_http_release(struct rs_http *h);

/* Adds "Name: value" to the next request. */
void rs_http_header(struct rs_http_req *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Sends; done() is called later, never from here. 0 or -ENOMEM; headers are dropped then. */
int rs_http_start(struct rs_http *h, struct rs_http_req *r, const struct rs_http_conf *conf,
		  const char *url);
/* Can this file that an option names be used: 0, or -EINVAL and a line in err. NULL: there is none, which is fine. libcurl
 * would only say it of the first connection. */
int rs_http_check_pem(const struct rs_config *cfg, const char *file, char *err, size_t size);
/* Breaks off; done() is not called. Harmless when it is not running. */
void rs_http_cancel(struct rs_http_req *r);
/* Cancels and frees what the struct holds. */
void rs_http_req_release(struct rs_http_req *r);
/* "could not connect: …", "HTTP 503: text": the end of a request in words, without secrets. */
void rs_http_explain(const struct rs_http_req *r, char *buf, size_t size);

/* Retry-After: seconds (decimals are accepted), or an HTTP date. */
uint64_t rs_http_retry_after(struct str value, int64_t wall_now_s);

#endif
