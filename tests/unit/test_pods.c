// SPDX-License-Identifier: Apache-2.0
/* Pods: read from recorded objects, kept, named. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "meta/container.h"
#include "meta/names.h"
#include "meta/pods.h"
#include "unit.h"

#define VECTORS "tests/vectors/k8s/"
#define S(ns)	((uint64_t)(ns)*1000000000ull)

struct world {
	struct rs_counters n;
	struct rs_pods ps;
};

static char *file(const char *name, size_t *ret_len)
{
	FILE *f = fopen(name, "re");
	char *buf;
	long n;

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	buf = malloc((size_t)n + 1);
	assert_int_equal(fread(buf, 1, (size_t)n, f), n);
	buf[n] = 0;
	*ret_len = (size_t)n;
	fclose(f);
	return buf;
}

/* One Pod object, into p. */
static bool parse(struct rs_pods *ps, struct rs_pod *p, struct str json)
{
	struct rs_json j;

	rs_json_init(&j, json, &p->mem);
	return rs_pod_parse(p, &j, &ps->conf);
}

static void put(struct rs_pods *ps, const char *json)
{
	struct rs_pod *p = rs_pods_new(ps);

	assert_non_null(p);
	assert_true(parse(ps, p, str_c(json)));
	rs_pods_put(ps, p);
}

static void gone(struct rs_pods *ps, const char *json, uint64_t now)
{
	struct rs_pod *p = rs_pods_new(ps);

	assert_non_null(p);
	assert_true(parse(ps, p, str_c(json)));
	rs_pods_gone(ps, p, now);
}

/* The items of a PodList: each begins on its own with {"metadata". */
static void put_list(struct rs_pods *ps, const char *name)
{
	size_t len;
	char *text = file(name, &len);
	struct rs_arena mem;
	struct rs_json j;
	struct str key;

	rs_arena_init(&mem, 4096, 0);
	rs_json_init(&j, str_of(text, len), &mem);
	assert_true(rs_json_object(&j));
	rs_pods_list_begin(ps);
	while (rs_json_key(&j, &key)) {
		if (!str_eq(key, STR("items"))) {
			rs_json_skip(&j);
			continue;
		}
		assert_true(rs_json_array(&j));
		while (rs_json_elem(&j)) {
			struct rs_pod *p = rs_pods_new(ps);
			const char *from = j.pos;

			rs_json_skip(&j);
			assert_true(parse(ps, p, str_of(from, (size_t)(j.pos - from))));
			rs_pods_put(ps, p);
		}
	}
	assert_null(j.err);
	rs_pods_list_end(ps, S(1));
	rs_arena_release(&mem);
	free(text);
}

static struct str attr(const struct rs_res *r, const char *key)
{
	for (uint32_t i = 0; i < r->n; i++) {
		if (str_eq(r->attrs[i].key->name, str_c(key)))
			return str_of(r->attrs[i].val.str, r->attrs[i].val.len);
	}
	return STR_NONE;
}

/* want: "key=value key=value -key"; what is not named does not matter. */
static void expect(const struct rs_res *r, const char *what, const char *want)
{
	struct str rest = str_c(want), item, key, value;
	char name[128];

	while (rest.len) {
		rest = str_cut(rest, ' ', &item);
		value = str_cut(item, '=', &key);
		snprintf(name, sizeof(name), "%.*s", STR_ARG(key));
		if (*name == '-') {
			if (attr(r, name + 1).len)
				fail_msg("%s: %s is there", what, name + 1);
		} else if (!str_eq(attr(r, name), value)) {
			fail_msg("%s: %s is '%.*s', not '%.*s'", what, name, STR_ARG(attr(r, name)),
				 STR_ARG(value));
		}
	}
}

static void check_names(struct rs_pods *ps, const struct rs_container_facts *c, bool api,
			const char *what, const char *want)
{
	const struct rs_pod *p = api ? rs_pods_by_uid(ps, c->pod_uid) : NULL;
	struct rs_arena mem;
	struct rs_res r = { .mem = &mem };

	rs_arena_init(&mem, 4096, 0);
	if (api)
		assert_non_null(p);
	rs_names_pod(&r, c, p, &ps->conf, STR("testnode"));
	expect(&r, what, want);
	rs_arena_release(&mem);
}

