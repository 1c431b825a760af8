// SPDX-License-Identifier: Apache-2.0
#include "proc.h"

#include "attrs.h"
#include "facts.h"
#include "sdk.h"
#include "thread_ctx.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/digits.h"

#define ENV_MAX	  (128 * 1024) /* bytes of an environment that are looked at */
#define VALUE_MAX RS_RES_VALUE_MAX

/* What a process says of itself, while it is being collected. */
struct learn {
	struct rs_proc *p;
	struct rs_res own;
	struct str service, dd_service, dd_env, dd_version, resource_attrs;
	char exe[RS_EXEC_TEXT]; /* path, or empty */
	const struct rs_exec
		*was; /* it is gone: what was seen when it was executed; NULL: nothing */
};

void rs_procs_init(struct rs_procs *ps, uint32_t max, bool live, const char *host_root,
		   struct rs_counters *n)
{
	*ps = (struct rs_procs){ .live = live, .n = n };
	rs_map_init(&ps->by_tgid, max);
	rs_pool_init(&ps->pool, sizeof(struct rs_proc), max);
	rs_list_init(&ps->lru);
	if (live) {
		rs_containers_init(&ps->containers, host_root, n);
		rs_execs_init(&ps->execs);
	}
	if (live && gethostname(ps->host_buf, sizeof(ps->host_buf) - 1) == 0)
		ps->host = str_c(ps->host_buf);
}

void rs_procs_release(struct rs_procs *ps)
{
	struct rs_list *pos, *tmp;

	rs_list_for_each_safe (pos, tmp, &ps->lru) {
		struct rs_proc *p = rs_list_entry(pos, struct rs_proc, lru);

		rs_arena_release(&p->own_mem);
		rs_arena_release(&p->arena);
	}
	rs_containers_release(&ps->containers);
	rs_execs_release(&ps->execs);
	rs_map_release(&ps->by_tgid);
	rs_pool_release(&ps->pool);
}

/* OTEL_RESOURCE_ATTRIBUTES: key=value,key=value, values percent-encoded (OpenTelemetry specification,
 * resource SDK). A malformed member is left out; the others count. */
static void add_resource_attrs(struct rs_res *r, struct str list)
{
	while (list.len) {
		struct str item, key, value;
		char buf[VALUE_MAX];

		list = str_cut(list, ',', &item);
		value = str_cut(item, '=', &key);
		key = str_trim(key);
		if (key.len == item.len || !key.len || key.len > 255)
			continue;
		value = str_trim(value);
		rs_res_named(r, key, str_of(buf, rs_percent_decode(value, buf, sizeof(buf))));
	}
}

/* One NAME=VALUE of the environment. */
static void take_env(struct learn *l, struct str var)
{
	static const struct {
		struct str name;
		size_t off;
	} wanted[] = {
		{ { "OTEL_SERVICE_NAME", 17 }, offsetof(struct learn, service) },
		{ { "OTEL_RESOURCE_ATTRIBUTES", 24 }, offsetof(struct learn, resource_attrs) },
		{ { "DD_SERVICE", 10 }, offsetof(struct learn, dd_service) },
		{ { "DD_ENV", 6 }, offsetof(struct learn, dd_env) },
		{ { "DD_VERSION", 10 }, offsetof(struct learn, dd_version) },
	};
	/* How auto-instrumentation gets into a process. */
	static const struct str loaders[] = { { "JAVA_TOOL_OPTIONS", 17 },
					      { "NODE_OPTIONS", 12 },
					      { "PYTHONPATH", 10 } };
	struct str name, value = str_cut(var, '=', &name);

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (str_eq(name, wanted[i].name))
			*(struct str *)(void *)((char *)l + wanted[i].off) =
				rs_arena_str(&l->p->own_mem, str_at(value, 0, 8192));
	}
	for (size_t i = 0; i < sizeof(loaders) / sizeof(loaders[0]); i++)
		l->p->sdk |= str_eq(name, loaders[i]) && value.len &&
			     memmem(value.ptr, value.len, "opentelemetry", 13) != NULL;
}

