// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#include <jansson.h>

#include "base/asan.h"
#include "base/log.h"
#include "cmd.h"
#include "kernel/version.h"

#define SANITIZED (RS_ASAN ? "address" : "none")

#if defined(__x86_64__)
#define ARCH "x86-64"
#elif defined(__aarch64__)
#define ARCH "arm64"
#else
#define ARCH "unknown"
#endif

int rs_cmd_no_args(const struct rs_config *cfg)
{
	const char *name = rs_command_info[cfg->command].name;

	if (cfg->nargs)
		rs_error("unexpected argument '%s'; see `ringspan %s --help`", cfg->args[0], name);
	else if (cfg->cmd)
		rs_error("`ringspan %s` runs no command; only `ringspan trace -- CMD` does", name);
	else
		return 0;
	return -EINVAL;
}

int rs_cmd_version(struct rs_config *cfg)
{
	unsigned major, minor;

	if (rs_cmd_no_args(cfg))
		return RS_EXIT_USAGE;
	rs_kernel_libbpf_version(&major, &minor);
	if (cfg->json)
		printf("{\"version\":\"%s\",\"arch\":\"%s\",\"compiler\":\"%s\",\"libbpf\":\"%u.%u\","
		       "\"jansson\":\"%s\",\"sanitizer\":\"%s\",\"record_abi\":%d}\n",
		       RS_VERSION, ARCH, __VERSION__, major, minor, JANSSON_VERSION, SANITIZED,
		       RS_ABI);
	else
		printf("ringspan %s\n"
		       "build     %s, compiler %s, sanitizer %s\n"
		       "libbpf    %u.%u\n"
		       "jansson   %s\n"
		       "records   ABI %d\n",
		       RS_VERSION, ARCH, __VERSION__, SANITIZED, major, minor, JANSSON_VERSION,
		       RS_ABI);
	return RS_EXIT_OK;
}
