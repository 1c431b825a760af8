/* SPDX-License-Identifier: Apache-2.0 */
/* maps — the files that a process executes code from (/proc/PID/maps). */
#ifndef RS_TLS_MAPS_H
#define RS_TLS_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct rs_mapped {
	uint64_t start, end; /* of the mapping */
	uint64_t ino;
	const char *path; /* as the process sees it, without " (deleted)" */
	bool deleted;
};

/* One line. False: not a file that is executed. m->path points into line, which is changed. */
bool rs_maps_line(char *line, struct rs_mapped *m);

/* Calls fn for each such file of the process, once, until it says false. 0 or -errno. */
int rs_maps_each(uint32_t tgid, bool (*fn)(void *arg, const struct rs_mapped *m), void *arg);

/* Opens it, though it may be in another mount namespace or deleted. A descriptor, or -errno. */
int rs_maps_open(uint32_t tgid, const struct rs_mapped *m);

#endif