/* What a real API server said of real pods (recorded), and what follows for their processes. */
static const struct {
	const char *name, *uid, *container, *id, *want;
} recorded[] = {
	{ "static pod", "ab93f20792dc4e4db6d83bb1f6dfc924", "c", "",
	  "k8s.pod.name=st-testnode k8s.pod.uid=5bf9d596-f514-4e61-aecd-040f67ace13b "
	  "service.name=st-testnode service.namespace=kube-system k8s.node.name=testnode "
	  "service.instance.id=kube-system.st-testnode.c service.version=1 -k8s.daemonset.name" },
	{ "DaemonSet", "bcb4ec63-b180-44a1-9d54-eb4f2fdc1db8", "agent", "",
	  "service.name=agent k8s.daemonset.name=agent "
	  "k8s.daemonset.uid=f7ef74cf-b351-4777-84cd-b529f927d6da k8s.pod.ip=10.244.0.21 "
	  "k8s.container.name=agent k8s.namespace.name=obs" },
	{ "Deployment", "054432a8-8d70-46aa-9c6f-f0a2d439aea6", "", "",
	  "service.name=web k8s.deployment.name=web k8s.replicaset.name=web-6f8d58457d "
	  "k8s.replicaset.uid=b5f25c12-a486-4d4b-8ad1-f7aab58ee050 "
	  "k8s.pod.name=web-6f8d58457d-26hnp k8s.pod.label.app=web -k8s.pod.label.pod-template-hash" },
	{ "Job", "a9b9d13e-c94e-4ed1-90c8-d1438ad0beff", "", "",
	  "service.name=j k8s.job.name=j k8s.job.uid=30cec4da-23e9-4879-98f9-24ac7f1e52d0 "
	  "-k8s.cronjob.name" },
	{ "bare pod, by container id", "0a49096f-2fd9-4c3d-81a5-a369a5531e3b", "",
	  "082d530b7bb7ed891d9eff96d6ac6e3d99807c8cb864c979ccc2e34b391a34e1",
	  "service.name=burst k8s.container.name=c2 k8s.pod.label.tags.datadoghq.com/env=prod" },
	{ "bare pod, container not known", "0a49096f-2fd9-4c3d-81a5-a369a5531e3b", "", "",
	  "service.name=burst -k8s.container.name -service.instance.id" },
};

static void test_recorded(void **state)
{
	static const char *const files[] = { VECTORS "api-pods.json", VECTORS "kubelet-pods.json" };
	struct world w = { 0 };

	(void)state;
	for (size_t f = 0; f < 2; f++) {
		rs_pods_init(&w.ps, 64, &w.n);
		w.ps.conf = (struct rs_pod_conf){ STR("app, tags.datadoghq.com/*"), STR("note") };
		put_list(&w.ps, files[f]);
		assert_int_equal(w.ps.nlive, 9);
		for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++) {
			struct rs_container_facts c = { .pod_uid = str_c(recorded[i].uid),
							.pod_container =
								str_c(recorded[i].container),
							.id = str_c(recorded[i].id) };

			/* kubelet knows a static pod by its hash alone */
			if (f && i == 0)
				continue;
			check_names(&w.ps, &c, true, recorded[i].name, recorded[i].want);
		}
		rs_pods_release(&w.ps);
	}
}

#define POD(uid, meta, rest)                                                                       \
	"{\"metadata\":{\"name\":\"p-" uid "\",\"namespace\":\"ns\",\"uid\":\"" uid "\"" meta      \
	"}" rest "}"
#define IP(ip) ",\"status\":{\"phase\":\"Running\",\"podIP\":\"" ip "\"}"
#define OWNER(kind, name)                                                                          \
	",\"ownerReferences\":[{\"kind\":\"x\",\"name\":\"y\"},{\"kind\":\"" kind                  \
	"\",\"name\":\"" name "\",\"uid\":\"o\",\"controller\":true}]"
