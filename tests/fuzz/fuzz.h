/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz — what a fuzz target is: LLVMFuzzerTestOneInput() in fuzz_NAME.c, seeds in corpus/NAME, inputs that
 * once failed in regress/NAME, words in dict/NAME.dict (optional). `make check-fuzz` runs each for FOR
 * seconds; `make check-unit` replays corpus and regress through fuzz_main.c, without libFuzzer.
 */
#ifndef RS_TESTS_FUZZ_H
#define RS_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert(): it holds in every build, and the fuzzer sees a crash. */
#define FUZZ_CHECK(cond)                                                                           \
	do {                                                                                       \
		if (!(cond))                                                                       \
			__builtin_trap();                                                          \
	} while (0)

#endif
