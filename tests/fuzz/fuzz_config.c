// SPDX-License-Identifier: Apache-2.0
/*
 * A config file, for the command that the first byte names. Checked: it is read, or refused with a line
 * that has a place in it; numbers are in their bounds, lists in theirs.
 */
#include <string.h>

#include "config/config.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rs_config cfg;
	int err;

	if (!size)
		return 0;
	rs_config_init(&cfg, (enum rs_command_id)(data[0] % RS_CMD_COUNT));
	err = rs_config_file(&cfg, str_of((const char *)data + 1, size - 1), "f");
	FUZZ_CHECK(!err || (str_starts(str_c(cfg.err), STR("f:")) && !strchr(cfg.err, '\n')));
	FUZZ_CHECK(cfg.ring_size >= 65536 && cfg.ring_size <= 1u << 30);
	FUZZ_CHECK(cfg.ports.n <= RS_FILTER_PORTS && cfg.comms.n <= RS_FILTER_COMMS);
	FUZZ_CHECK(cfg.pids.n <= RS_CONFIG_PIDS);
	for (uint32_t i = 0; i < cfg.comms.n; i++)
		FUZZ_CHECK(cfg.comms.v[i][0] && memchr(cfg.comms.v[i], 0, RS_COMM_LEN));
	rs_config_release(&cfg);
	return 0;
}
