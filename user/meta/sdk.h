/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sdk — does a process run an OpenTelemetry SDK, and what does that say of the process?
 *
 * An SDK may publish its resource in a mapping named OTEL_CTX (OTEP 4719, version 2): a header that points to a
 * protobuf ProcessContext, whose field 1 is a resource. The header is read before and after: while its
 * publication time is 0 or changes, nothing is believed. Else an SDK shows by a mapped file that names
 * opentelemetry. Reads /proc/PID/maps and the process's memory; writes nothing.
 */
#ifndef RS_META_SDK_H
#define RS_META_SDK_H

#include "base/str.h"

#define RS_SDK_CONTEXT_MAX (64 * 1024) /* bytes of a published context at most */

struct rs_sdk {
	bool present;
	uint64_t header; /* address of the OTEL_CTX mapping, or 0 */
};

/* From the text of /proc/PID/maps, line by line. */
void rs_sdk_map_line(struct rs_sdk *sdk, struct str line);
/* 0, or -errno when the process cannot be looked at. */
int rs_sdk_find(uint32_t pid, struct rs_sdk *ret);

/* The published context's bytes, into buf. Their number, 0 when none can be had. */
size_t rs_sdk_read(uint32_t pid, const struct rs_sdk *sdk, char *buf, size_t size);

/* Each text attribute of a context's resource. False: malformed; what came before was given. */
typedef void (*rs_sdk_attr_fn)(void *arg, struct str key, struct str value);
bool rs_sdk_parse(struct str context, rs_sdk_attr_fn fn, void *arg);

#endif
