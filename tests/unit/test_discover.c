// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "discover/discover.h"
#include "meta/facts.h"
#include "unit.h"

struct world {
	struct rs_arena arena;
	struct rs_rules include, exclude;
};

static void begin(struct world *w)
{
	*w = (struct world){ 0 };
	rs_arena_init(&w->arena, 4096, 1 << 20);
}

static void add(struct world *w, struct rs_rules *to, const char *text)
{
	struct rs_rule *r = rs_rules_add(to, &w->arena, text);
	char err[256];

	assert_non_null(r);
	assert_int_equal(
		rs_rule_parse(r, &w->arena, str_c(text), to == &w->exclude, err, sizeof(err)), 0);
}

static enum rs_decision_state decide(struct world *w, enum rs_others others,
				     const struct rs_facts *f)
{
	struct rs_discover d;

	rs_discover_init(&d, &w->include, &w->exclude, others, true);
	return (enum rs_decision_state)rs_discover_decide(&d, f).state;
}

static const struct rs_label labels[] = { { "app", "shop" }, { "tier", "front" } };

static const struct rs_facts shop = {
	.exe = "/usr/bin/node",
	.comm = "node",
	.cgroup = "/kubepods.slice/kubepods-pod1.slice/cri-abc.scope",
	.uid = 1000,
	.container = "web",
	.pod = "shop-1",
	.k8s_namespace = "prod",
	.labels = labels,
	.nlabels = 2,
	.ports = { 8080 },
	.nports = 1,
};

static void test_conditions(void **state)
{
	static const struct {
		const char *rule;
		enum rs_fit fit;
	} c[] = {
		{ "exe=node", RS_FIT_YES },
		{ "exe=/usr/bin/node", RS_FIT_YES },
		{ "exe=/usr/*", RS_FIT_YES },
		{ "exe=/usr", RS_FIT_NO },
		{ "exe=nod", RS_FIT_NO },
		{ "exe=python,exe=no[a-f]e", RS_FIT_YES },
		{ "exe=[]n]ode", RS_FIT_YES },
		{ "exe=[[:alpha:]]ode", RS_FIT_YES },
		{ "exe=\\[", RS_FIT_NO },
		{ "comm=NODE", RS_FIT_NO },
		{ "comm=n*", RS_FIT_YES },
		{ "port=8080", RS_FIT_YES },
		{ "port=8000-9000", RS_FIT_YES },
		{ "port=80", RS_FIT_PORT },
		{ "port=80,comm=x", RS_FIT_NO },
		{ "user=1000", RS_FIT_YES },
		{ "user=root", RS_FIT_NO },
		{ "user=nobody-knows-me", RS_FIT_NO },
		{ "cgroup=/kubepods.slice", RS_FIT_YES },
		{ "cgroup=kubepods-pod1.slice", RS_FIT_YES },
		{ "cgroup=/kubepods", RS_FIT_NO },
		{ "cgroup=*pod1*", RS_FIT_YES },
		{ "container=web,pod=shop-*,namespace=prod", RS_FIT_YES },
		{ "namespace=pro", RS_FIT_NO },
		{ "label=app=shop", RS_FIT_YES },
		{ "label=app=shop,label=tier=back", RS_FIT_NO },
		{ "label=app=x,label=app=shop,label=tier=fr*", RS_FIT_YES },
		{ "label=gone=*", RS_FIT_NO },
		{ "service=x", RS_FIT_YES },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct world w;

		begin(&w);
		add(&w, &w.include, c[i].rule);
		if (rs_rule_fit(w.include.first, &shop) != c[i].fit)
			fail_msg("%s", c[i].rule);
		rs_arena_release(&w.arena);
	}
}

