/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spangen — batches of random spans for tests of encoders: every value type, nesting, text that is valid and
 * text that is not, sizes 0 to 70 KB, events, links, ids and times that cannot be sent. The same bytes make the
 * same batch: bytes come from a seed or from a fuzzer.
 */
#ifndef RS_TEST_SPANGEN_H
#define RS_TEST_SPANGEN_H

#include "trace/span.h"

struct rs_spangen {
	const uint8_t *in; /* the fuzzer's bytes, then zeros; NULL: from the seed */
	size_t left;
	uint64_t seed;
	bool valid; /* only spans that every protocol can send, and valid text */
};

/* Adds up to `spans` spans to b. False: the batch's arena is at its limit. */
bool rs_spangen_batch(struct rs_spangen *g, struct rs_batch *b, uint32_t spans);

#endif