#define IMAGE(i) ",\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"" i "\"}]}"

/* The documented order: each row has one thing less than the one before. */
static void test_service_order(void **state)
{
	static const struct {
		const char *pod, *want;
	} rows[] = {
		{ POD("u",
		      ",\"annotations\":{\"resource.opentelemetry.io/service.name\":\"a\","
		      "\"resource.opentelemetry.io/service.version\":\"9\",\"resource.opentelemetry.io/team\":\"t\"},"
		      "\"labels\":{\"app.kubernetes.io/instance\":\"i\",\"app.kubernetes.io/name\":\"n\","
		      "\"app.kubernetes.io/version\":\"v\"}",
		      IMAGE("r:5000/x:2")),
		  "service.name=a service.version=9 team=t service.namespace=ns service.instance.id=ns.p-u.c" },
		{ POD("u",
		      ",\"labels\":{\"app.kubernetes.io/instance\":\"i\",\"app.kubernetes.io/name\":\"n\","
		      "\"app.kubernetes.io/version\":\"v\"}",
		      IMAGE("r:5000/x:2")),
		  "service.name=i service.version=v" },
		{ POD("u", ",\"labels\":{\"app.kubernetes.io/name\":\"n\"}",
		      IMAGE("r:5000/x:2@sha256:ab")),
		  "service.name=n service.version=2@sha256:ab" },
		{ POD("u",
		      OWNER("ReplicaSet", "web-5d") ",\"labels\":{\"pod-template-hash\":\"5d\"}",
		      IMAGE("r:5000/x@sha256:ab")),
		  "service.name=web k8s.deployment.name=web k8s.replicaset.name=web-5d service.version=sha256:ab" },
		{ POD("u", OWNER("ReplicaSet", "web-5d"), IMAGE("r:5000/x")),
		  "service.name=web-5d -k8s.deployment.name k8s.replicaset.name=web-5d -service.version" },
		{ POD("u", OWNER("StatefulSet", "db"), ""),
		  "service.name=db k8s.statefulset.name=db k8s.statefulset.uid=o" },
		{ POD("u", OWNER("Job", "nightly-28391040"), ""),
		  "service.name=nightly k8s.cronjob.name=nightly k8s.job.name=nightly-28391040 k8s.job.uid=o" },
		{ POD("u", OWNER("Job", "import-2026"), ""),
		  "service.name=import-2026 -k8s.cronjob.name" },
		{ POD("u", OWNER("Node", "n1"), ""), "service.name=p-u" },
		{ POD("u", "", ""), "service.name=p-u" },
	};
	const struct rs_container_facts c = { .pod_uid = STR("u"), .pod_container = STR("c") };
	struct world w = { 0 };

	(void)state;
	rs_pods_init(&w.ps, 4, &w.n);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put(&w.ps, rows[i].pod);
		check_names(&w.ps, &c, true, rows[i].want, rows[i].want);
	}
	rs_pods_release(&w.ps);
}

static void test_without_api(void **state)
{
	const struct rs_container_facts c = { .pod_uid = STR("u"),
					      .pod_name = STR("web-5d-x"),
					      .pod_namespace = STR("shop"),
					      .pod_container = STR("web"),
					      .image = STR("r/web:3") };
	struct world w = { 0 };

	(void)state;
	rs_pods_init(&w.ps, 4, &w.n);
	check_names(
		&w.ps, &c, false, "files",
		"service.name=web service.namespace=shop service.version=3 k8s.pod.uid=u "
		"service.instance.id=shop.web-5d-x.web k8s.pod.name=web-5d-x k8s.container.name=web");
	rs_pods_release(&w.ps);
}

static const struct rs_pod *at(struct rs_pods *ps, const char *text)
{
	uint8_t ip[16] = { 0 };

	inet_pton(strchr(text, ':') ? AF_INET6 : AF_INET, text, ip);
	return rs_pods_by_ip(ps, ip);
}

