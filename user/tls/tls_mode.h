/* SPDX-License-Identifier: Apache-2.0 */
/* tls_mode — values of --tls. */
#ifndef RS_TLS_TLS_MODE_H
#define RS_TLS_TLS_MODE_H

enum rs_tls_mode {
	RS_TLS_AUTO,   /* not at points that are dear on this machine */
	RS_TLS_ALWAYS, /* at any price */
	RS_TLS_NEVER,
};

/* What becomes of a process's TLS. */
enum rs_tls_reading {
	RS_TLS_READ,
	RS_TLS_NOT_YET,	   /* it was not looked into; perhaps it has ended already */
	RS_TLS_UNKNOWN,	   /* no library that is known, or none with names to go by */
	RS_TLS_LEFT_ALONE, /* as the user wants it */
	RS_TLS_TOO_DEAR,
	RS_TLS_REFUSED, /* probes cannot be placed or attached */
};

#endif
