/* SPDX-License-Identifier: Apache-2.0 */
/* send — an answer to a client of a socket that must not block; page and control have such clients. */
#ifndef RS_STATUS_SEND_H
#define RS_STATUS_SEND_H

#include <stddef.h>

/*
 * Sends what is left, from *sent on, which goes on with it. 0: all is sent; 1: the socket takes no more for now;
 * -errno: the client is gone.
 */
int rs_send_rest(int fd, const char *bytes, size_t len, size_t *sent);

#endif
