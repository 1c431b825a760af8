/* SPDX-License-Identifier: Apache-2.0 */
/* control_parts — what both ends of the control socket know. */
#ifndef RS_STATUS_CONTROL_PARTS_H
#define RS_STATUS_CONTROL_PARTS_H

#include <sys/un.h>

#include "control.h"

/* The whole answer to whoever finds no room; asking again soon is of use. */
#define RS_CONTROL_BUSY "{\"error\":\"too many clients; try again\"}\n"

/* 0, or -ENAMETOOLONG and a line in err. */
int rs_control_path(struct sockaddr_un *sun, const char *path, char *err, size_t size);

#endif
