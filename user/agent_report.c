// SPDX-License-Identifier: Apache-2.0
#include "agent_report.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"

static void say_config(const struct rs_config *cfg, struct rs_control_client *cl)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return;
	rs_config_show(cfg, out);
	/* What is not said for lack of memory is missing in the report; nothing else can be done. */
	if (!fclose(out))
		(void)rs_control_say(cl, text, len);
	free(text);
}

static void say_log(struct rs_control_client *cl)
{
	char *text = malloc(RS_LOG_TAIL);

	if (text)
		(void)rs_control_say(cl, text, rs_log_tail(text, RS_LOG_TAIL));
	free(text);
}

int rs_report_request(const struct rs_config *cfg, struct rs_control_client *cl, struct str line)
{
	if (str_eq(line, STR("config")))
		say_config(cfg, cl);
	else if (str_eq(line, STR("log")))
		say_log(cl);
	else
		return -ENOENT;
	rs_control_end(cl);
	return 0;
}
