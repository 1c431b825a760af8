/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log — words for people, on stderr, one line each. Commands and the agent log; rooms return
 * errors. What works on its own while the agent runs (exporters, the watch of pods) warns of trouble that
 * nobody waits for. A message says what, which object, why, and what to do.
 */
#ifndef RS_BASE_LOG_H
#define RS_BASE_LOG_H

#include <stddef.h>

#define RS_LOG_TAIL (16 * 1024) /* bytes of the last lines that are kept for bug reports */

enum rs_log_level {
	RS_LOG_ERROR,
	RS_LOG_WARN,
	RS_LOG_INFO,
	RS_LOG_DEBUG,
};

/* Exit codes of every command. */
enum rs_exit {
	RS_EXIT_OK = 0,
	RS_EXIT_FAILED = 1,
	RS_EXIT_USAGE = 2,
	RS_EXIT_UNSUPPORTED = 3, /* missing privilege or kernel feature */
};

void rs_log_set_level(enum rs_log_level level);
/* printf-like; adds "ringspan: " and a newline. */
void rs_log(enum rs_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The last lines, oldest first: at most size bytes of them. Returns how many. */
size_t rs_log_tail(char *buf, size_t size);

#define rs_error(...) rs_log(RS_LOG_ERROR, __VA_ARGS__)
#define rs_warn(...)  rs_log(RS_LOG_WARN, __VA_ARGS__)
#define rs_info(...)  rs_log(RS_LOG_INFO, __VA_ARGS__)
#define rs_debug(...) rs_log(RS_LOG_DEBUG, __VA_ARGS__)

#endif
