/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script — event scripts: records as JSON, one a line, to be written by hand or converted from other
 * tools' recordings. The format is described in tests/golden/README.md.
 */
#ifndef RS_SOURCE_SCRIPT_H
#define RS_SOURCE_SCRIPT_H

#include "tev.h"

/* As rs_tev_read(); `t` in a script is nanoseconds of both clocks: the wall offset is 0. Errors name the
 * line (and column, for what is not JSON); lines before it have been given to fn. */
int rs_script_read(FILE *f, rs_record_fn fn, void *arg, char *err, size_t err_len);

#endif