static void read_env(struct learn *l)
{
	char path[64], buf[4096];
	size_t have = 0, total = 0;
	bool skipping = false; /* in a variable longer than buf */
	ssize_t r;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/environ", l->p->tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (total < ENV_MAX && (r = read(fd, buf + have, sizeof(buf) - have)) > 0) {
		struct str rest = str_of(buf, have + (size_t)r);

		total += (size_t)r;
		for (;;) {
			size_t at = str_find(rest, '\0');

			if (at == rest.len)
				break;
			if (!skipping)
				take_env(l, str_at(rest, 0, at));
			skipping = false;
			rest = str_from(rest, at + 1);
		}
		if (rest.len == sizeof(buf)) {
			/* Only the start of such a long one could be ours: take what fits. */
			if (!skipping)
				take_env(l, rest);
			skipping = true;
			rest.len = 0;
		}
		memmove(buf, rest.ptr, rest.len);
		have = rest.len;
	}
	close(fd);
}

/* And what was known when it was executed, if it is gone. */
static void read_exe(const struct rs_procs *ps, struct learn *l)
{
	rs_facts_exe(l->p->tgid, l->exe, sizeof(l->exe));
	if (l->exe[0])
		return;
	l->was = rs_execs_find(&ps->execs, l->p->tgid, l->p->start_ns);
	if (l->was)
		memcpy(l->exe, l->was->exe, sizeof(l->was->exe));
}

static void take_sdk_attr(void *arg, struct str key, struct str value)
{
	struct learn *l = arg;

	/* What the SDK is, it says of itself; these are our spans. */
	if (!str_starts(key, STR("telemetry.")))
		rs_res_named(&l->own, key, value);
}

/* The resource that the SDK publishes is the process's own word: it comes first. */
static void read_sdk(struct rs_procs *ps, struct learn *l)
{
	struct rs_bpf_tlsvar tls;
	struct rs_sdk sdk;
	size_t n;
	char *buf;

	if (rs_sdk_find(l->p->tgid, &sdk))
		return;
	l->p->sdk |= sdk.present;
	l->p->published = sdk.header;
	if (!sdk.header)
		return;
	if (ps->publisher && rs_thread_ctx_find(l->p->tgid, &tls) == 0)
		ps->publisher(ps->publisher_arg, l->p->tgid, &tls);
	buf = rs_arena_alloc(&l->p->own_mem, 8192);
	n = buf ? rs_sdk_read(l->p->tgid, &sdk, buf, 8192) : 0;
	rs_sdk_parse(str_of(buf, n), take_sdk_attr, l);
}

static const char *own_text(struct rs_arena *a, struct str text)
{
	char *p = rs_arena_alloc(a, text.len + 1);

	if (!p)
		return NULL;
	if (text.len)
		memcpy(p, text.ptr, text.len);
	p[text.len] = 0;
	return p;
}

/* The container's and the pod's names and labels, as rules ask for them. */
static void pod_facts(struct rs_procs *ps, struct rs_proc *p, const struct rs_pod *pod)
{
	const struct rs_container_facts *c = &p->c;
	const struct rs_pod_container *pc;
	struct rs_facts *f = &p->facts;
	struct rs_arena *a = &p->arena;
	struct rs_label *labels;
	bool late = c->pod_uid.len && !pod && ps->pods;

	f->container = own_text(a, c->pod_container.len ? c->pod_container : c->name);
	f->pod = late && !c->pod_name.len ? NULL : own_text(a, c->pod_name);
	f->k8s_namespace = late && !c->pod_namespace.len ? NULL : own_text(a, c->pod_namespace);
	f->labels = NULL;
	f->nlabels = late ? -1 : 0;
	if (!pod)
		return;
	pc = rs_pod_container(pod, c->pod_container, c->id);
	if (pc)
		f->container = own_text(a, pc->name);
	f->pod = own_text(a, pod->name);
	f->k8s_namespace = own_text(a, pod->namespace);
	labels = rs_arena_alloc(a, pod->nlabels * sizeof(*labels));
	for (uint32_t i = 0; labels && i < pod->nlabels; i++) {
		labels[i] = (struct rs_label){ own_text(a, pod->labels[i].key),
					       own_text(a, pod->labels[i].value) };
		if (!labels[i].key || !labels[i].value)
			return;
		f->labels = labels;
		f->nlabels = (int)i + 1;
	}
}

