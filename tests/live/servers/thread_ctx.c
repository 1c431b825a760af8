// SPDX-License-Identifier: Apache-2.0
/*
 * A program that publishes its process context (OTEP 4719) and the active span of each of its threads
 * (OTEP 4947), as an OpenTelemetry SDK does, and serves GET /{trace id}/{span id}: that span is active while it
 * asks PORT for /up; before it answers, when none is, it asks for /none.
 *
 *   thread_ctx PORT [LIBRARY]     prints the port it listens on
 *
 * The variable is in the program; with -DLIBRARY this file is a library that has it and nothing else, to be
 * linked (then the program is built with -DLINKED), or named to be loaded later.
 */
#ifdef LIBRARY

__thread void *otel_thread_ctx_v1;
void **otel_slot(void);
void **otel_slot(void)
{
	return &otel_thread_ctx_v1;
}

#else

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct record {
	uint8_t trace_id[16], span_id[8], valid, flags;
	uint16_t attributes;
};

#ifdef LINKED
void **otel_slot(void);
static void **slot(void)
{
	return otel_slot();
}
#else
__attribute__((visibility("default"))) __thread void *otel_thread_ctx_v1;
static void **(*loaded)(void);
static void **slot(void)
{
	return loaded ? loaded() : &otel_thread_ctx_v1;
}
#endif

static int upstream;

/* resource { service.name = "published" } */
static const char context[] = "\x0a\x1d\x0a\x1b\x0a\x0cservice.name\x12\x0b\x0a\x09published";

static void publish(void)
{
	struct {
		char signature[8];
		uint32_t version, size;
		uint64_t published;
		const char *payload;
	} * h;
	int fd = memfd_create("OTEL_CTX", 0);

	if (fd < 0 || ftruncate(fd, 4096))
		abort();
	h = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED)
		abort();
	memcpy(h->signature, "OTEL_CTX", 8);
	h->version = 2;
	h->size = sizeof(context) - 1;
	h->payload = context;
	h->published = 1;
}

static void ask(const char *path)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)upstream),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char buf[512];

	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		abort();
	dprintf(fd, "GET %s HTTP/1.1\r\nHost: up\r\nConnection: close\r\n\r\n", path);
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	close(fd);
}

static int digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct record rec = { .flags = 1 };
	char buf[4096];
	ssize_t n;

	*slot() = &rec;
	while ((n = read(fd, buf, sizeof(buf) - 1)) > 0) {
		for (int i = 0; i < 24; i++) {
			const char *at = buf + 5 + (i < 16 ? 2 * i : 2 * i + 1);
			uint8_t *to = i < 16 ? &rec.trace_id[i] : &rec.span_id[i - 16];

			*to = (uint8_t)(digit(at[0]) << 4 | digit(at[1]));
		}
		rec.valid = 1;
		ask("/up");
		rec.valid = 0;
		ask("/none");
		dprintf(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	}
	*slot() = NULL;
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int s = socket(AF_INET, SOCK_STREAM, 0);

	if (argc < 2)
		return 2;
	upstream = atoi(argv[1]);
#ifndef LINKED
	if (argc > 2) {
		void *lib = dlopen(argv[2], RTLD_NOW);

		if (!lib)
			return 1;
		loaded = (void **(*)(void))dlsym(lib, "otel_slot");
	}
#endif
	publish();
	if (bind(s, (struct sockaddr *)&at, sizeof(at)) || listen(s, 16) ||
	    getsockname(s, (struct sockaddr *)&at, &len))
		return 1;
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	for (;;) {
		int c = accept(s, NULL, NULL);
		pthread_t t;

		if (c >= 0 && pthread_create(&t, NULL, serve, (void *)(intptr_t)c) == 0)
			pthread_detach(t);
	}
}
#endif
