/* SPDX-License-Identifier: Apache-2.0 */
/* unit — cmocka, and what it wants before it. Each unit test begins with it. */
#ifndef RS_TESTS_UNIT_H
#define RS_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#endif