/* As far as the rules ask. */
static void read_facts(struct rs_procs *ps, struct learn *l)
{
	uint32_t needs = ps->discover ? ps->discover->needs : 0;
	struct rs_proc *p = l->p;
	struct rs_facts *f = &p->facts, old = p->facts;

	*f = (struct rs_facts){ .comm = p->comm, .uid = RS_FACTS_NO_UID };
	if (!ps->live)
		return;
	f->exe = l->exe[0] ? own_text(&p->own_mem, str_c(l->exe)) : NULL;
	if (needs & 1u << RS_RK_user)
		f->uid = rs_facts_uid(p->tgid);
	if (needs & 1u << RS_RK_cgroup)
		f->cgroup = rs_facts_cgroup(p->tgid, &p->own_mem);
	if (l->was && f->uid == RS_FACTS_NO_UID)
		f->uid = l->was->uid;
	if (l->was && !f->cgroup && l->was->cgroup[0])
		f->cgroup = own_text(&p->own_mem, str_c(l->was->cgroup));
	if (needs & 1u << RS_RK_port && ps->listens)
		ps->listens(ps->tell_arg, p->tgid, f);
	for (uint32_t i = 0; i < old.nports; i++)
		rs_facts_add_port(f, old.ports[i], old.far & 1u << i);
}

static void decide(struct rs_procs *ps, struct rs_proc *p)
{
	bool was_traced = rs_decision_traced(&p->decision);

	p->decision = ps->discover ? rs_discover_decide(ps->discover, &p->facts)
				   : (struct rs_decision){ RS_DECIDED_TRACE, NULL, "" };
	if (ps->tell && (!was_traced || !rs_decision_traced(&p->decision)))
		ps->tell(ps->tell_arg, p);
}

static struct str last_part(struct str path)
{
	while (str_find(path, '/') < path.len)
		path = str_from(path, str_find(path, '/') + 1);
	return path;
}

static const struct rs_pod *pod_of(const struct rs_procs *ps, const struct rs_proc *p)
{
	return ps->pods && p->c.pod_uid.len ? rs_pods_by_uid(ps->pods, p->c.pod_uid) : NULL;
}

/*
 * The resource: a rule's word and the process's own first, then what is known of its pod and container, then
 * what can be said of any process. There is no process.creation.time: pid and service.instance.id name the
 * process.
 */
static void compose(struct rs_procs *ps, struct rs_proc *p, const struct rs_pod *pod)
{
	static const struct rs_pod_conf none;
	struct rs_res r = { .mem = &p->arena, .dropped = p->own.dropped };
	struct str exe_name = last_part(p->exe);

	p->rule_service = rs_rule_service(p->decision.rule, &p->facts);
	if (p->rule_service)
		rs_res_str(&r, RS_K_SERVICE_NAME, str_c(p->rule_service));
	for (uint32_t i = 0; i < p->own.n; i++)
		rs_res_val(&r, p->own.a[i].key, p->own.a[i].val);
	if (!exe_name.len)
		exe_name = str_of(p->comm, strnlen(p->comm, sizeof(p->comm)));
	rs_names_pod(&r, &p->c, pod, ps->pods ? &ps->pods->conf : &none, ps->node);
	rs_res_str(&r, RS_K_SERVICE_NAME, exe_name.len ? exe_name : STR("unknown_service"));
	rs_res_val(&r, rs_key(RS_K_PROCESS_PID),
		   (struct rs_val){ .type = RS_VAL_INT, .i = p->tgid });
	rs_res_str(&r, RS_K_PROCESS_EXECUTABLE_NAME, exe_name);
	rs_res_str(&r, RS_K_PROCESS_EXECUTABLE_PATH, p->exe);
	rs_res_str(&r, RS_K_CONTAINER_ID, p->c.id);
	rs_res_str(&r, RS_K_CONTAINER_NAME, p->c.name);
	rs_res_str(&r, RS_K_CONTAINER_RUNTIME_NAME, p->c.runtime);
	rs_names_image(&r, p->c.image);
	rs_res_str(&r, RS_K_HOST_NAME, ps->host);
	rs_res_str(&r, RS_K_TELEMETRY_SDK_NAME, STR("ringspan"));
	rs_res_str(&r, RS_K_TELEMETRY_SDK_LANGUAGE, STR("c"));
	rs_res_str(&r, RS_K_TELEMETRY_SDK_VERSION, STR(RS_VERSION));
	add_resource_attrs(&r, ps->extra);

	p->service = rs_res_get(&r, RS_K_SERVICE_NAME);
	p->counted[0] = p->counted[1] = NULL;
	p->resource.attrs = (struct rs_attrs){ .a = rs_res_copy(&r), .dropped = r.dropped };
	p->resource.attrs.n = p->resource.attrs.a ? r.n : 0;
	p->resource.id = ++ps->next_id;
}