static void is_at(struct rs_pods *ps, const char *ip, const char *uid)
{
	const struct rs_pod *p = at(ps, ip);

	if (!uid)
		assert_null(p);
	else if (!p || !str_eq(p->uid, str_c(uid)))
		fail_msg("%s: %.*s, not %s", ip, STR_ARG(p ? p->uid : STR_NONE), uid);
}

static void test_addresses(void **state)
{
	struct world w = { 0 };

	(void)state;
	rs_pods_init(&w.ps, 8, &w.n);
	put(&w.ps, POD("a", "", IP("10.0.0.1")));
	put(&w.ps,
	    POD("b", "",
		",\"status\":{\"podIP\":\"10.0.0.2\",\"podIPs\":[{\"ip\":\"10.0.0.2\"},{\"ip\":\"fd00::2\"}]}"));
	put(&w.ps, POD("h", "", ",\"spec\":{\"hostNetwork\":true}" IP("10.0.0.9")));
	is_at(&w.ps, "10.0.0.1", "a");
	is_at(&w.ps, "fd00::2", "b");
	is_at(&w.ps, "10.0.0.9", NULL);

	/* A job's pod ends: its address is given to another, of which it hears first. */
	put(&w.ps, POD("a", "", ",\"status\":{\"phase\":\"Succeeded\",\"podIP\":\"10.0.0.1\"}"));
	is_at(&w.ps, "10.0.0.1", NULL);
	put(&w.ps, POD("c", "", IP("10.0.0.1")));
	put(&w.ps, POD("a", ",\"labels\":{\"x\":\"y\"}",
		       ",\"status\":{\"phase\":\"Failed\",\"podIP\":\"10.0.0.1\"}"));
	is_at(&w.ps, "10.0.0.1", "c");

	/* A pod that is being deleted still says "Running" when its address is another's. */
	put(&w.ps, POD("d", "", IP("10.0.0.2")));
	put(&w.ps, POD("b", ",\"deletionTimestamp\":\"2026-11-30T10:00:00Z\"", IP("10.0.0.2")));
	is_at(&w.ps, "10.0.0.2", "d");
	gone(&w.ps, POD("b", ",\"deletionTimestamp\":\"2026-11-30T10:00:00Z\"", IP("10.0.0.2")),
	     S(1));
	is_at(&w.ps, "10.0.0.2", "d");

	/* Deleted, and not given to another yet: its last spans still come. */
	gone(&w.ps, POD("c", "", IP("10.0.0.1")), S(2));
	is_at(&w.ps, "10.0.0.1", "c");
	rs_pods_tick(&w.ps, S(2) + RS_PODS_KEEP_NS - 1);
	is_at(&w.ps, "10.0.0.1", "c");
	rs_pods_tick(&w.ps, S(2) + RS_PODS_KEEP_NS);
	is_at(&w.ps, "10.0.0.1", NULL);
	assert_null(rs_pods_by_uid(&w.ps, STR("c")));
	assert_int_equal(w.ps.ndeleted, 0);
	rs_pods_release(&w.ps);
}

