/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buildinfo — the version of Go that made a program, from its section .go.buildinfo (debug/buildinfo in Go's
 * own library describes it): pure, no allocation. Programs of Go before 1.18 have it in another form and
 * are not read: their registers say nothing of goroutines either.
 */
#ifndef RS_GO_BUILDINFO_H
#define RS_GO_BUILDINFO_H

#include "base/str.h"

/* "go1.26.8": part of the section. -EBADMSG: not such a section, or of before 1.18. */
int rs_go_buildinfo(struct str section, struct str *ret_version);

/* 26 of "go1.26.8", "go1.26rc1", "go1.26-custom", "devel go1.26-abcdef"; -EBADMSG for anything else. */
int rs_go_minor(struct str version, unsigned *ret);

#endif