static void read_container(struct rs_procs *ps, struct rs_proc *p)
{
	const struct rs_container *c = rs_containers_of(&ps->containers, p->tgid, p->cgroup);

	if (!c)
		return;
	p->c = (struct rs_container_facts){
		.id = rs_arena_str(&p->own_mem, str_c(c->cg.container_id)),
		.name = rs_arena_str(&p->own_mem, c->name),
		.runtime = str_c(rs_runtime_name((enum rs_runtime)c->cg.runtime)),
		.image = rs_arena_str(&p->own_mem, c->image),
		.pod_uid = rs_arena_str(&p->own_mem, str_c(c->cg.pod_uid)),
		.pod_name = rs_arena_str(&p->own_mem, c->pod_name),
		.pod_namespace = rs_arena_str(&p->own_mem, c->pod_namespace),
		.pod_container = rs_arena_str(&p->own_mem, c->pod_container),
	};
}

/* Its resource is about to go. */
static void part(struct rs_procs *ps, struct rs_proc *p)
{
	if (ps->parting)
		ps->parting(ps->parting_arg, p);
	rs_arena_reset(&p->arena);
}

/* What the process itself, the kernel and the runtime say of it: all that is gone when it is gone. Then what
 * follows from it. */
static void learn(struct rs_procs *ps, struct rs_proc *p)
{
	struct learn l = { .p = p, .own = { .mem = &p->own_mem } };
	const struct rs_pod *pod;

	part(ps, p);
	rs_arena_reset(&p->own_mem);
	p->sdk = p->published = false;
	p->c = (struct rs_container_facts){ 0 };
	if (ps->live) {
		if (!p->comm[0])
			rs_facts_comm(p->tgid, p->comm);
		read_exe(ps, &l);
		read_container(ps, p);
	}
	p->exe = rs_arena_str(&p->own_mem, str_c(l.exe));
	pod = pod_of(ps, p);
	p->pod_gen = pod ? pod->gen : 0;
	read_facts(ps, &l);
	pod_facts(ps, p, pod);
	decide(ps, p);
	p->described = rs_decision_traced(&p->decision);
	if (ps->learnt && p->described)
		ps->learnt(ps->learnt_arg, p->tgid);
	if (ps->live && p->described) {
		read_env(&l);
		read_sdk(ps, &l);
	}
	/* OTEL_SERVICE_NAME beats service.name in OTEL_RESOURCE_ATTRIBUTES (OpenTelemetry specification). */
	rs_res_str(&l.own, RS_K_SERVICE_NAME, l.service);
	add_resource_attrs(&l.own, l.resource_attrs);
	rs_res_str(&l.own, RS_K_SERVICE_NAME, l.dd_service);
	rs_res_str(&l.own, RS_K_DEPLOYMENT_ENVIRONMENT_NAME, l.dd_env);
	rs_res_str(&l.own, RS_K_SERVICE_VERSION, l.dd_version);
	p->own = (struct rs_attrs){ .a = rs_res_copy(&l.own), .dropped = l.own.dropped };
	p->own.n = p->own.a ? l.own.n : 0;
	compose(ps, p, pod);
}

/* Its pod is another than it was, or is known only now. Nothing of the process is read again. */
static void follow_pod(struct rs_procs *ps, struct rs_proc *p, const struct rs_pod *pod)
{
	p->pod_gen = pod->gen;
	part(ps, p);
	pod_facts(ps, p, pod);
	decide(ps, p);
	if (rs_decision_traced(&p->decision) && !p->described)
		learn(ps, p);
	else
		compose(ps, p, pod);
}

bool rs_procs_lacks_pod(const struct rs_procs *ps, const struct rs_proc *p)
{
	return ps->pods && p->c.pod_uid.len && !p->pod_gen;
}

