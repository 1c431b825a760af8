/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system — the TLS libraries in the system's own directories: those that programs of distributions link to.
 * Reads directories, nothing else.
 */
#ifndef RS_TLS_SYSTEM_H
#define RS_TLS_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#define RS_TLS_SYSTEM_DIRS 4

/* When the directories last changed, as of the last look. ns since the epoch; 0: not there. */
struct rs_tls_system {
	uint64_t changed_ns[RS_TLS_SYSTEM_DIRS];
};

/* Could a file with this name be a TLS library? path: with or without directories. */
bool rs_tls_promising(const char *path);

/* Calls fn for each such file below root, open for reading while it runs. path: without root. */
void rs_tls_system(struct rs_tls_system *s, const char *root,
		   void (*fn)(void *arg, int fd, const char *path), void *arg);
/* Has a directory changed since? */
bool rs_tls_system_changed(const struct rs_tls_system *s, const char *root);

#endif
