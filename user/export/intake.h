/* SPDX-License-Identifier: Apache-2.0 */
/* intake — a batch of spans as encoded messages in an exporter's queue, and in its spool. */
#ifndef RS_EXPORT_INTAKE_H
#define RS_EXPORT_INTAKE_H

#include "export/exporter.h"

/*
 * Encodes b, as one message or several; for exporters that want it (ops->by_container) each message holds spans of
 * one container. While the queue is full its oldest messages are dropped. Never fails: what cannot be
 * encoded or kept is counted in e->lost. Sends nothing.
 */
void rs_intake(struct rs_exporter *e, const struct rs_batch *b);

#endif
