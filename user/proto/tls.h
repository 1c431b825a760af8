/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls — what a TLS handshake shows of itself: server name, version, cipher, resumption, how long it took.
 *
 * Fed with the records that a socket carries (RFC 5246, RFC 8446); what is encrypted is counted, not read. Pure:
 * no clock, no allocation. The state, of a few KB, is needed until the handshake is over.
 */
#ifndef RS_PROTO_TLS_H
#define RS_PROTO_TLS_H

#include "base/str.h"
#include "shared/events.h"

#define RS_TLS_NAME_MAX 127 /* bytes of a server name that is kept; a longer one is left out */
#define RS_TLS_ALPN_MAX 15

/* What is known of a connection's TLS. */
struct rs_tls_facts {
	uint64_t began_ns; /* the caller's: its first segment; 0: not seen */
	uint64_t done_ns;  /* both ends are done, as far as the wire tells; 0: not yet */
	uint16_t version;  /* 0x0303, 0x0304, …; 0: not known */
	uint16_t cipher;   /* IANA number; 0: not known */
	bool resumed;
	bool hello;			       /* version, cipher and resumed are known */
	bool offers_h2;			       /* the client's ALPN has h2 */
	char server_name[RS_TLS_NAME_MAX + 1]; /* as the client asked for; "" */
	/* The protocol that was agreed on; "" if it is not known: TLS 1.3 hides it. */
	char alpn[RS_TLS_ALPN_MAX + 1];
};

#define RS_TLS_CLIENT_HELLO 6144 /* bytes of a hello that are looked at */
#define RS_TLS_SERVER_HELLO 2048

struct rs_tls_stream {
	uint64_t next; /* offset expected */
	uint32_t left; /* bytes of the record under way */
	uint32_t have; /* bytes of the hello */
	uint8_t type;  /* of the record */
	uint8_t nhead;
	uint8_t head[5];
	bool parsed;  /* its hello */
	bool ciphers; /* ChangeCipherSpec went by: what follows is encrypted (to TLS 1.2) */
	bool finished;
	bool blind; /* records cannot be told apart any more */
};

struct rs_tls_handshake {
	struct rs_tls_stream s[2]; /* by enum rs_ev_dir */
	bool client_known;
	uint8_t client; /* enum rs_ev_dir in which the client talks */
	uint8_t nsession;
	uint8_t session[32]; /* id that the client sent */
	uint8_t client_hello[RS_TLS_CLIENT_HELLO];
	uint8_t server_hello[RS_TLS_SERVER_HELLO];
};

enum rs_tls_progress {
	RS_TLS_MORE, /* not over */
	RS_TLS_DONE, /* facts->done_ns is set */
	RS_TLS_LOST, /* bytes are missing, or this is not TLS: nothing more will be known */
};

/* Could a TLS stream begin so? `middle`: or be cut in at the beginning of a record. */
bool rs_tls_begins(struct str bytes, bool middle);

/* h is zeroed at first, but for s[].next: the offset at which that direction begins. A segment of `len` bytes at offset `off`, of which `data` are the first. */
enum rs_tls_progress rs_tls_feed(struct rs_tls_handshake *h, struct rs_tls_facts *facts,
				 enum rs_ev_dir dir, uint64_t off, struct str data, uint64_t len,
				 uint64_t ts_ns);

struct rs_build;
/* What is known, as tls.* attributes. */
void rs_tls_describe(const struct rs_tls_facts *facts, struct rs_build *b);

/* "1.3", or empty. */
struct str rs_tls_version_name(uint16_t version);
/* "TLS_AES_128_GCM_SHA256", or empty when it is not known. */
struct str rs_tls_cipher_name(uint16_t cipher);

#endif
