/* SPDX-License-Identifier: Apache-2.0 */
/* record — is a record what it says it is? Asked once, where records come in. */
#ifndef RS_SOURCE_RECORD_H
#define RS_SOURCE_RECORD_H

#include <stdbool.h>

#include "shared/events.h"

/* Do `avail` bytes hold what the record's type and its own lengths promise? */
bool rs_record_valid(const struct rs_ev_hdr *ev, size_t avail);

#endif
