/* SPDX-License-Identifier: Apache-2.0 */
/* price — what a probe costs on this machine. */
#ifndef RS_TLS_PRICE_H
#define RS_TLS_PRICE_H

#include "tls.h"

/* Attaches a probe to two instructions of this program itself and runs through them. 0 or -errno. */
int rs_tls_measure(struct rs_kernel *k, struct rs_tls_price *ret);

#endif