void rs_procs_cgroup(struct rs_procs *ps, struct rs_proc *p, uint64_t cgroup)
{
	const struct rs_pod *pod;

	if (p->cgroup || !cgroup)
		return;
	p->cgroup = cgroup;
	if (!ps->live || p->c.id.len)
		return;
	read_container(ps, p);
	if (!p->c.id.len)
		return;
	pod = pod_of(ps, p);
	p->pod_gen = pod ? pod->gen : 0;
	part(ps, p);
	pod_facts(ps, p, pod);
	decide(ps, p);
	compose(ps, p, pod);
}

void rs_procs_follow(struct rs_procs *ps, struct rs_proc *p)
{
	const struct rs_pod *pod;

	if (!ps->pods || !p->c.pod_uid.len || p->pods_seen == ps->pods->gen)
		return;
	p->pods_seen = ps->pods->gen;
	pod = pod_of(ps, p);
	if (pod && pod->gen != p->pod_gen)
		follow_pod(ps, p, pod);
}

bool rs_procs_waits(struct rs_procs *ps, struct rs_proc *p, uint64_t now_ns)
{
	rs_procs_follow(ps, p);
	if (!rs_procs_lacks_pod(ps, p) || !ps->pods_wait_ns)
		return false;
	if (!p->wait_until_ns)
		p->wait_until_ns = now_ns + ps->pods_wait_ns;
	ps->pods->wanted = true;
	return now_ns < p->wait_until_ns;
}

/* Its facts, or the rules, have changed. The process is learnt again if that changes what it is called. */
static void decide_again(struct rs_procs *ps, struct rs_proc *p)
{
	struct rs_decision old = p->decision;
	bool traced;

	decide(ps, p);
	traced = rs_decision_traced(&p->decision);
	if (traced && (!p->described || old.rule != p->decision.rule ||
		       p->rule_service != rs_rule_service(p->decision.rule, &p->facts)))
		learn(ps, p);
}

void rs_procs_stray(struct rs_procs *ps, struct rs_proc *p)
{
	if (++p->strays == 0 && ps->tell)
		ps->tell(ps->tell_arg, p);
}

void rs_procs_settle(struct rs_procs *ps, struct rs_proc *p)
{
	struct rs_facts *f = &p->facts;

	if (p->decision.state != RS_DECIDED_PENDING)
		return;
	f->container = f->container ? f->container : "";
	f->pod = f->pod ? f->pod : "";
	f->k8s_namespace = f->k8s_namespace ? f->k8s_namespace : "";
	if (f->nlabels < 0)
		f->nlabels = 0;
	decide_again(ps, p);
}

void rs_procs_relearn(struct rs_procs *ps)
{
	struct rs_list *pos;

	rs_list_for_each (pos, &ps->lru)
		learn(ps, rs_list_entry(pos, struct rs_proc, lru));
}

void rs_procs_port(struct rs_procs *ps, struct rs_proc *p, uint16_t port, bool far)
{
	if (ps->discover && ps->discover->needs & 1u << RS_RK_port &&
	    rs_facts_add_port(&p->facts, port, far))
		decide_again(ps, p);
}

#define SDK_TICKS 8

void rs_procs_tick(struct rs_procs *ps, struct rs_proc *p)
{
	struct rs_sdk sdk;

	/* A program that was just executed may take long until it is ready: it is when it is heard of. */
	if (!ps->live || p->published || !p->described || !p->used || p->sdk_ticks >= SDK_TICKS ||
	    ++p->sdk_ticks < SDK_TICKS)
		return;
	if (rs_sdk_find(p->tgid, &sdk) == 0 && (sdk.header || (sdk.present && !p->sdk)))
		learn(ps, p);
}

void rs_proc_ahead(const struct rs_proc *p)
{
	__builtin_prefetch(p, 1);
	__builtin_prefetch(&p->spans, 1);
}

struct rs_proc *rs_procs_find(const struct rs_procs *ps, uint32_t tgid)
{
	return rs_map_get(&ps->by_tgid, tgid);
}

void rs_procs_gone(struct rs_procs *ps, struct rs_proc *p)
{
	part(ps, p);
	rs_map_del(&ps->by_tgid, p->tgid);
	rs_list_del(&p->lru);
	rs_arena_release(&p->own_mem);
	rs_arena_release(&p->arena);
	rs_pool_put(&ps->pool, p);
}

