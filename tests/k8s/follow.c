// SPDX-License-Identifier: Apache-2.0
/*
 * follow — user/k8s without the agent, for check.py: options as of `ringspan trace`, questions on standard input,
 * a line of JSON for each on standard output.
 *
 *   uid UID      what is known of the pod with this uid in its cgroup's path
 *   ip ADDRESS   the uid of the pod at this address
 *   peer ADDRESS the same, of all that is followed
 *   status       counters, state, memory
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "k8s/k8s.h"

struct follow {
	struct rs_loop loop;
	struct rs_k8s k8s;
	struct rs_counters n;
	struct rs_loop_fd in;
	struct rs_loop_timer tick;
	char line[4096];
	size_t len;
};

static void say_pod(const struct rs_pod *p)
{
	if (!p) {
		printf("{}\n");
		return;
	}
	printf("{\"uid\":\"%.*s\",\"name\":\"%.*s\",\"namespace\":\"%.*s\",\"owner\":\"%.*s\",\"app\":\"%.*s\","
	       "\"top\":\"%.*s\",\"containers\":%u,\"deleted\":%s}\n",
	       STR_ARG(p->uid), STR_ARG(p->name), STR_ARG(p->namespace), STR_ARG(p->owner_name),
	       STR_ARG(rs_pod_label(p, STR("app"))), STR_ARG(p->top_uid), p->ncontainers,
	       p->deleted_ns ? "true" : "false");
}

static void say_status(struct follow *f)
{
	const struct rs_watch *w = &f->k8s.feed[0].watch;
	long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "re");

	if (statm && fscanf(statm, "%*s %ld", &pages) != 1)
		pages = 0;
	if (statm)
		fclose(statm);
	printf("{\"synced\":%s,\"pods\":%u,\"deleted\":%u,\"lists\":%llu,\"events\":%llu,\"failures\":%llu,"
	       "\"failing\":%u,\"too_big\":%llu,\"bad\":%llu,\"no_room\":%llu,\"rss\":%ld,\"heap\":%zu,\"error\":\"",
	       w->synced ? "true" : "false", f->k8s.feed[0].pods.nlive,
	       f->k8s.feed[0].pods.ndeleted, (unsigned long long)w->lists,
	       (unsigned long long)w->events, (unsigned long long)w->failed, w->failures,
	       (unsigned long long)w->split.too_big,
	       (unsigned long long)f->n.v[RS_C_K8S_BAD_OBJECT],
	       (unsigned long long)f->n.v[RS_C_K8S_NO_ROOM], pages * sysconf(_SC_PAGESIZE),
	       mallinfo2().uordblks);
	for (const char *c = w->last_error; *c; c++)
		putchar(*c == '"' || *c == '\\' || *c < ' ' ? ' ' : *c);
	printf("\"}\n");
}

static void answer(struct follow *f, struct str line)
{
	struct str verb, arg = str_cut(line, ' ', &verb);
	uint8_t ip[16] = { 0 };

	if (str_eq(verb, STR("uid"))) {
		say_pod(rs_pods_by_uid(&f->k8s.feed[0].pods, arg));
	} else if (str_eq(verb, STR("ip"))) {
		rs_pod_ip(arg, ip);
		say_pod(rs_pods_by_ip(&f->k8s.feed[0].pods, ip));
	} else if (str_eq(verb, STR("peer"))) {
		const struct rs_pod *p = NULL;

		rs_pod_ip(arg, ip);
		for (int i = 0; !p && i < f->k8s.nfeeds; i++)
			p = rs_pods_by_ip(&f->k8s.feed[i].pods, ip);
		say_pod(p);
	} else if (str_eq(verb, STR("hurry"))) {
		f->k8s.feed[0].pods.wanted = true;
		printf("{}\n");
	} else {
		say_status(f);
	}
}

static void on_input(void *arg, uint32_t events)
{
	struct follow *f = arg;
	ssize_t n = read(STDIN_FILENO, f->line + f->len, sizeof(f->line) - f->len);
	struct str rest, line;

	(void)events;
	if (n <= 0) {
		rs_loop_stop(&f->loop);
		return;
	}
	f->len += (size_t)n;
	rest = str_of(f->line, f->len);
	while (str_find(rest, '\n') < rest.len) {
		rest = str_cut(rest, '\n', &line);
		answer(f, line);
	}
	memmove(f->line, rest.ptr, rest.len);
	f->len = rest.len;
	fflush(stdout);
}

static void on_tick(void *arg)
{
	struct follow *f = arg;

	rs_k8s_tick(&f->k8s, rs_clock_mono());
}

int main(int argc, char **argv)
{
	struct rs_config cfg;
	struct follow *f = calloc(1, sizeof(*f));
	char err[512] = "";
	int rc;

	rs_config_init(&cfg, RS_CMD_trace);
	rc = rs_config_load(&cfg, argc - 1, argv + 1);
	if (rc || !f) {
		fprintf(stderr, "%s\n", cfg.err);
		return 2;
	}
	f->in.fd = f->tick.w.fd = -1;
	rc = rs_loop_init(&f->loop);
	if (!rc)
		rc = rs_k8s_open(&f->k8s, &f->loop, &cfg, &f->n, err, sizeof(err));
	if (!rc)
		rc = rs_loop_add(&f->loop, &f->in, STDIN_FILENO, EPOLLIN, on_input, f);
	if (!rc)
		rc = rs_loop_timer_start(&f->loop, &f->tick, 0, 20000000, on_tick, f);
	if (!rc)
		rc = rs_loop_run(&f->loop);
	if (rc)
		fprintf(stderr, "follow: %d %s\n", rc, err);
	rs_loop_del(&f->loop, &f->in);
	rs_loop_timer_stop(&f->loop, &f->tick);
	rs_k8s_close(&f->k8s);
	rs_loop_release(&f->loop);
	rs_config_release(&cfg);
	free(f);
	return rc ? 1 : 0;
}
