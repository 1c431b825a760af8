// SPDX-License-Identifier: Apache-2.0
/* A name server's answer. Checked: what is read is a name of plain characters with addresses, in its bounds. */
#include "fuzz.h"
#include "meta/dns.h"
#include "shared/events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rs_dns_answer a;

	if (!rs_dns_parse(str_of((const char *)data, size), &a))
		return 0;
	FUZZ_CHECK(a.n >= 1 && a.n <= RS_DNS_ADDRS && a.len >= 1 && a.len <= RS_DNS_NAME);
	for (unsigned i = 0; i < a.len; i++)
		FUZZ_CHECK(a.name[i] > ' ' && a.name[i] < 127);
	for (uint32_t i = 0; i < a.n; i++)
		FUZZ_CHECK(a.a[i].family == RS_FAMILY_INET || a.a[i].family == RS_FAMILY_INET6);
	return 0;
}
