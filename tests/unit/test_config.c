// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/suggest.h"
#include "config/value.h"
#include "unit.h"

static int load(struct rs_config *cfg, enum rs_command_id id, int argc, ...)
{
	static char *argv[32];
	va_list ap;

	va_start(ap, argc);
	for (int i = 0; i < argc; i++)
		argv[i] = va_arg(ap, char *);
	va_end(ap);
	argv[argc] = NULL;
	rs_config_init(cfg, id);
	return rs_config_load(cfg, argc, argv);
}

static void test_defaults(void **state)
{
	struct rs_config cfg;

	(void)state;
	assert_int_equal(load(&cfg, RS_CMD_trace, 0), 0);
	assert_int_equal(cfg.ring_size, 8 << 20);
	assert_int_equal(cfg.request_timeout, 600000000000);
	assert_string_equal(cfg.format, "text");
	assert_int_equal(cfg.capture, 0);
	assert_int_equal(cfg.log_level, 2);
	assert_int_equal(cfg.pids.n, 0);
	assert_null(cfg.cmd);
	rs_config_release(&cfg);
}

static void test_flags(void **state)
{
	struct rs_config cfg;

	(void)state;
	assert_int_equal(load(&cfg, RS_CMD_trace, 10, "-p1", "a", "-p", "2", "--pid=3", "--port",
			      "80", "--comm=a-very-long-command-name", "--", "--pid"),
			 0);
	assert_int_equal(cfg.pids.n, 3);
	assert_int_equal(cfg.pids.v[2], 3);
	assert_int_equal(cfg.ports.v[0], 80);
	assert_string_equal(cfg.comms.v[0], "a-very-long-com");
	assert_int_equal(cfg.nargs, 1);
	assert_string_equal(cfg.args[0], "a");
	assert_string_equal(cfg.cmd[0], "--pid");
	assert_null(cfg.cmd[1]);
	rs_config_release(&cfg);
	/* Lists: commas between, or given again. */
	assert_int_equal(load(&cfg, RS_CMD_trace, 8, "-p1,2", "--port", "80, 81", "--port=82",
			      "--comm=a,b", "--include=comm=x,port=1;port=2,service=y", "--exclude",
			      "comm=z"),
			 0);
	assert_int_equal(cfg.pids.n, 2);
	assert_int_equal(cfg.ports.n, 3);
	assert_int_equal(cfg.ports.v[1], 81);
	assert_int_equal(cfg.ports.v[2], 82);
	assert_string_equal(cfg.comms.v[1], "b");
	assert_string_equal(cfg.include.first->next->service, "y");
	rs_config_release(&cfg);
	/* A flag is stronger than what a file says, in both directions. */
	assert_int_equal(load(&cfg, RS_CMD_trace, 2, "--trace-agents", "--trace-agents=false"), 0);
	assert_false(cfg.trace_agents);
	assert_int_equal(cfg.source[RS_O_trace_agents], RS_FROM_FLAG);
	rs_config_release(&cfg);
	assert_int_equal(load(&cfg, RS_CMD_status, 1, "-wh"), 0);
	assert_true(cfg.watch && cfg.help);
	rs_config_release(&cfg);
}

