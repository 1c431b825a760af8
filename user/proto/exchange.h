/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange — a request and its response on one connection, as `pair` collects it and as a protocol's
 * describe() reads it. Field values are owned by the exchange.
 */
#ifndef RS_PROTO_EXCHANGE_H
#define RS_PROTO_EXCHANGE_H

#include "proto.h"
#include "tls.h"

/* One end of a connection. */
struct rs_endpoint {
	uint16_t port;	 /* 0: none */
	uint8_t at, len; /* of its address in rs_conn_info.addrs; len 0: not known */
};

/* What is known of a connection, for attributes. What a span of IPv4 without TLS needs is in the first 56 bytes. */
struct rs_conn_info {
	uint64_t id; /* socket cookie */
	uint8_t family;
	uint8_t l4;
	bool tls; /* TLS: the protocol is in the plain text */
	struct rs_endpoint local, peer;
	char addrs[108]; /* text: IP addresses, or the path of a Unix socket (one for both ends) */
	struct rs_tls_facts *facts; /* with tls: what its handshake showed; NULL: nothing */
};

/* What its TLS handshake showed; all zero: nothing, or it is not TLS. */
static inline const struct rs_tls_facts *rs_conn_facts(const struct rs_conn_info *i)
{
	static const struct rs_tls_facts none;

	return i->facts ? i->facts : &none;
}

/* An end's address: an IP address, a Unix socket's path, or empty when it is not known. e: one of i's. */
static inline struct str rs_conn_addr(const struct rs_conn_info *i, const struct rs_endpoint *e)
{
	return str_of(i->addrs + e->at, e->len);
}

/* The local end's first. Cut at what there is room for. */
static inline void rs_conn_set_addr(struct rs_conn_info *i, struct rs_endpoint *e, struct str addr)
{
	e->at = e == &i->local ? 0 : i->local.len;
	addr = str_at(addr, 0, sizeof(i->addrs) - e->at);
	e->len = (uint8_t)addr.len;
	if (addr.len)
		memcpy(i->addrs + e->at, addr.ptr, addr.len);
}

/* Why an exchange ended without the whole response. */
enum rs_xend {
	RS_XEND_OK = 0,
	RS_XEND_CLOSED,	   /* connection closed before the response was complete */
	RS_XEND_RESET,	   /* reset by the peer, or by this side */
	RS_XEND_PROC_GONE, /* the traced process ended with it open */
	RS_XEND_LOST,	   /* the end was not captured */
	RS_XEND_TIMEOUT,   /* nothing for longer than the configured time */
	RS_XEND_STOPPED,   /* the agent ended first: nothing is known to be wrong */
	RS_XEND_ABORTED,   /* either end broke off this one exchange: RS_F_HTTP_RESET says why */
};

struct rs_exchange {
	const struct rs_proto_ops *ops;
	const struct rs_conn_info *conn;
	uint8_t role; /* enum rs_ev_role of this process in it: RS_ROLE_CLIENT or RS_ROLE_SERVER */
	uint8_t end;  /* enum rs_xend */
	bool has_response;
	bool request_done; /* the whole request went through */
	bool cut;	   /* some of it was not captured: what is said is right but not all */
	uint64_t start_ns, resp_start_ns,
		end_ns;		      /* CLOCK_MONOTONIC; resp_start_ns 0: no response */
	uint64_t req_body, resp_body; /* bytes of content, or RS_BODY_UNKNOWN */
	uint32_t parts
		[2]; /* messages in the request and in the response (gRPC), or RS_PARTS_UNKNOWN */
	uint32_t tgid, tid;
	uint64_t
		task; /* whose it is: a client's asker, where that is not who wrote; 0: the thread's */
	struct str peer;   /* client: what the other end is called; empty: not known */
	bool peer_is_name; /* it is a name server's word, no service's name */
	uint8_t nreq, nresp;
	struct rs_field req[RS_MSG_FIELDS];
	struct rs_field resp[RS_MSG_FIELDS];
};

static inline struct str rs_x_req(const struct rs_exchange *x, uint16_t id)
{
	for (unsigned i = 0; i < x->nreq; i++) {
		if (x->req[i].id == id)
			return x->req[i].value;
	}
	return STR_NONE;
}

static inline struct str rs_x_resp(const struct rs_exchange *x, uint16_t id)
{
	for (unsigned i = 0; i < x->nresp; i++) {
		if (x->resp[i].id == id)
			return x->resp[i].value;
	}
	return STR_NONE;
}

#endif
