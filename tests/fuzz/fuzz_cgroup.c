// SPDX-License-Identifier: Apache-2.0
/* The text of /proc/PID/cgroup. Checked: ids are of their alphabet and stand in the text; uids have a length. */
#include <string.h>

#include "meta/cgroup.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_of((const char *)data, size);
	struct rs_cgroup c;
	bool any = rs_cgroup_text(text, &c);
	size_t id = strnlen(c.container_id, sizeof(c.container_id));
	size_t uid = strnlen(c.pod_uid, sizeof(c.pod_uid));

	FUZZ_CHECK(id < sizeof(c.container_id) && uid < sizeof(c.pod_uid));
	FUZZ_CHECK(any == (id || uid));
	FUZZ_CHECK(!uid || uid == 36 || uid == 32);
	FUZZ_CHECK(!id || memmem(data, size, c.container_id, id));
	FUZZ_CHECK(*rs_runtime_name((enum rs_runtime)c.runtime) == 0 || id);
	return 0;
}
