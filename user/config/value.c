// SPDX-License-Identifier: Apache-2.0
#include "value.h"

#include <stdlib.h>

/* The digits at the front of s; what follows goes to ret_rest. */
static struct str digits(struct str s, struct str *ret_rest)
{
	size_t n = 0;

	while (n < s.len && s.ptr[n] >= '0' && s.ptr[n] <= '9')
		n++;
	*ret_rest = str_from(s, n);
	return str_at(s, 0, n);
}

bool rs_value_bytes(struct str s, uint64_t *ret)
{
	static const char units[] = "kmgt";
	unsigned shift = 0;
	struct str unit;
	uint64_t v;

	if (!str_u64(digits(s, &unit), &v))
		return false;
	if (unit.len) {
		for (unsigned i = 0; units[i]; i++) {
			if (str_lower_char(unit.ptr[0]) == units[i])
				shift = 10 * (i + 1);
		}
		if (shift)
			unit = str_from(unit, 1);
		if (unit.len && !str_ieq(unit, STR("b")) && !(shift && str_ieq(unit, STR("ib"))))
			return false;
	}
	if (v > UINT64_MAX >> shift)
		return false;
	*ret = v << shift;
	return true;
}

bool rs_value_duration(struct str s, uint64_t *ret_ns)
{
	static const struct {
		struct str name;
		uint64_t ns;
	} units[] = {
		{ STR("ns"), 1 },
		{ STR("us"), 1000 },
		{ STR("ms"), 1000000 },
		{ STR("s"), 1000000000 },
		{ STR(""), 1000000000 },
		{ STR("m"), 60000000000 },
		{ STR("min"), 60000000000 },
		{ STR("h"), 3600000000000 },
	};
	struct str unit, frac = STR_NONE;
	uint64_t whole, scale = 0, v;

	if (!str_u64(digits(s, &unit), &whole))
		return false;
	if (unit.len && unit.ptr[0] == '.') {
		frac = digits(str_from(unit, 1), &unit);
		if (!frac.len)
			return false;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (str_eq(unit, units[i].name))
			scale = units[i].ns;
	}
	if (!scale || whole > UINT64_MAX / 2 / scale)
		return false;
	v = whole * scale;
	for (size_t i = 0; i < frac.len && scale; i++) {
		scale /= 10;
		v += (uint64_t)(frac.ptr[i] - '0') * scale;
	}
	*ret_ns = v;
	return true;
}

bool rs_value_ratio(const char *s)
{
	char *end;
	double v = strtod(s, &end);

	return end != s && !*end && v >= 0 && v <= 1;
}
