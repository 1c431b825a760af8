/* SPDX-License-Identifier: Apache-2.0 */
/* tls_mode — values of --tls. */
#ifndef RS_TLS_TLS_MODE_H
#define RS_TLS_TLS_MODE_H

enum rs_tls_mode {
	RS_TLS_AUTO,   /* not at points that are dear on this machine */
	RS_TLS_ALWAYS, /* at any price */
	RS_TLS_NEVER,
};

#endif