static void test_errors_name_the_place(void **state)
{
	static const struct {
		const char *arg, *err;
	} c[] = {
		{ "--rign-size=1m", "unknown option '--rign-size'; did you mean '--ring-size'?" },
		{ "--ring-size=1q", "--ring-size: '1q' is not a size such as 512k or 16m" },
		{ "--ring-size=1k",
		  "--ring-size: '1k' is out of range; it goes from 64k to 1024m" },
		{ "--pid", "--pid: needs a value (PID,…)" },
		{ "--pid=0", "--pid: '0' is not a process id" },
		{ "--help=1x", "--help: '1x' is not true or false" },
		{ "--port=", "--port: '' is not a port; ports go from 1 to 65535" },
		{ "--port=80;81", "--port: '80;81' is not a port; ports go from 1 to 65535" },
		{ "-p1,x", "-p: 'x' is not a process id" },
		{ "--json",
		  "`ringspan trace` has no option '--json'; see `ringspan trace --help`" },
		{ "-Z", "unknown option '-Z'; see `ringspan trace --help`" },
		{ "--xyzzy", "unknown option '--xyzzy'; see `ringspan trace --help`" },
		{ "--output=", "--output: the value is empty" },
		{ "--capture=sock",
		  "--capture: unknown value 'sock'; did you mean 'socket'? (auto|socket|syscall)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct rs_config cfg;

		assert_true(load(&cfg, RS_CMD_trace, 1, c[i].arg) < 0);
		assert_string_equal(cfg.err, c[i].err);
		rs_config_release(&cfg);
	}
}

static void test_too_many(void **state)
{
	struct rs_config cfg;
	char *argv[RS_FILTER_PORTS + 2];

	(void)state;
	for (int i = 0; i <= RS_FILTER_PORTS; i++)
		argv[i] = (char *)"--port=1";
	argv[RS_FILTER_PORTS + 1] = NULL;
	rs_config_init(&cfg, RS_CMD_trace);
	assert_true(rs_config_load(&cfg, RS_FILTER_PORTS + 1, argv) < 0);
	assert_string_equal(cfg.err, "--port: more than 16 ports");
	rs_config_release(&cfg);
}

static void test_precedence(void **state)
{
	struct str yaml =
		STR("ring-size: 1m\ncapture: syscall\nport: [1, 2]\nmax-connections: 99\n");
	struct rs_config cfg;

	(void)state;
	setenv("RINGSPAN_RING_SIZE", "2m", 1);
	setenv("RINGSPAN_CAPTURE", "socket", 1);
	assert_int_equal(load(&cfg, RS_CMD_trace, 1, "--ring-size=4m"), 0);
	assert_int_equal(rs_config_file(&cfg, yaml, "f"), 0);
	assert_int_equal(cfg.ring_size, 4 << 20);
	assert_int_equal(cfg.source[RS_O_ring_size], RS_FROM_FLAG);
	assert_int_equal(cfg.capture, 1);
	assert_int_equal(cfg.source[RS_O_capture], RS_FROM_ENV);
	assert_int_equal(cfg.max_connections, 99);
	assert_int_equal(cfg.ports.n, 2);
	assert_int_equal(cfg.ports.v[1], 2);
	rs_config_release(&cfg);
	/* lists are replaced, not joined */
	assert_int_equal(load(&cfg, RS_CMD_trace, 1, "--port=9"), 0);
	assert_int_equal(rs_config_file(&cfg, yaml, "f"), 0);
	assert_int_equal(cfg.ports.n, 1);
	rs_config_release(&cfg);
	setenv("RINGSPAN_CAPTURE", "x", 1);
	assert_true(load(&cfg, RS_CMD_trace, 0) < 0);
	assert_string_equal(
		cfg.err, "RINGSPAN_CAPTURE: unknown value 'x'; it is one of auto|socket|syscall");
	rs_config_release(&cfg);
	unsetenv("RINGSPAN_RING_SIZE");
	unsetenv("RINGSPAN_CAPTURE");
}

/* A mistyped OTEL_* value is a warning and the next variable or the default; a flag stays an error. */
static void test_otel_environment(void **state)
{
	struct rs_config cfg;

	(void)state;
	setenv("OTEL_TRACES_SAMPLER", "allways_on", 1);
	setenv("OTEL_BSP_SCHEDULE_DELAY", "0", 1);
	setenv("OTEL_BSP_MAX_QUEUE_SIZE", "many", 1);
	setenv("OTEL_EXPORTER_OTLP_INSECURE", "maybe", 1);
	setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http", 1);
	setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
	assert_int_equal(load(&cfg, RS_CMD_run, 0), 0);
	assert_int_equal(cfg.nwarnings, 5);
	assert_string_equal(cfg.warnings[0],
			    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: unknown value 'http'; did you "
			    "mean 'http/protobuf'? (http/protobuf|grpc|http/json); the "
			    "variable is ignored");
	assert_string_equal(cfg.err, "");
	assert_int_equal(cfg.sampler, 0);
	assert_int_equal(cfg.source[RS_O_sampler], RS_FROM_DEFAULT);
	assert_int_equal(cfg.batch_age, 500000000);
	assert_int_equal(cfg.queue_spans, 200000);
	assert_false(cfg.insecure);
	assert_int_equal(cfg.otlp_protocol, 1);
	rs_config_release(&cfg);
	assert_true(load(&cfg, RS_CMD_run, 1, "--sampler=allways_on") < 0);
	assert_has(cfg.err, "--sampler: unknown value 'allways_on'");
	rs_config_release(&cfg);
	setenv("OTEL_TRACES_SAMPLER", "Always_ON", 1);
	assert_int_equal(load(&cfg, RS_CMD_run, 0), 0);
	assert_int_equal(cfg.sampler, 3);
	rs_config_release(&cfg);
	unsetenv("OTEL_TRACES_SAMPLER");
	unsetenv("OTEL_BSP_SCHEDULE_DELAY");
	unsetenv("OTEL_BSP_MAX_QUEUE_SIZE");
	unsetenv("OTEL_EXPORTER_OTLP_INSECURE");
	unsetenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL");
	setenv("DD_TRACE_AGENT_PORT", "x", 1);
	assert_true(load(&cfg, RS_CMD_run, 0) < 0);
	rs_config_release(&cfg);
	unsetenv("OTEL_EXPORTER_OTLP_PROTOCOL");
	unsetenv("DD_TRACE_AGENT_PORT");
}

static void test_file(void **state)
{
	static const struct {
		const char *text, *err; /* err NULL: fine */
	} c[] = {
		{ "", NULL },
		{ "# nothing\n", NULL },
		{ "---\n", NULL },
		{ "log-level: debug\nformat: json\n", NULL },
		{ "json: true\n", NULL }, /* another command's */
		{ "port: 80\n", NULL },
		{ "capture: sokcet\n",
		  "f:1:10: capture: unknown value 'sokcet'; did you mean 'socket'? (auto|socket|syscall)" },
		{ "\nport:\n - 1\n - x\n",
		  "f:4:4: port: 'x' is not a port; ports go from 1 to 65535" },
		{ "ring-size: 1m\nring-sise: 2\n",
		  "f:2:1: unknown key 'ring-sise'; did you mean 'ring-size'?" },
		{ "config: x\n",
		  "f:1:1: unknown key 'config'; `ringspan config --sample` shows all there are" },
		{ "port: 1\nport: 2\n", "f:2:1: 'port' is given twice" },
		{ "- a\n", "f:1:1: expected `key: value` lines" },
		{ "ring-size: [1]\n", "f:1:12: ring-size takes one value" },
		{ "port: {a: 1}\n", "f:1:7: port takes a value or a list of values" },
		{ "port: [[1]]\n", "f:1:8: port is a list of plain values" },
		{ "format: &a text\n", "f:1:9: anchors and aliases are not supported" },
		{ "format: *a\n", "f:1:9: anchors and aliases are not supported" },
		{ "discovery: &a\n  others: skip\n",
		  "f:1:12: anchors and aliases are not supported" },
		{ "port: &a [1]\n", "f:1:7: anchors and aliases are not supported" },
		{ "&a format: text\n", "f:1:1: anchors and aliases are not supported" },
		{ "export:\n\tfile: x\n", "f:2:1: there is a tab; YAML is indented with blanks" },
		{ "sampling:\n  sampler-arg: 7\n",
		  "f:2:16: sampler-arg: '7' is not a number from 0 to 1" },
		{ "sampler-arg: nan\n", "f:1:14: sampler-arg: 'nan' is not a number from 0 to 1" },
		{ "include: [{exe: '['}]\n",
		  "f:1:17: exe: '[' is no glob: a '[' has no ']', or a '\\' stands last" },
		{ "a: 1\n---\nb: 2\n",
		  "f:1:1: unknown key 'a'; `ringspan config --sample` shows all there are" },
		{ "port: 1\n---\nport: 2\n", "f:2:1: more than one document" },
		{ "port: \"1\\0\"\n", "f:1:7: port: the value has a NUL character in it" },
		{ "port: [a\n", "f:1:8: port: 'a' is not a port; ports go from 1 to 65535" },
		{ "port: [1\n", "f:2:1: did not find expected ',' or ']'" },
		/* texts with commas between as YAML has them */
		{ "exporter: [file, b, [c]]\n", "f:1:21: exporter is a list of plain values" },
		{ "exporter: [file, 'a,b']\n", "f:1:18: exporter: 'a,b' cannot be in a list" },
		{ "exporter: []\n", "f:1:11: exporter: the value is empty" },
		{ "exporter: {file: x}\n", "f:1:11: exporter takes a value or a list of values" },
		{ "otlp-headers: {a: [b]}\n", "f:1:19: headers: a name has one value" },
		{ "otlp-headers: {'a=b': c}\n", "f:1:16: headers: 'a=b' cannot be in a list" },
		{ "endpoint: [a]\n", "f:1:11: endpoint takes one value" },
		{ "k8s:\n  labels: \xff\n", "f:2:11: invalid leading UTF-8 octet" },
		/* sections */
		{ "kernel:\n  ring-size: 1m\nexport:\n  queue: {spans: 5}\n  otlp:\n", NULL },
		{ "discovery:\n", NULL },
		{ "kernel: 5\n", "f:1:9: kernel is a section: expected `key: value` lines in it" },
		{ "export:\n  queue: [1]\n",
		  "f:2:10: export.queue is a section: expected `key: value` lines in it" },
		{ "kernel:\n  ring-sise: 1m\n",
		  "f:2:3: unknown key 'ring-sise'; did you mean 'ring-size'?" },
		{ "exprot:\n  file: x\n", "f:1:1: unknown key 'exprot'; did you mean 'export'?" },
		{ "export:\n  spans: 5\n",
		  "f:2:3: 'spans' does not stand here; there is export.queue.spans" },
		{ "kernel:\n  ring-size: 1m\nring-size: 1m\n",
		  "f:3:1: 'ring-size' is given twice" },
		{ "kernel:\n  ring-size: 1m\nkernel:\n", "f:3:1: 'kernel' is given twice" },
		{ "export:\n  queue:\n    spans: many\n", "f:3:12: spans: 'many' is not a number" },
		{ "[a]: 1\n", "f:1:1: keys are plain names" },
		/* what this command does not take is looked at all the same */
		{ "json: perhaps\n", "f:1:7: json: 'perhaps' is not true or false" },
		/* rules */
		{ "discovery:\n  include:\n    - exe: [node, /usr/bin/*]\n      service: shop\n"
		  "    - label: {app: x, tier: y}\n    - comm=a,port=80-90\n  exclude: {comm: b}\n",
		  NULL },
		{ "discovery:\n  include:\n    - exee: node\n",
		  "f:3:7: a rule has no key 'exee'; did you mean 'exe'?" },
		{ "include:\n  - wxyz: 1\n",
		  "f:2:5: a rule has no key 'wxyz' (docs/config.md lists them)" },
		{ "include:\n  - comm: a\n    comm: b\n", "f:3:5: 'comm' is given twice" },
		{ "include:\n  - comm: {a: b}\n",
		  "f:2:11: comm takes a value or a list of values (GLOB)" },
		{ "include:\n  - service: [a]\n", "f:2:14: service takes one value (NAME)" },
		{ "include:\n  - port: 99999\n",
		  "f:2:11: port: '99999' is not a port or a range of them; ports go from 1 to 65535" },
		{ "include:\n  - port: [[80]]\n", "f:2:12: port is a list of plain values" },
		{ "include:\n  - label: {a: [b]}\n", "f:2:16: label: a label has one value" },
		{ "include: [[a]]\n", "f:1:11: include is a list of rules" },
		{ "include: foo\n",
		  "f:1:10: include: 'foo' is not KEY=VALUE; keys: exe comm port user cgroup container "
		  "pod namespace label service protocols sample depth tls" },
		{ "exclude:\n  - service: a\n", "f:2:5: the rule says how to trace, but excludes" },
		{ "exclude:\n  - {}\n", "f:2:5: the rule has no condition and would exclude all" },
		{ "format: \t- x\n  y: @\n",
		  "f:1:10: block sequence entries are not allowed in this context" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct rs_config cfg;
		int err;

		rs_config_init(&cfg, RS_CMD_trace);
		err = rs_config_file(&cfg, str_c(c[i].text), "f");
		if (c[i].err)
			assert_string_equal(cfg.err, c[i].err);
		else if (err)
			fail_msg("%s: %s", c[i].text, cfg.err);
		assert_int_equal(err < 0, c[i].err != NULL);
		rs_config_release(&cfg);
	}
}

static void test_lists_of_text(void **state)
{
	struct str yaml = STR("exporter: [file, otlp-http=http://a]\n"
			      "resource-attributes: {team: blue, motto: '50%, or more'}\n"
			      "k8s:\n  labels:\n  - app\n  - team/*\n");
	struct rs_config cfg;

	(void)state;
	rs_config_init(&cfg, RS_CMD_run);
	assert_int_equal(rs_config_file(&cfg, yaml, "f"), 0);
	assert_string_equal(cfg.exporter, "file,otlp-http=http://a");
	assert_string_equal(cfg.resource_attributes, "team=blue,motto=50%25%2C or more");
	assert_string_equal(cfg.k8s_labels, "app,team/*");
	assert_string_equal(cfg.where[RS_O_k8s_labels], "f:5:3: labels");
	rs_config_release(&cfg);
	/* As long as it may be. */
	for (size_t n = 4094; n < 4097; n++) {
		char text[8192];

		snprintf(text, sizeof(text), "redact-query: [%0*d, b]\n", (int)n - 2, 1);
		rs_config_init(&cfg, RS_CMD_run);
		assert_int_equal(rs_config_file(&cfg, str_c(text), "f") == 0, n < 4096);
		rs_config_release(&cfg);
	}
}

/* A key is found by its path and, at the top, by its long name; rules keep their order and their place. */
static void test_sections(void **state)
{
	struct str yaml = STR("kernel:\n  ring-size: 1m\n"
			      "export:\n  otlp: {endpoint: 'http://a'}\n  queue:\n    spans: 7\n"
			      "batch-spans: 9\n"
			      "discovery:\n  others: skip\n  include:\n"
			      "  - {exe: node, port: [80, 8000-8010], service: shop, sample: 0.5}\n"
			      "  - label: {app: web}\n");
	struct rs_config cfg;
	const struct rs_rule *r;

	(void)state;
	rs_config_init(&cfg, RS_CMD_run);
	assert_int_equal(rs_config_file(&cfg, yaml, "/etc/r.yaml"), 0);
	assert_int_equal(cfg.ring_size, 1 << 20);
	assert_string_equal(cfg.otlp_endpoint, "http://a");
	assert_int_equal(cfg.queue_spans, 7);
	assert_int_equal(cfg.batch_spans, 9);
	assert_int_equal(cfg.others, 2);
	assert_int_equal(cfg.include.n, 2);
	r = cfg.include.first;
	assert_string_equal(r->where, "/etc/r.yaml:11");
	assert_string_equal(r->service, "shop");
	assert_int_equal(r->port->next->last, 8010);
	assert_string_equal(r->next->label->key, "app");
	assert_string_equal(r->next->label->glob, "web");
	assert_int_equal(cfg.source[RS_O_include], RS_FROM_FILE);
	rs_config_release(&cfg);
	/* A flag's rules replace the file's. */
	assert_int_equal(load(&cfg, RS_CMD_run, 1, "--include=comm=a"), 0);
	assert_int_equal(rs_config_file(&cfg, yaml, "f"), 0);
	assert_int_equal(cfg.include.n, 1);
	assert_string_equal(cfg.include.first->where, "--include");
	rs_config_release(&cfg);
}

/* Every option has a variable; lists have their elements between commas, rules between semicolons. */
static void test_variables(void **state)
{
	struct rs_config cfg;

	(void)state;
	setenv("RINGSPAN_PORT", "80, 81", 1);
	setenv("RINGSPAN_INCLUDE", "comm=a,service=x; comm=b", 1);
	setenv("RINGSPAN_OTLP_ENDPOINT", "http://ours", 1);
	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://theirs", 1);
	assert_int_equal(load(&cfg, RS_CMD_run, 0), 0);
	assert_int_equal(cfg.ports.n, 2);
	assert_int_equal(cfg.ports.v[1], 81);
	assert_int_equal(cfg.include.n, 2);
	assert_string_equal(cfg.include.first->service, "x");
	assert_string_equal(cfg.otlp_endpoint, "http://ours");
	rs_config_release(&cfg);
	/* A Service named ringspan: its address, as Kubernetes gives it to the pods beside it. */
	setenv("RINGSPAN_PORT", "tcp://10.0.0.1:9464", 1);
	assert_int_equal(load(&cfg, RS_CMD_run, 0), 0);
	assert_int_equal(cfg.ports.n, 0);
	rs_config_release(&cfg);
	setenv("RINGSPAN_INCLUDE", "comm=", 1);
	assert_true(load(&cfg, RS_CMD_run, 0) < 0);
	assert_string_equal(cfg.err, "RINGSPAN_INCLUDE: comm: the value is empty");
	rs_config_release(&cfg);
	unsetenv("RINGSPAN_PORT");
	unsetenv("RINGSPAN_INCLUDE");
	unsetenv("RINGSPAN_OTLP_ENDPOINT");
	unsetenv("OTEL_EXPORTER_OTLP_ENDPOINT");
	/* What the agent traces is not what status shows. */
	setenv("RINGSPAN_COMM", "nginx", 1);
	assert_int_equal(load(&cfg, RS_CMD_status, 0), 0);
	assert_int_equal(rs_config_file(&cfg, STR("comm: node\n"), "f"), 0);
	assert_int_equal(cfg.comms.n, 0);
	rs_config_release(&cfg);
	unsetenv("RINGSPAN_COMM");
}

/* Any cut of a file is read or refused, with a message. */
static void test_file_cut_anywhere(void **state)
{
	struct str text = STR(
		"discovery:\n  include:\n  - label: {a: b}\n    port: [1, 2]\nexport: {queue: {spans: 1}}\n"
		"ring-size: 1m\nport: [1, \"2\"]\ncomm:\n  - a\n  - 'b'\n# x\nformat: |\n  json\n");

	(void)state;
	for (size_t n = 0; n <= text.len; n++) {
		struct rs_config cfg;

		rs_config_init(&cfg, RS_CMD_trace);
		if (rs_config_file(&cfg, str_at(text, 0, n), "f"))
			assert_true(cfg.err[0]);
		rs_config_release(&cfg);
	}
}

static void test_values(void **state)
{
	uint64_t v;

	(void)state;
	assert_true(rs_value_bytes(STR("16m"), &v) && v == 16 << 20);
	assert_true(rs_value_bytes(STR("64KiB"), &v) && v == 65536);
	assert_true(rs_value_bytes(STR("7"), &v) && v == 7);
	assert_true(rs_value_bytes(STR("7b"), &v) && v == 7);
	assert_false(rs_value_bytes(STR("7ib"), &v));
	assert_false(rs_value_bytes(STR(""), &v));
	assert_false(rs_value_bytes(STR("k"), &v));
	assert_false(rs_value_bytes(STR("18446744073709551615k"), &v));
	assert_true(rs_value_duration(STR("500ms"), &v) && v == 500000000);
	assert_true(rs_value_duration(STR("1.5s"), &v) && v == 1500000000);
	assert_true(rs_value_duration(STR("2"), &v) && v == 2000000000);
	assert_true(rs_value_duration(STR("1h"), &v) && v == 3600000000000);
	assert_false(rs_value_duration(STR("1."), &v));
	assert_false(rs_value_duration(STR("-1s"), &v));
	assert_false(rs_value_duration(STR("1 s"), &v));
	assert_false(rs_value_duration(STR("99999999999h"), &v));
}

static void test_suggest(void **state)
{
	struct rs_suggest s;

	(void)state;
	rs_suggest_init(&s, STR("stats"));
	rs_suggest_add(&s, "trace");
	rs_suggest_add(&s, "status");
	assert_string_equal(s.best, "status");
	rs_suggest_init(&s, STR("zzz"));
	rs_suggest_add(&s, "run");
	assert_null(s.best);
	rs_suggest_init(&s, STR(""));
	rs_suggest_add(&s, "a");
	assert_null(s.best);
}

/* Every option's default is one it would accept, and every command has help. */
static void test_table(void **state)
{
	FILE *null = fopen("/dev/null", "w");

	(void)state;
	for (int id = 0; id < RS_CMD_COUNT; id++) {
		struct rs_config cfg;

		rs_config_init(&cfg, (enum rs_command_id)id);
		assert_string_equal(cfg.err, "");
		rs_config_help((enum rs_command_id)id, null);
		rs_config_release(&cfg);
	}
	fclose(null);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_errors_name_the_place),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_otel_environment),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_lists_of_text),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_file_cut_anywhere),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_suggest),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
