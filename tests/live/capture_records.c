// SPDX-License-Identifier: Apache-2.0
/*
 * capture_records [OPTIONS]: captures and prints every record as one JSON object per line, flushed at
 * once. A line {"type":"ready",...} says that capturing has begun; SIGTERM or end of standard input
 * ends it, then the counters come. Driven by check_capture.py.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernel/kernel.h"

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void hex(const char *name, const uint8_t *p, size_t n)
{
	printf(",\"%s\":\"", name);
	for (size_t i = 0; i < n; i++)
		printf("%02x", p[i]);
	putchar('"');
}

static void text(const char *name, const char *p, size_t max)
{
	printf(",\"%s\":\"", name);
	for (size_t i = 0; i < max && p[i]; i++) {
		if ((unsigned char)p[i] < ' ' || p[i] == '"' || p[i] == '\\')
			printf("\\u%04x", (unsigned char)p[i]);
		else
			putchar(p[i]);
	}
	putchar('"');
}

static void on_open(const struct rs_ev_open *o)
{
	printf("\"open\",\"conn\":%llu,\"pid\":%u,\"tid\":%u,\"family\":%u,\"l4\":%u,\"role\":%u,\"lport\":%u,"
	       "\"rport\":%u,\"netns\":%u,\"cgroup\":%llu,\"start\":%llu,\"peer_pid\":%u",
	       o->conn, o->tgid, o->tid, o->family, o->l4, o->role, o->lport, o->rport, o->netns,
	       o->cgroup, o->start_ns, o->peer_tgid);
	hex("laddr", o->laddr, sizeof(o->laddr));
	hex("raddr", o->raddr, sizeof(o->raddr));
	text("comm", o->comm, sizeof(o->comm));
	text("path", o->path, sizeof(o->path));
}

static void on_event(void *arg, const struct rs_ev_hdr *h)
{
	const struct rs_ev_data *d = (const void *)h;
	const struct rs_ev_close *c = (const void *)h;
	const struct rs_ev_fact *f = (const void *)h;
	const struct rs_ev_proc *p = (const void *)h;

	if (*(bool *)arg)
		return;
	printf("{\"t\":%llu,\"flags\":%u,\"type\":", h->ts_ns, h->flags);
	switch ((enum rs_ev_type)h->type) {
	case RS_EV_OPEN:
		on_open((const void *)h);
		break;
	case RS_EV_DATA:
		printf("\"data\",\"conn\":%llu,\"pid\":%u,\"tid\":%u,\"dir\":\"%s\",\"off\":%llu,\"len\":%u,\"cap\":%u,"
		       "\"seq\":%u",
		       d->conn, d->tgid, d->tid, d->dir == RS_DIR_IN ? "in" : "out", d->off, d->len,
		       d->cap, d->seq);
		hex("tail", d->tail, d->tail_len);
		hex("data", d->data, d->cap);
		break;
	case RS_EV_CLOSE:
		printf("\"close\",\"conn\":%llu,\"pid\":%u,\"how\":%u", c->conn, c->tgid, c->how);
		break;
	case RS_EV_FACT:
		printf("\"fact\",\"conn\":%llu,\"fact\":%u,\"value\":%u", f->conn, f->fact,
		       f->value);
		break;
	case RS_EV_PROC:
		printf("\"proc\",\"pid\":%u,\"tid\":%u,\"event\":%u,\"signal\":%u,\"code\":%u,\"ppid\":%u,\"start\":%llu",
		       p->tgid, p->tid, p->event, p->signal, p->code, p->ppid, p->start_ns);
		text("comm", p->comm, sizeof(p->comm));
		break;
	default: /* the others are judged by spans */
		printf("\"other\"");
		break;
	}
	printf("}\n");
}

static void on_live(void *arg, uint64_t conn)
{
	printf("%s%llu", (*(int *)arg)++ ? "," : "", (unsigned long long)conn);
}

/* Commands on standard input: "policy CONN SKIP_IN SKIP_OUT STOP", "forget CONN", "pid PID", "live". */
static int command(struct rs_kernel *k, const char *line)
{
	unsigned long long conn, in, out;
	unsigned int v;
	int n = 0, r;

	if (sscanf(line, "policy %llu %llu %llu %u", &conn, &in, &out, &v) == 4) {
		struct rs_bpf_policy p = { .skip_until = { in, out }, .stop = v };

		r = rs_kernel_policy(k, conn, &p);
	} else if (sscanf(line, "forget %llu", &conn) == 1) {
		r = rs_kernel_policy(k, conn, NULL);
	} else if (sscanf(line, "pid %u", &v) == 1) {
		r = rs_kernel_add_pid(k, v);
	} else if (strncmp(line, "live", 4) == 0) {
		printf("{\"type\":\"live\",\"conns\":[");
		r = rs_kernel_live(k, on_live, &n);
		printf("]}\n");
	} else {
		r = -EINVAL;
	}
	printf("{\"type\":\"done\",\"r\":%d}\n", r);
	return r;
}

