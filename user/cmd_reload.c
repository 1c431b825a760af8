// SPDX-License-Identifier: Apache-2.0
/* reload — the running agent reads its config file again, and says what came of it. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cmd.h"
#include "status/control.h"

static void put_list(const char *what, const json_t *list)
{
	size_t n = json_array_size(list);

	if (!n)
		return;
	printf("%s", what);
	for (size_t i = 0; i < n; i++)
		printf("%s %s", i ? "," : "", json_string_value(json_array_get(list, i)));
	printf("\n");
}

/* 0, or -EINVAL: the new settings were refused, or that is no answer. */
static int show(const char *text)
{
	json_t *o = json_loads(text, 0, NULL);
	const char *err = json_string_value(json_object_get(o, "error"));
	const json_t *applied = json_object_get(o, "applied"),
		     *restart = json_object_get(o, "restart");
	int rc = 0;

	if (err && *err) {
		rs_error("%s; the agent goes on as before", err);
		rc = -EINVAL;
	} else if (!json_is_array(applied) || !json_is_array(restart)) {
		rs_error("what answers there is no ringspan agent that can reload");
		rc = -EINVAL;
	} else {
		put_list("applied:", applied);
		put_list("needs a restart:", restart);
		if (!json_array_size(applied) && !json_array_size(restart))
			puts("nothing has changed");
	}
	json_decref(o);
	return rc;
}

int rs_cmd_reload(struct rs_config *cfg)
{
	char err[512], *text;
	size_t len;
	int rc;

	if (rs_cmd_no_args(cfg))
		return RS_EXIT_USAGE;
	if (rs_control_ask(cfg->socket, "reload", &text, &len, err, sizeof(err))) {
		rs_error("%s", err);
		return RS_EXIT_FAILED;
	}
	if (cfg->json) {
		json_t *o = json_loads(text, 0, NULL);
		const char *why = json_string_value(json_object_get(o, "error"));

		rc = why && !*why ? 0 : -EINVAL;
		fwrite(text, 1, len, stdout);
		json_decref(o);
	} else {
		rc = show(text);
	}
	free(text);
	return rc ? RS_EXIT_FAILED : RS_EXIT_OK;
}
