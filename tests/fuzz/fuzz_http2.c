// SPDX-License-Identifier: Apache-2.0
/*
 * HTTP/2 through l7, whole and in pieces. First byte: bit 0 client, bit 1 without the preface (from the middle),
 * bits 2-7 seed of the pieces' sizes. Then orders, by the three low bits of a byte; bit 3: to the client:
 *   0-4  a frame: type, flags, stream, n, and n bytes
 *   5    n: n bytes as they are
 *   6    n: n bytes are lost
 *   7    n: n * 16 bytes behind the last ones were not captured
 */
#include "drives.h"

static struct str take(struct str *in, size_t n)
{
	struct str s = str_at(*in, 0, n);

	*in = str_from(*in, n);
	return s;
}

static size_t number(struct str *in)
{
	struct str s = take(in, 1);

	return s.len ? (uint8_t)s.ptr[0] : 0;
}

static void frame(struct drive *d, enum drive_side side, struct str *in, struct drive_pieces *p)
{
	struct str head = take(in, 3), content;
	char bytes[9 + 255];
	size_t n = number(in);

	if (head.len < 3)
		return;
	content = take(in, n);
	memset(bytes, 0, 9);
	bytes[2] = (char)content.len;
	bytes[3] = head.ptr[0];
	bytes[4] = head.ptr[1];
	bytes[8] = head.ptr[2];
	if (content.len)
		memcpy(bytes + 9, content.ptr, content.len);
	drive_send_pieces(d, side, str_of(bytes, 9 + content.len), p);
}

static bool play(struct drive *d, struct str in, uint8_t first, size_t max)
{
	struct drive_pieces p = { first >> 2, max };
	bool start = !(first & 2), whole = start;

	if (start) {
		drive_send_pieces(d, TO_SERVER, STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), &p);
		drive_send_pieces(d, TO_CLIENT, str_of("\0\0\0\4\0\0\0\0\0", 9), &p);
	}
	while (in.len) {
		size_t order = number(&in);
		enum drive_side side = order & 8 ? TO_CLIENT : TO_SERVER;

		switch (order & 7) {
		case 5:
			drive_send_pieces(d, side, take(&in, number(&in)), &p);
			break;
		case 6:
			drive_lose(d, side, number(&in));
			whole = false;
			break;
		case 7:
			drive_cut(d, side, STR_NONE, (uint32_t)number(&in) * 16, STR("12345678"));
			whole = false;
			break;
		default:
			frame(d, side, &in, &p);
		}
	}
	drive_close(d, RS_CLOSE_ALL);
	return whole;
}

static bool in_step(const struct drive *d)
{
	return !d->counters.v[RS_C_STREAM_OUT_OF_STEP];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_drives(data, size, play, in_step);
	return 0;
}
