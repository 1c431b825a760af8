// SPDX-License-Identifier: Apache-2.0
#include "proc.h"
#include "facts.h"
#include "sdk.h"
#include "thread_ctx.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define ENV_MAX	  (128 * 1024) /* bytes of an environment that are looked at */
#define ATTRS_MAX 48
#define VALUE_MAX 1024 /* bytes of one attribute value taken from an environment */

/* What is being collected for one resource. */
struct learn {
	struct rs_proc *p;
	struct rs_attr attrs[ATTRS_MAX];
	uint32_t n, dropped;
	struct str service, dd_service, dd_env, dd_version, resource_attrs;
	char exe[512]; /* path, or empty */
};

void rs_procs_init(struct rs_procs *ps, uint32_t max, bool live, struct rs_counters *n)
{
	*ps = (struct rs_procs){ .live = live, .n = n };
	rs_map_init(&ps->by_tgid, max);
	rs_pool_init(&ps->pool, sizeof(struct rs_proc), max);
	rs_list_init(&ps->lru);
	if (live && gethostname(ps->host_buf, sizeof(ps->host_buf) - 1) == 0)
		ps->host = str_c(ps->host_buf);
}

void rs_procs_release(struct rs_procs *ps)
{
	struct rs_list *pos, *tmp;

	rs_list_for_each_safe (pos, tmp, &ps->lru)
		rs_arena_release(&rs_list_entry(pos, struct rs_proc, lru)->arena);
	rs_map_release(&ps->by_tgid);
	rs_pool_release(&ps->pool);
}

static struct rs_attr *find_attr(struct learn *l, struct str key)
{
	for (uint32_t i = 0; i < l->n; i++) {
		if (str_eq(l->attrs[i].key->name, key))
			return &l->attrs[i];
	}
	return NULL;
}

/* Later calls do not override: the first source of an attribute wins. */
static void set_val(struct learn *l, const struct rs_key *key, struct rs_val val)
{
	if (find_attr(l, key->name))
		return;
	if (l->n == ATTRS_MAX) {
		l->dropped++;
		return;
	}
	l->attrs[l->n++] = (struct rs_attr){ key, val };
}

static void set_str(struct learn *l, const struct rs_key *key, struct str value)
{
	struct str own = rs_arena_str(&l->p->arena, str_at(value, 0, VALUE_MAX));

	if (own.ptr)
		set_val(l, key,
			(struct rs_val){
				.type = RS_VAL_STR, .len = (uint32_t)own.len, .str = own.ptr });
}

static const struct rs_key *key_of(struct learn *l, struct str name)
{
	struct rs_key *k;

	for (unsigned i = 0; i < RS_K_COUNT; i++) {
		if (str_eq(rs_known_keys[i].name, name))
			return &rs_known_keys[i];
	}
	k = rs_arena_alloc(&l->p->arena, sizeof(*k));
	if (k)
		*k = rs_key_make(rs_arena_str(&l->p->arena, name));
	return k && k->name.ptr ? k : NULL;
}