static void test_lifetime(void **state)
{
	struct world w = { 0 };
	uint64_t gen;

	(void)state;
	rs_pods_init(&w.ps, 2, &w.n);
	put(&w.ps, POD("a", "", IP("10.0.0.1")));
	gen = rs_pods_by_uid(&w.ps, STR("a"))->gen;
	/* A change of status alone changes nothing here. */
	put(&w.ps, POD("a", ",\"resourceVersion\":\"7\"", IP("10.0.0.1")));
	assert_int_equal(rs_pods_by_uid(&w.ps, STR("a"))->gen, gen);
	put(&w.ps, POD("a", ",\"labels\":{\"k\":\"v\"}", IP("10.0.0.1")));
	assert_true(rs_pods_by_uid(&w.ps, STR("a"))->gen > gen);

	/* Full: a living pod gives way to none, a deleted one does. */
	put(&w.ps, POD("b", "", ""));
	put(&w.ps, POD("c", "", ""));
	assert_int_equal(w.n.v[RS_C_K8S_NO_ROOM], 1);
	assert_null(rs_pods_by_uid(&w.ps, STR("c")));
	gone(&w.ps, POD("b", "", ""), S(1));
	assert_non_null(rs_pods_by_uid(&w.ps, STR("b")));
	put(&w.ps, POD("c", "", ""));
	assert_non_null(rs_pods_by_uid(&w.ps, STR("c")));
	assert_null(rs_pods_by_uid(&w.ps, STR("b")));
	assert_int_equal(w.ps.nlive, 2);

	/* What a list has not is gone. */
	rs_pods_list_begin(&w.ps);
	put(&w.ps, POD("c", "", ""));
	rs_pods_list_end(&w.ps, S(5));
	assert_int_equal(w.ps.nlive, 1);
	assert_int_equal(w.ps.ndeleted, 1);
	assert_non_null(rs_pods_by_uid(&w.ps, STR("a")));
	/* It was a mistake: it is back. */
	put(&w.ps, POD("a", "", ""));
	assert_int_equal(w.ps.nlive, 2);
	assert_int_equal(w.ps.ndeleted, 0);

	/* A mirror made anew: the old one's end does not end the new one. */
	rs_pods_list_begin(&w.ps);
	rs_pods_list_end(&w.ps, S(6));
#define MIRROR ",\"annotations\":{\"kubernetes.io/config.mirror\":\"hash\"}"
	put(&w.ps, POD("m1", MIRROR, ""));
	put(&w.ps, POD("m2", MIRROR, ""));
	gone(&w.ps, POD("m1", MIRROR, ""), S(7));
	assert_true(str_eq(rs_pods_by_uid(&w.ps, STR("hash"))->uid, STR("m2")));
	assert_int_equal(rs_pods_by_uid(&w.ps, STR("hash"))->deleted_ns, 0);
	rs_pods_release(&w.ps);
}

/* A recorded watch replayed: what is left at its end is what the list of that time says. */
static void test_watch(void **state)
{
	struct world w = { 0 };
	size_t len;
	char *text = file(VECTORS "watch.ndjson", &len);
	struct str rest = str_of(text, len), line;

	(void)state;
	rs_pods_init(&w.ps, 64, &w.n);
	while (rest.len) {
		struct rs_pod *p = rs_pods_new(&w.ps);
		struct str key, type = STR_NONE;
		struct rs_json j;

		rest = str_cut(rest, '\n', &line);
		rs_json_init(&j, line, &p->mem);
		assert_true(rs_json_object(&j));
		while (rs_json_key(&j, &key)) {
			if (str_eq(key, STR("type")))
				assert_true(rs_json_str(&j, &type));
			else if (str_eq(key, STR("object")))
				assert_true(rs_pod_parse(p, &j, &w.ps.conf));
			else
				rs_json_skip(&j);
		}
		if (str_eq(type, STR("DELETED")))
			rs_pods_gone(&w.ps, p, S(1));
		else
			rs_pods_put(&w.ps, p);
	}
	assert_int_equal(w.ps.nlive, 9);
	assert_int_equal(w.ps.ndeleted, 1);
	assert_non_null(rs_pods_by_uid(&w.ps, STR("17840c1e-0521-4ccc-a9a6-68033d1090df")));
	is_at(&w.ps, "10.244.0.26", "054432a8-8d70-46aa-9c6f-f0a2d439aea6");
	rs_pods_release(&w.ps);
	free(text);
}