static void test_bad_rules(void **state)
{
	static const struct {
		const char *rule;
		bool exclude;
		const char *err;
	} c[] = {
		{ "exe", false,
		  "'exe' is not KEY=VALUE; keys: exe comm port user cgroup container pod namespace label service "
		  "protocols sample depth tls" },
		{ "exe=", false, "exe: the value is empty" },
		{ "exe=/a/[b", false,
		  "exe: '/a/[b' is no glob: a '[' has no ']', or a '\\' stands last" },
		{ "label=app=[!]", false,
		  "label: '[!]' is no glob: a '[' has no ']', or a '\\' stands last" },
		{ "pod=[[:alpha:]", false,
		  "pod: '[[:alpha:]' is no glob: a '[' has no ']', or a '\\' stands last" },
		{ "comm=a\\", false,
		  "comm: 'a\\' is no glob: a '[' has no ']', or a '\\' stands last" },
		{ "port=0", false,
		  "port: '0' is not a port or a range of them; ports go from 1 to 65535" },
		{ "port=90-80", false,
		  "port: '90-80' is not a port or a range of them; ports go from 1 to 65535" },
		{ "label=app", false, "label: 'app' is not KEY=GLOB" },
		{ "sample=2", false, "sample: '2' is not a number from 0 to 1" },
		{ "sample=nan", false, "sample: 'nan' is not a number from 0 to 1" },
		{ "depth=all", false, "depth: unknown value 'all'; it is one of headers|none" },
		{ "service=a,service=b", false, "service: given twice" },
		{ "comm=x,service=a", true, "the rule says how to trace, but excludes" },
		{ "", true, "the rule has no condition and would exclude all" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct world w;
		char err[256] = "";
		struct rs_rule *r;

		begin(&w);
		r = rs_rules_add(&w.include, &w.arena, "here");
		assert_int_equal(rs_rule_parse(r, &w.arena, str_c(c[i].rule), c[i].exclude, err,
					       sizeof(err)),
				 -22);
		assert_string_equal(err, c[i].err);
		rs_arena_release(&w.arena);
	}
}

static void test_order(void **state)
{
	struct rs_facts f = shop, agent = { .exe = "/usr/local/bin/kubelet", .nlabels = 0 };
	struct world w;

	(void)state;
	begin(&w);
	/* No rules: all but the node's own agents. */
	assert_int_equal(decide(&w, RS_OTHERS_AUTO, &f), RS_DECIDED_TRACE);
	assert_int_equal(decide(&w, RS_OTHERS_AUTO, &agent), RS_DECIDED_SKIP);
	assert_int_equal(decide(&w, RS_OTHERS_SKIP, &f), RS_DECIDED_SKIP);
	/* A rule of include: the rest is out, and an agent may be in. */
	add(&w, &w.include, "exe=kubelet");
	assert_int_equal(decide(&w, RS_OTHERS_AUTO, &f), RS_DECIDED_SKIP);
	assert_int_equal(decide(&w, RS_OTHERS_TRACE, &f), RS_DECIDED_TRACE);
	assert_int_equal(decide(&w, RS_OTHERS_AUTO, &agent), RS_DECIDED_TRACE);
	/* exclude is stronger. */
	add(&w, &w.exclude, "exe=kubelet");
	assert_int_equal(decide(&w, RS_OTHERS_AUTO, &agent), RS_DECIDED_SKIP);
	/* A port that may come. */
	add(&w, &w.include, "port=443");
	assert_int_equal(decide(&w, RS_OTHERS_AUTO, &f), RS_DECIDED_PORTS);
	assert_int_equal(decide(&w, RS_OTHERS_TRACE, &f), RS_DECIDED_TRACE);
	assert_true(rs_facts_add_port(&f, 443, false));
	assert_int_equal(decide(&w, RS_OTHERS_AUTO, &f), RS_DECIDED_TRACE);
	rs_arena_release(&w.arena);
}

/* What is not known yet decides nothing, unless something stronger has. */
static void test_pending(void **state)
{
	struct rs_facts f = shop;
	struct world w;

	(void)state;
	begin(&w);
	add(&w, &w.exclude, "label=app=shop");
	f.nlabels = -1;
	assert_int_equal(decide(&w, RS_OTHERS_AUTO, &f), RS_DECIDED_PENDING);
	add(&w, &w.include, "namespace=prod");
	assert_int_equal(decide(&w, RS_OTHERS_AUTO, &f), RS_DECIDED_PENDING);
	f.nlabels = 2;
	assert_int_equal(decide(&w, RS_OTHERS_AUTO, &f), RS_DECIDED_SKIP);
	f.nlabels = 0;
	assert_int_equal(decide(&w, RS_OTHERS_AUTO, &f), RS_DECIDED_TRACE);
	f.nlabels = -1;
	f.comm = "cron";
	rs_arena_release(&w.arena);
	begin(&w);
	/* A pod's label that is not known, of a process that another condition rules out. */
	add(&w, &w.exclude, "label=app=shop,comm=node");
	assert_int_equal(decide(&w, RS_OTHERS_AUTO, &f), RS_DECIDED_TRACE);
	rs_arena_release(&w.arena);
}

static void test_policy(void **state)
{
	struct world w;
	const struct rs_rule *r;

	(void)state;
	begin(&w);
	add(&w, &w.include, "service=shop,protocols=http1,sample=0.25,depth=none,tls=never");
	r = w.include.first;
	assert_string_equal(r->service, "shop");
	assert_int_equal(r->protocols & 1, 1);
	assert_true(r->sample == 0.25);
	assert_int_equal(r->depth, RS_DEPTH_NONE);
	assert_int_equal(r->tls, RS_RULE_TLS_NEVER);
	add(&w, &w.include, "comm=a-command-of-many-letters");
	assert_string_equal(r->next->comm->glob, "a-command-of-ma");
	assert_true(r->next->sample < 0);
	rs_arena_release(&w.arena);
}

/* A port's rule traces the port's clients, but names its server. */
static void test_service_of_port(void **state)
{
	struct rs_facts f = { .comm = "front", .nlabels = 0 };
	struct world w;

	(void)state;
	begin(&w);
	add(&w, &w.include, "port=8080,service=shop");
	assert_true(rs_facts_add_port(&f, 8080, true));
	assert_false(rs_facts_add_port(&f, 8080, true));
	assert_int_equal(decide(&w, RS_OTHERS_AUTO, &f), RS_DECIDED_TRACE);
	assert_null(rs_rule_service(w.include.first, &f));
	/* Its own port's rule, though it stands behind. */
	add(&w, &w.include, "port=9090,service=front");
	assert_true(rs_facts_add_port(&f, 9090, false));
	assert_string_equal(rs_rule_service(w.include.first, &f), "front");
	/* It calls itself, say. */
	assert_true(rs_facts_add_port(&f, 8080, false));
	assert_false(rs_facts_add_port(&f, 8080, true));
	assert_string_equal(rs_rule_service(w.include.first, &f), "shop");
	rs_arena_release(&w.arena);
	begin(&w);
	/* Who says whom else means those. */
	f.nports = 0;
	assert_true(rs_facts_add_port(&f, 8080, true));
	add(&w, &w.include, "port=8080,comm=front,service=front");
	assert_string_equal(rs_rule_service(w.include.first, &f), "front");
	rs_arena_release(&w.arena);
}

static void test_cgroup_text(void **state)
{
	static const struct {
		const char *text, *path;
	} c[] = {
		{ "0::/system.slice/x.service\n", "/system.slice/x.service" },
		{ "12:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n", "/docker/abc" },
		{ "12:cpu:/a\n0::/b\n", "/b" },
		{ "0::/", "/" },
		{ "nonsense\n\n::\n", "" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		assert_true(str_eq(rs_facts_cgroup_of(str_c(c[i].text)), str_c(c[i].path)));
}

static void test_own_facts(void **state)
{
	struct rs_facts f = { 0 };
	struct rs_arena a;

	(void)state;
	rs_arena_init(&a, 1024, 1 << 16);
	assert_int_equal(rs_facts_uid((uint32_t)getpid()), geteuid());
	assert_int_equal(rs_facts_uid(0x7fffffff), RS_FACTS_NO_UID);
	assert_int_equal(rs_facts_cgroup((uint32_t)getpid(), &a)[0], '/');
	assert_null(rs_facts_cgroup(0x7fffffff, &a));
	for (uint32_t i = 0; i < RS_FACTS_PORTS; i++)
		rs_facts_add_port(&f, (uint16_t)(i + 1), false);
	assert_false(rs_facts_add_port(&f, 999, false));
	assert_int_equal(f.nports, RS_FACTS_PORTS);
	rs_arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conditions),  cmocka_unit_test(test_bad_rules),
		cmocka_unit_test(test_order),	    cmocka_unit_test(test_pending),
		cmocka_unit_test(test_policy),	    cmocka_unit_test(test_service_of_port),
		cmocka_unit_test(test_cgroup_text), cmocka_unit_test(test_own_facts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
