// SPDX-License-Identifier: Apache-2.0
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/human.h"

#define CHUNK (64 * 1024)

static uint64_t tv_ns(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * 1000000000u + (uint64_t)tv.tv_usec * 1000u;
}

/* Resident set size in bytes, 0 when it cannot be known. */
static uint64_t own_rss(void)
{
	unsigned long long size, resident;
	FILE *f = fopen("/proc/self/statm", "re");
	int n;

	if (!f)
		return 0;
	n = fscanf(f, "%llu %llu", &size, &resident);
	fclose(f);
	return n == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

void rs_status_init(struct rs_status *s)
{
	struct utsname uts;
	struct rusage ru;

	memset(s, 0, sizeof(*s));
	rs_arena_init(&s->arena, CHUNK, RS_STATUS_ARENA);
	s->probes_end = &s->probes;
	s->processes_end = &s->processes;
	s->protocols_end = &s->protocols;
	s->services_end = &s->services;
	s->exporters_end = &s->exporters;
	s->last_record_age_ns = s->last_span_age_ns = s->reload_age_ns = RS_STATUS_NEVER;
	s->version = RS_VERSION;
	s->pid = (uint32_t)getpid();
	if (!uname(&uts))
		s->kernel = rs_status_str(s, str_c(uts.release));
	if (!getrusage(RUSAGE_SELF, &ru)) {
		s->cpu_user_ns = tv_ns(ru.ru_utime);
		s->cpu_system_ns = tv_ns(ru.ru_stime);
	}
	s->rss_bytes = own_rss();
}

void rs_status_release(struct rs_status *s)
{
	rs_arena_release(&s->arena);
}

#define ADD(s, list, type)                                                                         \
	({                                                                                         \
		struct type *e_ = rs_arena_alloc(&(s)->arena, sizeof(*e_));                        \
		if (e_) {                                                                          \
			memset(e_, 0, sizeof(*e_));                                                \
			*(s)->list##_end = e_;                                                     \
			(s)->list##_end = &e_->next;                                               \
		}                                                                                  \
		e_;                                                                                \
	})

struct rs_status_probe *rs_status_add_probe(struct rs_status *s)
{
	return ADD(s, probes, rs_status_probe);
}

struct rs_status_process *rs_status_add_process(struct rs_status *s)
{
	struct rs_status_process *p = ADD(s, processes, rs_status_process);

	if (!p)
		s->processes_left_out++;
	return p;
}

struct rs_status_protocol *rs_status_add_protocol(struct rs_status *s)
{
	return ADD(s, protocols, rs_status_protocol);
}

struct rs_status_service *rs_status_add_service(struct rs_status *s)
{
	return ADD(s, services, rs_status_service);
}

struct rs_status_exporter *rs_status_add_exporter(struct rs_status *s)
{
	struct rs_status_exporter *e = ADD(s, exporters, rs_status_exporter);

	if (e)
		e->last_success_age_ns = e->last_error_age_ns = RS_STATUS_NEVER;
	return e;
}

const char *rs_status_str(struct rs_status *s, struct str text)
{
	char *p = rs_arena_alloc(&s->arena, text.len + 1);

	if (!p)
		return "";
	if (text.len)
		memcpy(p, text.ptr, text.len);
	p[text.len] = 0;
	return p;
}

struct line {
	char *buf;
	size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void line_add(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->buf + l->len, l->size - l->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		l->len += (size_t)n < l->size - l->len ? (size_t)n : l->size - l->len - 1;
}

/* "lost: 12 kernel.ring_full (raise --ring-size)": what has no remedy was not of interest. */
static void add_loss(struct line *l, const struct rs_counter_info *c, uint64_t n)
{
	char count[RS_HUMAN];

	if (n && c->kind == RS_CK_DROPPED && *c->remedy)
		line_add(l, "%s%s %s.%s (%s)", l->len ? ", " : "lost: ", rs_human_count(count, n),
			 c->stage, c->name, c->remedy);
}

const char *rs_status_losses(char *buf, size_t size, const struct rs_counters *user,
			     const uint64_t *kernel)
{
	struct line l = { buf, size, 0 };

	for (int i = 0; kernel && i < RS_BPFC_COUNT; i++)
		add_loss(&l, &rs_bpf_counter_info[i], kernel[i]);
	for (int i = 0; i < RS_C_COUNT; i++)
		add_loss(&l, &rs_counter_info[i], user->v[i]);
	if (!l.len)
		line_add(&l, "nothing lost");
	return buf;
}

const char *rs_status_summary(char *buf, size_t size, const struct rs_counters *user,
			      const uint64_t *kernel, uint64_t elapsed_ns)
{
	uint64_t in = user->v[RS_C_TRACE_SERVER], out = user->v[RS_C_TRACE_CLIENT];
	uint64_t spans = user->v[RS_C_TRACE_SPANS], errors = user->v[RS_C_TRACE_ERRORS];
	double seconds = (double)elapsed_ns / 1e9;
	struct line l = { buf, size, 0 };
	char a[RS_HUMAN], b[RS_HUMAN], c[RS_HUMAN];

	line_add(&l, "%s span%s (%s received, %s sent)", rs_human_count(a, spans),
		 spans == 1 ? "" : "s", rs_human_count(b, in), rs_human_count(c, out));
	/* Where both ends are traced a request has two spans. */
	if (elapsed_ns)
		line_add(&l, " in %s, %.1f requests/s", rs_human_duration(a, elapsed_ns),
			 (double)(in > out ? in : out) / seconds);
	if (errors)
		line_add(&l, ", %s with an error", rs_human_count(a, errors));
	line_add(&l, "; ");
	rs_status_losses(buf + l.len, size - l.len, user, kernel);
	return buf;
}