static void test_bad_objects(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"null",
		"{\"metadata\":null}",
		"{\"metadata\":{\"uid\":7,\"name\":\"x\"}}",
		"{\"metadata\":{\"uid\":\"u\"}}",
		"{\"metadata\":{\"name\":\"x\",\"uid\":\"u\"",
	};
	static const char odd[] =
		"{\"metadata\":{\"name\":\"x\",\"uid\":\"u\",\"labels\":[1],\"annotations\":{\"resource.opentelemetry.io/a\":{}},"
		"\"ownerReferences\":{}},\"spec\":{\"containers\":[7,{},{\"name\":\"c\",\"image\":null}]},"
		"\"status\":{\"podIPs\":[{\"ip\":\"nonsense\"},null],\"podIP\":\"1.2.3.4.5\",\"containerStatuses\":"
		"[{\"name\":\"c\",\"containerID\":\"x\"}]}}";
	struct world w = { 0 };

	(void)state;
	rs_pods_init(&w.ps, 2, &w.n);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rs_pod *p = rs_pods_new(&w.ps);

		assert_false(parse(&w.ps, p, str_c(bad[i])));
		rs_pods_drop(&w.ps, p);
	}
	put(&w.ps, odd);
	assert_int_equal(rs_pods_by_uid(&w.ps, STR("u"))->ncontainers, 1);
	assert_int_equal(rs_pods_by_uid(&w.ps, STR("u"))->nips, 0);
	rs_pods_release(&w.ps);
}

static void test_images(void **state)
{
	static const char *const rows[][4] = {
		{ "x", "x", "", "" },
		{ "x:1", "x", "1", "" },
		{ "r:5000/a/x", "r:5000/a/x", "", "" },
		{ "r:5000/a/x:v2@sha256:ab", "r:5000/a/x", "v2", "sha256:ab" },
		{ "x@sha256:ab", "x", "", "sha256:ab" },
		{ "", "", "", "" },
	};
	struct str n, t, d;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rs_image_parse(str_c(rows[i][0]), &n, &t, &d);
		assert_true(str_eq(n, str_c(rows[i][1])) && str_eq(t, str_c(rows[i][2])) &&
			    str_eq(d, str_c(rows[i][3])));
	}
}

/* A pod's process's mounts, and the files of runtimes. */
static void test_runtime_files(void **state)
{
	struct rs_container c = { .cg = { .container_id = "abc" } };
	size_t len;
	char *text = file(VECTORS
			  "bundles/"
			  "082d530b7bb7ed891d9eff96d6ac6e3d99807c8cb864c979ccc2e34b391a34e1.json",
			  &len);

	(void)state;
	rs_arena_init(&c.mem, 1024, 0);
	rs_container_config(&c, str_of(text, len));
	assert_true(str_eq(c.pod_name, STR("burst")) && str_eq(c.pod_namespace, STR("obs")));
	assert_true(str_eq(c.pod_container, STR("c2")) && str_eq(c.image, STR("localhost/bb:1")));
	assert_string_equal(c.cg.pod_uid, "0a49096f-2fd9-4c3d-81a5-a369a5531e3b");
	free(text);
	rs_arena_release(&c.mem);

	c = (struct rs_container){ .cg = { .container_id = "abc" } };
	rs_arena_init(&c.mem, 1024, 0);
	rs_container_config(&c,
			    STR("{\"Name\":\"/web\",\"Config\":{\"Image\":\"nginx:1\",\"Labels\":"
				"{\"io.kubernetes.pod.name\":\"p\"}}}"));
	assert_true(str_eq(c.name, STR("web")) && str_eq(c.image, STR("nginx:1")));
	assert_true(str_eq(c.pod_name, STR("p")));
	rs_arena_release(&c.mem);

	c = (struct rs_container){ .cg = { .container_id = "abc" } };
	rs_arena_init(&c.mem, 1024, 0);
	rs_container_podman(
		&c,
		STR("[{\"id\":\"x\",\"metadata\":\"{\\\"name\\\":\\\"no\\\"}\"},{\"id\":\"abc\","
		    "\"metadata\":\"{\\\"image-name\\\":\\\"i:1\\\",\\\"name\\\":\\\"pod\\\"}\"}]"));
	assert_true(str_eq(c.name, STR("pod")) && str_eq(c.image, STR("i:1")));
	rs_container_mount(
		&c, STR("36 35 98:0 /var/lib/kubelet/pods/0a49096f-2fd9-4c3d-81a5-a369a5531e3b/"
			"containers/c1/1a2b /dev/termination-log rw - ext4 /dev/sda rw"));
	assert_string_equal(c.cg.pod_uid, "0a49096f-2fd9-4c3d-81a5-a369a5531e3b");
	assert_true(str_eq(c.pod_container, STR("c1")));
	rs_container_config(&c, STR("{\"annotations\":7,\"Config\":[],\"Name\":{}}"));
	rs_container_podman(&c, STR("{}"));
	rs_container_mount(&c, STR("1 2"));
	rs_arena_release(&c.mem);
}

