// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "unit.h"

/* What a bug report may show of the options. */
static void secrets_are_masked(void **state)
{
	static const struct {
		const char *option, *value, *shown;
	} cases[] = {
		{ "--otlp-headers", "a=secret,b=secret", "otlp-headers: a=***,b=***  # option\n" },
		{ "--endpoint", "https://me:secret@host:1/p?k=secret",
		  "endpoint: https://***@host:1/p?***  # option\n" },
		{ "--endpoint", "http://host/p@q", "endpoint: http://***@q  # option\n" },
		{ "--endpoint", "unix:///run/x.sock", "endpoint: unix:///run/x.sock  # option\n" },
		{ "--endpoint", "me:secret@host", "endpoint: ***@host  # option\n" },
		{ "--exporter", "datadog,zipkin=http://u:secret@h/,file=/x?y",
		  "exporter: datadog,zipkin=http://***@h/,file=/x?***  # option\n" },
		{ "--sentry-dsn", "https://secret@o1.host/42",
		  "sentry-dsn: https://***@o1.host/42  # option\n" },
		{ "--resource-attributes", "a=b,c=d", "resource-attributes: a=b,c=d  # option\n" },
		{ "--resource-attributes", "a=b,db.password=secret,my_api_key=secret",
		  "resource-attributes: a=b,db.password=***,my_api_key=***  # option\n" },
		{ "--max-connections", "100", "max-connections: 100  # option\n" },
		{ "--batch-age", "10ms", "batch-age: 10000000ns  # option\n" },
		{ "--capture", "socket", "capture: socket  # option\n" },
		{ "--comm", "nginx", "comm: nginx  # option\n" },
		{ "--port", "80", "port: 80  # option\n" },
		{ "--pid", "1", "pid: 1  # option\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *argv[] = { strdup(cases[i].option), strdup(cases[i].value), NULL };
		struct rs_config cfg;
		char *text = NULL;
		size_t len;
		FILE *out = open_memstream(&text, &len);

		rs_config_init(&cfg, RS_CMD_run);
		assert_int_equal(rs_config_load(&cfg, 2, argv), 0);
		rs_config_show(&cfg, out);
		fclose(out);
		assert_string_equal(text, cases[i].shown);
		assert_null(strstr(text, "secret,"));
		rs_config_release(&cfg);
		free(text);
		free(argv[0]);
		free(argv[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(secrets_are_masked) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
