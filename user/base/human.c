// SPDX-License-Identifier: Apache-2.0
#include "human.h"

#include <stdio.h>

/* v with three digits: 1.23 12.3 123 */
static const char *three(char buf[RS_HUMAN], double v, const char *unit)
{
	/* What rounds up to one digit more loses one behind the point. */
	int decimals = v < 9.995 ? 2 : v < 99.95 ? 1 : 0;

	snprintf(buf, RS_HUMAN, "%.*f%s", decimals, v, unit);
	return buf;
}

const char *rs_human_duration(char buf[RS_HUMAN], uint64_t ns)
{
	uint64_t s = ns / 1000000000;

	if (ns < 1000)
		snprintf(buf, RS_HUMAN, "%uns", (unsigned)ns);
	else if (ns < 999500)
		return three(buf, (double)ns / 1e3, "\xc2\xb5s");
	else if (ns < 999500000)
		return three(buf, (double)ns / 1e6, "ms");
	else if (ns < 59950000000)
		return three(buf, (double)ns / 1e9, "s");
	else if (s < 3600)
		snprintf(buf, RS_HUMAN, "%um%02us", (unsigned)(s / 60), (unsigned)(s % 60));
	else if (s < 86400)
		snprintf(buf, RS_HUMAN, "%uh%02um", (unsigned)(s / 3600), (unsigned)(s / 60 % 60));
	else
		snprintf(buf, RS_HUMAN, "%ud%02uh", (unsigned)(s / 86400),
			 (unsigned)(s / 3600 % 24));
	return buf;
}

const char *rs_human_bytes(char buf[RS_HUMAN], uint64_t bytes)
{
	static const char *const unit[] = { " KB", " MB", " GB", " TB" };
	double v = (double)bytes / 1024;
	int i = 0;

	if (bytes < 1024) {
		snprintf(buf, RS_HUMAN, "%u B", (unsigned)bytes);
		return buf;
	}
	while (v >= 1023.5 && i < 3) {
		v /= 1024;
		i++;
	}
	snprintf(buf, RS_HUMAN, "%.*f%s", v < 99.95 ? 1 : 0, v, unit[i]);
	return buf;
}

const char *rs_human_count(char buf[RS_HUMAN], uint64_t n)
{
	if (n < 1000)
		snprintf(buf, RS_HUMAN, "%u", (unsigned)n);
	else if (n < 100000)
		snprintf(buf, RS_HUMAN, "%u,%03u", (unsigned)(n / 1000), (unsigned)(n % 1000));
	else if (n < 999500)
		return three(buf, (double)n / 1e3, "k");
	else if (n < 999500000)
		return three(buf, (double)n / 1e6, "M");
	else
		return three(buf, (double)n / 1e9, "G");
	return buf;
}