/* Where runtimes keep those files. */
static void test_runtime_places(void **state)
{
	static const struct {
		const char *cgroup, *place, *file, *text, *name;
	} rows[] = {
#define BUNDLE	  "io.containerd.runtime.v2.task/"
#define ID	  "326cc3c5ff5d99a6653d5c2f89406567ebd0bb216d7b9788b4be02711c94c8a4"
#define OCI(name) "{\"annotations\":{\"nerdctl/name\":\"" name "\"}}"
		{ "/k8s.io/" ID, "run/containerd/" BUNDLE "k8s.io/" ID, "config.json", OCI("a"),
		  "a" },
		{ "/default/" ID, "run/containerd/" BUNDLE "default/" ID, "config.json", OCI("b"),
		  "b" },
		{ "/" ID, "run/k3s/containerd/" BUNDLE "k8s.io/" ID, "config.json", OCI("c"), "c" },
		{ "/" ID, "run/k0s/containerd/" BUNDLE "k8s.io/" ID, "config.json", OCI("d"), "d" },
		{ "/" ID, "var/snap/microk8s/common/run/containerd/" BUNDLE "k8s.io/" ID,
		  "config.json", OCI("e"), "e" },
		{ "/docker/" ID, "var/lib/docker/containers/" ID, "config.v2.json",
		  "{\"Name\":\"/f\"}", "f" },
		{ "/docker/" ID, "var/snap/docker/common/var-lib-docker/containers/" ID,
		  "config.v2.json", "{\"Name\":\"/g\"}", "g" },
		{ "/libpod-" ID, "var/lib/containers/storage/overlay-containers", "containers.json",
		  "[{\"id\":\"" ID "\",\"metadata\":\"{\\\"name\\\":\\\"h\\\"}\"}]", "h" },
		{ "/docker/" ID, "var/lib/docker/containers/" ID, "config.v2.json", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char root[] = "/tmp/rs-places-XXXXXX", path[512];
		const struct rs_container *c;
		struct rs_containers cs;
		struct rs_counters n = { 0 };
		FILE *f;

		assert_non_null(mkdtemp(root));
		snprintf(path, sizeof(path), "mkdir -p %s/%s", root, rows[i].place);
		assert_int_equal(system(path), 0);
		snprintf(path, sizeof(path), "%s/%s/%s", root, rows[i].place, rows[i].file);
		f = fopen(path, "we");
		assert_non_null(f);
		fputs(rows[i].text, f);
		fclose(f);
		rs_containers_init(&cs, root, &n);
		rs_containers_made(&cs, 7, str_c(rows[i].cgroup));
		c = rs_containers_of(&cs, 1, 7);
		assert_non_null(c);
		assert_string_equal(c->cg.container_id, ID);
		if (!str_eq(c->name, str_c(rows[i].name)))
			fail_msg("%s: '%.*s'", rows[i].place, STR_ARG(c->name));
		rs_containers_release(&cs);
		snprintf(path, sizeof(path), "rm -r %s", root);
		assert_int_equal(system(path), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded),      cmocka_unit_test(test_service_order),
		cmocka_unit_test(test_without_api),   cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_lifetime),      cmocka_unit_test(test_watch),
		cmocka_unit_test(test_bad_objects),   cmocka_unit_test(test_images),
		cmocka_unit_test(test_runtime_files), cmocka_unit_test(test_runtime_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
