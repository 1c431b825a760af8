// SPDX-License-Identifier: Apache-2.0
#include "buildinfo.h"

#include <errno.h>
#include <stdint.h>

#define HEADER	    32
#define FLAGS	    15
#define FLAG_INLINE 2 /* the strings follow the header, each after its length as a varint */

int rs_go_buildinfo(struct str section, struct str *ret_version)
{
	static const struct str magic = { "\xff Go buildinf:", 14 };
	uint64_t len = 0;
	size_t at = HEADER;

	if (section.len <= HEADER || !str_starts(section, magic) ||
	    !(section.ptr[FLAGS] & FLAG_INLINE))
		return -EBADMSG;
	for (unsigned shift = 0;; shift += 7) {
		uint8_t b;

		if (at == section.len || shift > 21)
			return -EBADMSG;
		b = (uint8_t)section.ptr[at++];
		len |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			break;
	}
	if (!len || len > section.len - at)
		return -EBADMSG;
	*ret_version = str_at(section, at, len);
	return 0;
}

int rs_go_minor(struct str version, unsigned *ret)
{
	static const struct str devel = { "devel ", 6 }, go1 = { "go1.", 4 };
	unsigned n = 0, digits = 0;

	if (str_starts(version, devel))
		version = str_from(version, devel.len);
	if (!str_starts(version, go1))
		return -EBADMSG;
	version = str_from(version, go1.len);
	while (digits < version.len && digits < 4 && version.ptr[digits] >= '0' &&
	       version.ptr[digits] <= '9')
		n = n * 10 + (unsigned)(version.ptr[digits++] - '0');
	if (!digits)
		return -EBADMSG;
	*ret = n;
	return 0;
}
