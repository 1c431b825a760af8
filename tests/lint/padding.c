/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled under -Wpadded: no record that crosses from the kernel may have a hole that is not named. */
#include "shared/events.h"
#include "shared/config.h"

const struct {
	struct rs_ev_open open;
	struct rs_ev_task task;
	struct rs_ev_cgroup cgroup;
	struct rs_ev_fact fact;
	struct rs_ev_data data_head;
} rs_lint_padding_of_records;
