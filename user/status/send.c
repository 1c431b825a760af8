// SPDX-License-Identifier: Apache-2.0
#include "send.h"

#include <errno.h>
#include <sys/socket.h>

int rs_send_rest(int fd, const char *bytes, size_t len, size_t *sent)
{
	while (*sent < len) {
		ssize_t n = send(fd, bytes + *sent, len - *sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 1;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		*sent += (size_t)n;
	}
	return 0;
}
