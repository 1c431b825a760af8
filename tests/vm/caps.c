// SPDX-License-Identifier: Apache-2.0
/*
 * caps NAMES COMMAND…: runs it as root with these capabilities only (effective, permitted, bounding), as a
 * container runtime would after `drop: [ALL]`. NAMES with commas between: BPF,PERFMON.
 */
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	int cap;
} known[] = {
	{ "BPF", CAP_BPF },
	{ "PERFMON", CAP_PERFMON },
	{ "SYS_PTRACE", CAP_SYS_PTRACE },
	{ "DAC_READ_SEARCH", CAP_DAC_READ_SEARCH },
	{ "SYS_ADMIN", CAP_SYS_ADMIN },
	{ "SYS_RESOURCE", CAP_SYS_RESOURCE },
	{ "NET_ADMIN", CAP_NET_ADMIN },
};

static int find(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(known[i].name, name))
			return known[i].cap;
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { 0 };
	uint64_t set = 0;

	if (argc < 3)
		return 2;
	for (char *name = strtok(argv[1], ","); name; name = strtok(NULL, ",")) {
		int cap = find(name);

		if (cap < 0) {
			fprintf(stderr, "caps: unknown: %s\n", name);
			return 2;
		}
		set |= 1ull << cap;
	}
	for (unsigned i = 0; i < 64; i++) {
		if (!(set >> i & 1) && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
			prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	}
	for (unsigned i = 0; i < 2; i++)
		d[i].effective = d[i].permitted = (uint32_t)(set >> 32 * i);
	if (syscall(SYS_capset, &h, d) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		perror("caps");
		return 1;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
