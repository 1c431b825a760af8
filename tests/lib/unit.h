/* SPDX-License-Identifier: Apache-2.0 */
/* unit — cmocka, and what it wants before it. Each unit test begins with it. */
#ifndef RS_TESTS_UNIT_H
#define RS_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* The text holds this part; says both when it does not. */
#define assert_has(text, part)                                                                     \
	do {                                                                                       \
		if (!strstr(text, part))                                                           \
			fail_msg("no '%s' in:\n%s", part, text);                                   \
	} while (0)

#endif