static int hexval(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = str_lower_char(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* OTEL_RESOURCE_ATTRIBUTES: key=value,key=value, values percent-encoded (OpenTelemetry specification,
 * resource SDK). A malformed member is left out; the others count. */
static void add_resource_attrs(struct learn *l, struct str list)
{
	while (list.len) {
		struct str item, key, value;
		char buf[VALUE_MAX];
		size_t n = 0;
		const struct rs_key *k;

		list = str_cut(list, ',', &item);
		value = str_cut(item, '=', &key);
		key = str_trim(key);
		if (key.len == item.len || !key.len || key.len > 255)
			continue;
		value = str_trim(value);
		for (size_t i = 0; i < value.len && n < sizeof(buf); i++) {
			int hi = -1, lo = -1;

			if (value.ptr[i] == '%' && i + 2 < value.len) {
				hi = hexval(value.ptr[i + 1]);
				lo = hexval(value.ptr[i + 2]);
			}
			if (hi >= 0 && lo >= 0) {
				buf[n++] = (char)(hi << 4 | lo);
				i += 2;
			} else {
				buf[n++] = value.ptr[i];
			}
		}
		k = key_of(l, key);
		if (k)
			set_str(l, k, str_of(buf, n));
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
				rs_arena_str(&l->p->arena, str_at(value, 0, 8192));
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

static void read_exe(struct learn *l)
{
	char path[64];
	struct str exe;
	ssize_t r;

	snprintf(path, sizeof(path), "/proc/%u/exe", l->p->tgid);
	r = readlink(path, l->exe, sizeof(l->exe) - 1);
	l->exe[r > 0 ? r : 0] = '\0';
	/* The file was replaced while it runs: an upgrade, not another program. */
	exe = str_c(l->exe);
	if (exe.len > 10 && str_eq(str_from(exe, exe.len - 10), STR(" (deleted)")))
		l->exe[exe.len - 10] = '\0';
}

static void take_sdk_attr(void *arg, struct str key, struct str value)
{
	struct learn *l = arg;
	const struct rs_key *k = key.len <= 255 ? key_of(l, key) : NULL;

	/* What the SDK is, it says of itself; these are our spans. */
	if (k && !str_starts(key, STR("telemetry.")))
		set_str(l, k, value);
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
	buf = rs_arena_alloc(&l->p->arena, 8192);
	n = buf ? rs_sdk_read(l->p->tgid, &sdk, buf, 8192) : 0;
	rs_sdk_parse(str_of(buf, n), take_sdk_attr, l);
}

static const char *own_text(struct rs_arena *a, const char *text)
{
	size_t n = strlen(text) + 1;
	char *p = rs_arena_alloc(a, n);

	return p ? memcpy(p, text, n) : NULL;
}

/* As far as the rules ask. Containers and pods are not known of here: it is in none. */
static void read_facts(struct rs_procs *ps, struct learn *l)
{
	uint32_t needs = ps->discover ? ps->discover->needs : 0;
	struct rs_proc *p = l->p;
	struct rs_facts *f = &p->facts, old = p->facts;

	*f = (struct rs_facts){ .comm = p->comm,
				.uid = RS_FACTS_NO_UID,
				.container = "",
				.pod = "",
				.k8s_namespace = "" };
	if (!ps->live)
		return;
	f->exe = l->exe[0] ? own_text(&p->arena, l->exe) : NULL;
	if (needs & 1u << RS_RK_user)
		f->uid = rs_facts_uid(p->tgid);
	if (needs & 1u << RS_RK_cgroup)
		f->cgroup = rs_facts_cgroup(p->tgid, &p->arena);
	if (needs & 1u << RS_RK_port)
		rs_facts_listening(p->tgid, f);
	for (uint32_t i = 0; i < old.nports; i++)
		rs_facts_add_port(f, old.ports[i]);
}

static void decide(struct rs_procs *ps, struct rs_proc *p)
{
	uint8_t before = p->decision.state;

	p->decision = ps->discover ? rs_discover_decide(ps->discover, &p->facts)
				   : (struct rs_decision){ RS_DECIDED_TRACE, NULL, "" };
	if (ps->tell && (before != p->decision.state || !rs_decision_traced(&p->decision)))
		ps->tell(ps->tell_arg, p);
}

/* CLOCK_BOOTTIME start to the time of day as process.creation.time wants it is left to consumers that
 * know the boot time; pid and the resource's instance id identify the process here. */
static void learn(struct rs_procs *ps, struct rs_proc *p)
{
	struct learn l = { .p = p };
	struct str exe_name, name = STR_NONE;
	const struct rs_attr *given;

	rs_arena_reset(&p->arena);
	p->sdk = p->published = false;
	if (ps->live)
		read_exe(&l);
	read_facts(ps, &l);
	decide(ps, p);
	p->described = rs_decision_traced(&p->decision);
	if (ps->learnt && p->described)
		ps->learnt(ps->learnt_arg, p->tgid);
	if (ps->live && p->described) {
		read_env(&l);
		read_sdk(ps, &l);
	}
	exe_name = str_c(l.exe);
	while (str_find(exe_name, '/') < exe_name.len)
		exe_name = str_from(exe_name, str_find(exe_name, '/') + 1);
	if (!exe_name.len)
		exe_name = str_of(p->comm, strnlen(p->comm, sizeof(p->comm)));

	if (p->decision.rule && p->decision.rule->service)
		set_str(&l, rs_key(RS_K_SERVICE_NAME), str_c(p->decision.rule->service));
	/* OTEL_SERVICE_NAME beats service.name in OTEL_RESOURCE_ATTRIBUTES (OpenTelemetry specification). */
	if (l.service.len)
		set_str(&l, rs_key(RS_K_SERVICE_NAME), l.service);
	add_resource_attrs(&l, l.resource_attrs);
	if (l.dd_service.len)
		set_str(&l, rs_key(RS_K_SERVICE_NAME), l.dd_service);
	if (l.dd_env.len)
		set_str(&l, rs_key(RS_K_DEPLOYMENT_ENVIRONMENT_NAME), l.dd_env);
	if (l.dd_version.len)
		set_str(&l, rs_key(RS_K_SERVICE_VERSION), l.dd_version);
	name = exe_name.len ? exe_name : STR("unknown_service");
	set_str(&l, rs_key(RS_K_SERVICE_NAME), name);
	set_val(&l, rs_key(RS_K_PROCESS_PID), (struct rs_val){ .type = RS_VAL_INT, .i = p->tgid });
	if (exe_name.len)
		set_str(&l, rs_key(RS_K_PROCESS_EXECUTABLE_NAME), exe_name);
	if (l.exe[0])
		set_str(&l, rs_key(RS_K_PROCESS_EXECUTABLE_PATH), str_c(l.exe));
	if (ps->host.len)
		set_str(&l, rs_key(RS_K_HOST_NAME), ps->host);
	set_str(&l, rs_key(RS_K_TELEMETRY_SDK_NAME), STR("ringspan"));
	set_str(&l, rs_key(RS_K_TELEMETRY_SDK_LANGUAGE), STR("c"));
	set_str(&l, rs_key(RS_K_TELEMETRY_SDK_VERSION), STR(RS_VERSION));

	add_resource_attrs(&l, ps->extra);

	given = find_attr(&l, STR("service.name"));
	p->service = given ? str_of(given->val.str, given->val.len) : STR_NONE;
	p->resource.attrs = (struct rs_attrs){ .dropped = l.dropped };
	{
		struct rs_attr *a = rs_arena_alloc(&p->arena, l.n * sizeof(*a));

		if (a) {
			memcpy(a, l.attrs, l.n * sizeof(*a));
			p->resource.attrs.a = a;
			p->resource.attrs.n = l.n;
		}
	}
	p->origin = ++ps->next_origin;
}

/* Asked again with the same facts: the process is learnt again if that changes what it is called. */
void rs_procs_decide(struct rs_procs *ps, struct rs_proc *p)
{
	struct rs_decision old = p->decision;
	bool traced;

	decide(ps, p);
	traced = rs_decision_traced(&p->decision);
	if (traced && (!p->described || old.rule != p->decision.rule))
		learn(ps, p);
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
	rs_procs_decide(ps, p);
}

void rs_procs_relearn(struct rs_procs *ps)
{
	struct rs_list *pos;

	rs_list_for_each (pos, &ps->lru)
		learn(ps, rs_list_entry(pos, struct rs_proc, lru));
}

void rs_procs_port(struct rs_procs *ps, struct rs_proc *p, uint16_t port)
{
	if (ps->discover && ps->discover->needs & 1u << RS_RK_port &&
	    rs_facts_add_port(&p->facts, port))
		rs_procs_decide(ps, p);
}

#define SDK_TICKS 8

void rs_procs_tick(struct rs_procs *ps, struct rs_proc *p)
{
	struct rs_sdk sdk;

	if (!ps->live || p->published || !p->described || p->sdk_ticks >= SDK_TICKS ||
	    ++p->sdk_ticks < SDK_TICKS)
		return;
	if (rs_sdk_find(p->tgid, &sdk) == 0 && (sdk.header || (sdk.present && !p->sdk)))
		learn(ps, p);
}

struct rs_proc *rs_procs_find(const struct rs_procs *ps, uint32_t tgid)
{
	return rs_map_get(&ps->by_tgid, tgid);
}

void rs_procs_gone(struct rs_procs *ps, struct rs_proc *p)
{
	rs_map_del(&ps->by_tgid, p->tgid);
	rs_list_del(&p->lru);
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

/* Room for one more: the one longest unheard of that holds no connection. */
static void evict(struct rs_procs *ps)
{
	struct rs_list *pos, *tmp;

	rs_list_for_each_safe (pos, tmp, &ps->lru) {
		struct rs_proc *p = rs_list_entry(pos, struct rs_proc, lru);

		if (p->nconns == 0) {
			rs_procs_gone(ps, p);
			ps->n->v[RS_C_PROC_EVICTED]++;
			return;
		}
	}
}

struct rs_proc *rs_procs_get(struct rs_procs *ps, uint32_t tgid, uint64_t start_ns, struct str comm)
{
	struct rs_proc *p = rs_procs_find(ps, tgid);

	if (p && (!start_ns || !p->start_ns || p->start_ns == start_ns)) {
		if (!p->start_ns)
			p->start_ns = start_ns;
		if (ps->lru.prev != &p->lru) {
			rs_list_del(&p->lru);
			rs_list_add_tail(&ps->lru, &p->lru);
		}
		return p;
	}
	if (p) {
		/* The pid was reused and the exit not seen: another process, the entry serves on. */
		p->start_ns = start_ns;
		p->exited = false;
		p->spans = p->requests = p->errors = 0;
		p->facts.nports = 0;
		set_comm(p, comm);
		learn(ps, p);
		return p;
	}
	if (ps->pool.in_use == ps->pool.max)
		evict(ps);
	p = rs_pool_get(&ps->pool);
	if (!p)
		return NULL;
	*p = (struct rs_proc){ .tgid = tgid, .start_ns = start_ns };
	rs_list_init(&p->conns);
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

void rs_procs_exec(struct rs_procs *ps, struct rs_proc *p, struct str comm)
{
	p->facts.nports = 0;
	p->decision.state = RS_DECIDED_TRACE; /* the kernel side has forgotten what it was told */
	set_comm(p, comm);
	learn(ps, p);
}