static void report(struct rs_kernel *k)
{
	uint64_t v[RS_BPFC_COUNT];
	struct rs_kernel_usage u;
	const struct rs_probe_state *p;
	size_t n;

	rs_kernel_counters(k, v);
	rs_kernel_usage(k, &u);
	printf("{\"type\":\"end\",\"backend\":\"%s\",\"map_bytes\":%llu,\"run_ns\":%llu,\"runs\":%llu",
	       rs_kernel_backend(k), (unsigned long long)u.map_bytes, (unsigned long long)u.run_ns,
	       (unsigned long long)u.runs);
	for (int i = 0; i < RS_BPFC_COUNT; i++)
		printf(",\"%s\":%llu", rs_bpf_counter_info[i].name, (unsigned long long)v[i]);
	printf(",\"probes\":[");
	n = rs_kernel_probes(k, &p);
	for (size_t i = 0; i < n; i++) {
		printf("%s{\"name\":\"%s\",\"wanted\":%d,\"attached\":%d", i ? "," : "", p[i].name,
		       p[i].wanted, p[i].attached);
		text("reason", p[i].reason, 200);
		printf("}");
	}
	printf("]}\n");
}

static void loop(struct rs_kernel *k, bool quiet)
{
	char line[256];
	size_t have = 0;

	while (!stop) {
		struct pollfd fds[] = { { .fd = rs_kernel_fd(k), .events = POLLIN },
					{ .fd = 0, .events = POLLIN } };

		poll(fds, 2, 5);
		while (rs_kernel_drain(k, 4096, NULL, on_event, &quiet) == 4096)
			;
		if (fds[1].revents) {
			ssize_t n = read(0, line + have, 1);

			if (n <= 0)
				stop = 1;
			else if (line[have] == '\n' || have + 2 == sizeof(line)) {
				line[have + 1] = 0;
				have = 0;
				command(k, line);
			} else {
				have++;
			}
		}
		fflush(stdout);
	}
	rs_kernel_drain(k, SIZE_MAX, NULL, on_event, &quiet);
}

static int usage(void)
{
	fprintf(stderr,
		"usage: capture_records [-b auto|socket|syscall] [-r RING] [-c CAP] [-H HEAD] [-p PID]... "
		"[-n COMM]... [-P PORT]... [-q]\n");
	return 2;
}

static int parse(int argc, char **argv, struct rs_kernel_opts *o, uint32_t *pids, bool *quiet)
{
	int c;

	while ((c = getopt(argc, argv, "b:r:c:H:p:n:P:q")) != -1) {
		switch (c) {
		case 'b':
			o->mode = strcmp(optarg, "socket") == 0	   ? RS_CAPTURE_SOCKET
				  : strcmp(optarg, "syscall") == 0 ? RS_CAPTURE_SYSCALL
								   : RS_CAPTURE_AUTO;
			break;
		case 'r':
			o->ring_bytes = strtoul(optarg, NULL, 0);
			break;
		case 'c':
			o->cfg.cap_bytes = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'H':
			o->cfg.head_bytes = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'p':
			if (o->npids == 16)
				return usage();
			pids[o->npids++] = (uint32_t)strtoul(optarg, NULL, 0);
			o->cfg.filter_pid = 1;
			break;
		case 'n':
			if (o->cfg.filter_comm == RS_FILTER_COMMS)
				return usage();
			strncpy(o->cfg.comm[o->cfg.filter_comm++], optarg, RS_COMM_LEN - 1);
			break;
		case 'P':
			if (o->cfg.filter_port == RS_FILTER_PORTS)
				return usage();
			o->cfg.port[o->cfg.filter_port++] = (uint16_t)strtoul(optarg, NULL, 0);
			break;
		case 'q':
			*quiet = true;
			break;
		default:
			return usage();
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct rs_kernel_opts opts = { .mode = RS_CAPTURE_AUTO };
	struct sigaction act = { .sa_handler = on_signal };
	struct rs_kernel_err err;
	struct rs_kernel *k = NULL;
	uint32_t pids[16];
	bool quiet = false;
	int r;

	r = parse(argc, argv, &opts, pids, &quiet);
	if (r)
		return r;
	opts.pids = pids;
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	r = rs_kernel_open(&opts, &k, &err);
	if (!r)
		r = rs_kernel_attach(k, &err);
	if (r) {
		fprintf(stderr, "%s\n", err.msg);
		rs_kernel_close(k);
		return err.unsupported ? 3 : 1;
	}
	rs_kernel_begin(k);
	printf("{\"type\":\"ready\",\"backend\":\"%s\"}\n", rs_kernel_backend(k));
	fflush(stdout);
	loop(k, quiet);
	report(k);
	rs_kernel_close(k);
	return 0;
}
