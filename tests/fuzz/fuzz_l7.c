// SPDX-License-Identifier: Apache-2.0
/*
 * A connection through l7, whole and in pieces. First byte: bit 0 client, bits 1-7 seed of the pieces' sizes.
 * Then bytes as they are, and these orders:
 *   1, 2    what follows goes to the server, to the client
 *   3 n     n * n bytes are lost in this direction
 *   4 5 6   close: all, in, out
 *   7 n     n * 16 bytes behind what was just sent were not captured; their tail is what follows
 *   8 n     the next record begins n bytes too early
 */
#include "drives.h"

static bool play(struct drive *d, struct str in, uint8_t first, size_t max)
{
	struct drive_pieces p = { first >> 1, max };
	enum drive_side side = TO_SERVER;
	bool whole = true;

	while (in.len) {
		size_t n = 0;
		unsigned order, arg;

		while (n < in.len && ((uint8_t)in.ptr[n] == 0 || (uint8_t)in.ptr[n] > 8))
			n++;
		drive_send_pieces(d, side, str_at(in, 0, n), &p);
		in = str_from(in, n);
		if (!in.len)
			break;
		order = (uint8_t)in.ptr[0];
		arg = in.len > 1 ? (uint8_t)in.ptr[1] : 0;
		in = str_from(in, order == 3 || order >= 7 ? 2 : 1);
		whole &= order != 3 && order < 7;
		switch (order) {
		case 1:
		case 2:
			side = order == 1 ? TO_SERVER : TO_CLIENT;
			break;
		case 3:
			drive_lose(d, side, arg * arg);
			break;
		case 4:
		case 5:
		case 6:
			drive_close(d, (enum rs_ev_how)(order - 4));
			break;
		case 7:
			n = in.len < RS_TAIL_LEN ? in.len : RS_TAIL_LEN;
			drive_cut(d, side, STR_NONE, arg * 16, str_at(in, 0, n));
			in = str_from(in, n);
			break;
		case 8:
			for (int i = 0; i < 2; i++)
				d->off[i] -= arg < d->off[i] ? arg : d->off[i];
			break;
		default:
			break;
		}
	}
	drive_close(d, RS_CLOSE_ALL);
	return whole;
}

static bool in_step(const struct drive *d)
{
	return !d->counters.v[RS_C_STREAM_OUT_OF_STEP] && !d->counters.v[RS_C_PROTO_UNKNOWN] &&
	       !d->counters.v[RS_C_STREAM_UNKNOWN];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_drives(data, size, play, in_step);
	return 0;
}