static void set_comm(struct rs_proc *p, struct str comm)
{
	if (!comm.len)
		return;
	comm = str_at(comm, 0, sizeof(p->comm) - 1);
	memset(p->comm, 0, sizeof(p->comm));
	memcpy(p->comm, comm.ptr, comm.len);
}

/* What was found out about the program before is not so of this one. */
static void begin_program(struct rs_procs *ps, struct rs_proc *p, struct str comm)
{
	p->facts.nports = 0;
	p->sdk_ticks = 0;
	p->opaque = false;
	set_comm(p, comm);
	learn(ps, p);
}

/* Room for one more: the first in turn that holds no connection and was not heard of since its last turn. */
static void evict(struct rs_procs *ps)
{
	for (uint32_t turns = 2 * ps->pool.in_use; turns; turns--) {
		struct rs_proc *p = rs_list_entry(ps->lru.next, struct rs_proc, lru);

		if (p->nconns == 0 && p->nheld == 0 && !p->used) {
			rs_procs_gone(ps, p);
			ps->n->v[RS_C_PROC_EVICTED]++;
			return;
		}
		p->used = false;
		rs_list_del(&p->lru);
		rs_list_add_tail(&ps->lru, &p->lru);
	}
}

struct rs_proc *rs_procs_get(struct rs_procs *ps, uint32_t tgid, uint64_t start_ns, uint64_t cgroup,
			     struct str comm)
{
	struct rs_proc *p = rs_procs_find(ps, tgid);

	if (p && (!start_ns || !p->start_ns || p->start_ns == start_ns)) {
		if (!p->start_ns)
			p->start_ns = start_ns;
		rs_procs_cgroup(ps, p, cgroup);
		p->used = true;
		return p;
	}
	if (p) {
		/* The pid was reused and the exit not seen: another process, the entry serves on. */
		p->start_ns = start_ns;
		p->cgroup = cgroup;
		p->wait_until_ns = 0;
		p->exited = false;
		p->spans = p->requests = p->errors = p->plain_bytes = 0;
		p->tls_unknown = p->tls_missed = 0;
		begin_program(ps, p, comm);
		return p;
	}
	if (ps->pool.in_use == ps->pool.max)
		evict(ps);
	p = rs_pool_get(&ps->pool);
	if (!p)
		return NULL;
	*p = (struct rs_proc){ .tgid = tgid, .start_ns = start_ns, .cgroup = cgroup, .used = true };
	rs_list_init(&p->conns);
	rs_arena_init(&p->own_mem, 1024, 64 * 1024);
	rs_arena_init(&p->arena, 2048, 64 * 1024);
	if (rs_map_put(&ps->by_tgid, tgid, p)) {
		rs_pool_put(&ps->pool, p);
		return NULL;
	}
	rs_list_add_tail(&ps->lru, &p->lru);
	set_comm(p, comm);
	learn(ps, p);
	return p;
}

bool rs_procs_may_trace(struct rs_procs *ps, uint32_t tgid)
{
	struct rs_proc p = { .tgid = tgid };
	struct learn l = { .p = &p };
	struct rs_decision d;

	if (!ps->discover || !ps->live)
		return true;
	rs_arena_init(&p.own_mem, 1024, 64 * 1024);
	rs_arena_init(&p.arena, 1024, 64 * 1024);
	rs_facts_comm(tgid, p.comm);
	read_exe(ps, &l);
	read_container(ps, &p);
	read_facts(ps, &l);
	pod_facts(ps, &p, pod_of(ps, &p));
	d = rs_discover_decide(ps->discover, &p.facts);
	rs_arena_release(&p.own_mem);
	rs_arena_release(&p.arena);
	return d.state != RS_DECIDED_SKIP;
}

void rs_procs_execed(struct rs_procs *ps, uint32_t tgid, uint64_t start_ns)
{
	uint32_t needs = ps->discover ? ps->discover->needs : 0;

	rs_execs_note(&ps->execs, tgid, start_ns, needs & 1u << RS_RK_user,
		      needs & 1u << RS_RK_cgroup);
	if (ps->execed)
		ps->execed(ps->learnt_arg, tgid);
}

void rs_procs_exec(struct rs_procs *ps, struct rs_proc *p, struct str comm)
{
	p->decision.state = RS_DECIDED_TRACE; /* the kernel side has forgotten what it was told */
	p->used = false;
	begin_program(ps, p, comm);
}
