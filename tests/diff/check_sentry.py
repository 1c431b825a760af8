#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random spans as Sentry envelopes, taken apart by the specification and compared: check_sentry.py RINGSPAN [FIRST_SEED]."""
import re
import sys

from common import encode, loads, need, plain, run, same_text
from edges import batch, span
from otlpgen import named, spans, text

GRPC = """ok cancelled unknown_error invalid_argument deadline_exceeded not_found already_exists permission_denied resource_exhausted
failed_precondition aborted out_of_range unimplemented internal_error unavailable data_loss unauthenticated""".split()
HTTP = {400: "failed_precondition", 401: "unauthenticated", 403: "permission_denied", 404: "not_found", 409: "aborted", 429: "resource_exhausted",
        499: "cancelled", 500: "internal_error", 501: "unimplemented", 503: "unavailable", 504: "deadline_exceeded"}
QUEUE = {"publish": "publish", "send": "publish", "create": "create", "receive": "receive", "process": "process", "deliver": "process", "settle": "settle"}


def envelopes(data):
    """[(header, [(item header, payload)])] of a file with one envelope after the other."""
    out, at = [], 0
    while at < len(data):
        end = data.index(b"\n", at)
        header = loads(data[at:end])
        at = end + 1
        if "type" not in header:
            out.append((header, []))
            continue
        need(type(header["length"]) is int, "length")
        payload = data[at:at + header["length"]]
        need(len(payload) == header["length"], "length", header["length"])
        at += header["length"]
        need(at == len(data) or data[at:at + 1] == b"\n", "newline after the payload")
        at += 1
        out[-1][1].append((header, payload))
    return out


def first(attrs, *keys):
    for k in keys:
        for a, v in attrs:
            if text(a) == k:
                return v
    return None


def words(attrs, *keys):
    v = first(attrs, *keys)
    return text(v[1]) if v and v[0] == "s" else ""


def number(attrs, *keys):
    v = first(attrs, *keys)
    return v[1] if v and v[0] == "i" else -1


def op(s):
    a, kind = s["attrs"], s["kind"]
    if first(a, "http.request.method", "http.method") and kind in (2, 3):
        return "http.server" if kind == 2 else "http.client"
    if first(a, "db.system.name", "db.system"):
        # The first of the two names in the span's order.
        name = next(v for k, v in a if k in (b"db.system.name", b"db.system"))
        return "db.redis" if name == ("s", b"redis") else "db"
    if first(a, "rpc.system.name", "rpc.system"):
        return "rpc"
    if first(a, "messaging.system"):
        return "queue." + QUEUE.get(words(a, "messaging.operation").lower(), "publish" if kind == 4 else "process")
    if first(a, "graphql.operation.type"):
        return "graphql"
    return "function" if first(a, "faas.trigger") else "default"


def status(s):
    if s["status"] != 2:
        return "ok"
    grpc = number(s["attrs"], "rpc.grpc.status_code")
    if 0 < grpc < len(GRPC):
        return GRPC[grpc]
    name = words(s["attrs"], "rpc.response.status_code").lower()
    for known in GRPC[1:]:
        if name and known in (name, name + "_error"):
            return known
    code = next((v for k, v in s["attrs"] if k in (b"http.response.status_code", b"http.status_code")), ("i", -1))
    return HTTP.get(code[1], "unknown_error")


def own_attrs(s):
    """The span's and its last exception's; the first of a name stays; nothing empty."""
    out = {}
    exceptions = [e for e in s["events"] if e["name"] == b"exception"]
    for k, v in s["attrs"] + (exceptions[-1]["attrs"] if exceptions else []):
        if text(k) and v[0] != "e" and text(k) not in out:
            out[text(k)] = v
    return out


def same_typed(g, v):
    need(set(g) == {"type", "value"}, g)
    if v[0] == "b":
        return g == {"type": "boolean", "value": v[1]}
    if v[0] == "i" and abs(v[1]) <= 2**53:
        return g["type"] == "integer" and type(g["value"]) is int and g["value"] == v[1]
    if v[0] == "d" and type(plain(v)) is float:
        return g["type"] == "double" and g["value"] == v[1]
    return g["type"] == "string" and same_text(g["value"], v)


def same_plain(g, v):
    return g == (str(v[1]) if v[0] == "i" and abs(v[1]) > 2**53 else plain(v))


def check_links(g, s, same):
    links = g.get("links", [])
    need(len(links) == len(s["links"]), "links")
    for a, l in zip(links, s["links"]):
        need(a["trace_id"] == l["trace_id"].hex() and a["span_id"] == l["span_id"].hex(), "link ids")
        need(a.get("sampled") == (bool(l["flags"] & 1) if l["flags"] else None), "link sampled")
        attrs = a.get("attributes", {})
        want = {text(k): v for k, v in named(l["attrs"]) if v[0] != "e"}
        need(attrs.keys() == want.keys() and all(same(attrs[k], v) for k, v in want.items()), "link attributes", attrs, want)


def same_time(g, ns):
    return abs(round(g * 1e6) - ns // 1000) <= 1  # a double's microseconds


def is_segment(s):
    return not s["parent"] or s["flags"] & 0x300 == 0x300 or s["kind"] in (2, 5)


def check_ids(g, s):
    need(g["trace_id"] == s["trace_id"].hex() and g["span_id"] == s["span_id"].hex() and g.get("parent_span_id", "") == s["parent"].hex(), "ids")


def check_item(g, rs, ss, s):
    need({"trace_id", "span_id", "name", "status", "is_segment", "start_timestamp", "end_timestamp", "attributes"} <= set(g) <=
         {"trace_id", "span_id", "parent_span_id", "name", "status", "is_segment", "start_timestamp", "end_timestamp", "attributes", "links"}, set(g))
    check_ids(g, s)
    need(g["name"] == text(s["name"]) and g["status"] == ("error" if s["status"] == 2 else "ok") and g["is_segment"] == bool(is_segment(s)), "fields")
    need(same_time(g["start_timestamp"], s["start"]) and same_time(g["end_timestamp"], s["end"]), "times")
    attrs, want = dict(g["attributes"]), own_attrs(s)
    for k, v in want.items():
        need(k in attrs and same_typed(attrs.pop(k), v), "attribute", k)
    need(same_typed(attrs.pop("sentry.op"), ("s", op(s).encode())), "op", op(s))
    need(re.fullmatch(r"(auto|manual)(\.[A-Za-z0-9_]+){0,3}", attrs.pop("sentry.origin")["value"]), "origin")
    for k, v in rs["attrs"]:
        if text(k) and v[0] != "e":
            need(same_typed(attrs.pop("resource." + text(k)), v), "resource", k)
    for k in attrs:
        need(k.startswith("sentry.") or k in ("instrumentation.name", "instrumentation.version"), "unknown attribute", k)
    for k, v in (("sentry.release", words(rs["attrs"], "service.version")),
                 ("sentry.environment", words(rs["attrs"], "deployment.environment.name") or words(rs["attrs"], "deployment.environment")),
                 ("instrumentation.name", text(ss["name"]))):
        need(attrs.get(k, {}).get("value", "") == v, k, attrs.get(k), v)
    check_links(g, s, same_typed)


def check_trace(g, s):
    check_ids(g, s)
    need(g["op"] == op(s) and g["status"] == status(s), "op or status", g["op"], g["status"], op(s), status(s))
    want = own_attrs(s)
    need(g["data"].keys() == want.keys(), "data", g["data"].keys() ^ want.keys())
    for k, v in want.items():
        need(same_plain(g["data"][k], v), "data", k, g["data"][k])
    check_links(g, s, same_plain)


def check_header(h, tid):
    need(h["sdk"]["name"] and h["sdk"]["version"], "sdk")
    t = h["trace"]
    need(t["trace_id"] == tid and all(type(v) is str for v in t.values()), "trace", t)
    need(0 <= float(t["sample_rand"]) < 1 and re.fullmatch(r"0\.\d{6}", t["sample_rand"]), "sample_rand", t)
    need((float(t["sample_rand"]) < float(t["sample_rate"])) == (t["sampled"] == "true"), "sampled", t)


def check(to, data, batch):
    want = {}
    for rs, ss, s in spans(batch):
        want[s["trace_id"], s["span_id"]] = (rs, ss, s)
    n = 0
    for h, items in envelopes(data):
        need(len(items) == 1, "items", len(items))
        ih, payload = items[0]
        body = loads(payload)
        check_header(h, body["items"][0]["trace_id"] if to == "sentry" else body["contexts"]["trace"]["trace_id"])
        if to == "sentry":
            need("event_id" not in h and ih["type"] == "span" and ih["content_type"] == "application/vnd.sentry.items.span.v2+json", ih)
            need(ih["item_count"] == len(body["items"]) <= 1000 and set(body) == {"items"}, "item_count")
            for g in body["items"]:
                check_item(g, *want.pop((bytes.fromhex(g["trace_id"]), bytes.fromhex(g["span_id"]))))
                need(g["trace_id"] == h["trace"]["trace_id"], "one trace")
                n += 1
            continue
        need(ih["type"] == body["type"] == "transaction" and re.fullmatch("[0-9a-f]{32}", h["event_id"]) and h["event_id"] == body["event_id"], "event id")
        need(body["transaction"] and body["transaction_info"]["source"] in ("custom", "url", "route", "view", "component", "task"), "transaction")
        t = body["contexts"]["trace"]
        rs, ss, s = want.pop((bytes.fromhex(t["trace_id"]), bytes.fromhex(t["span_id"])))
        check_trace(t, s)
        need(same_time(body["start_timestamp"], s["start"]) and same_time(body["timestamp"], s["end"]), "times")
        need(len(body.get("breadcrumbs", [])) == len(s["events"]), "breadcrumbs")
        for b, e in zip(body.get("breadcrumbs", []), s["events"]):
            need(b["message"] == text(e["name"]) and b.get("data", {}) == {text(k): plain(v) for k, v in named(e["attrs"])}, "breadcrumb")
        inside = {s["span_id"]}
        n += 1
        for g in body["spans"]:
            rs2, _, c = want.pop((bytes.fromhex(g["trace_id"]), bytes.fromhex(g["span_id"])))
            check_trace(g, c)
            need(not is_segment(c) and rs2 is rs and c["trace_id"] == s["trace_id"], "a transaction inside another")
            inside.add(c["span_id"])
            n += 1
        need(all(bytes.fromhex(g["parent_span_id"]) in inside for g in body["spans"]), "a span without its parent")
    need(not want, "spans missing", len(want))
    return n


def family(sizes):
    """A trace of one service: a root and its children, each with a text of so many bytes."""
    return batch([span(span_id=(7000 + i).to_bytes(8, "big"), parent=(7000).to_bytes(8, "big") if i else b"", attrs=[(b"v", ("s", b"x" * n))])
                  for i, n in enumerate(sizes)])


def check_sizes(ringspan):
    """What Sentry would refuse is left out, alone: spans per envelope."""
    for sizes, containers, transactions in (([10] * 2001, [1000, 1000, 1], [1001]), ([10000] * 1000, [489, 489, 22], [102]),
                                            ([2 << 20], [], []), ([10, 10, 2 << 20, 10, 10], [2, 2], [4]), ([1040000] * 9, [5, 4], [1])):
        for to, want in (("sentry", containers), ("sentry-transaction", transactions)):
            got = []
            for _, ((header, payload),) in envelopes(encode(ringspan, to, family(sizes), False)):
                body = loads(payload)
                need(len(payload) <= (5 << 20 if to == "sentry" else 1 << 20), "bytes", len(payload))
                got.append(len(body["items"]) if to == "sentry" else 1 + len(body["spans"]))
                need(header.get("item_count", got[-1]) == got[-1], "item_count")
            need(got == want, to, sizes[:5], got, want)


def check_sampling(ringspan):
    """What the trace context says of a trace state: rate, and whether the trace is kept. The id's random part is its last 7 bytes."""
    low, high = b"\x01" * 9 + b"\x20" + bytes(6), b"\x01" * 9 + b"\xe0" + bytes(6)
    for state, tid, rate, kept in ((b"", low, 1, True), (b"ot=th:0", low, 1, True), (b"ot=th:8", low, 0.5, False), (b"ot=th:8", high, 0.5, True),
                                   (b"a=b, ot=x:y;th:c;rv:c0000000000000", low, 0.25, True), (b"ot=th:c;rv:bfffffffffffff", high, 0.25, False),
                                   (b"ot=th:C", low, 1, True), (b"ot=th:", low, 1, True), (b"ot=th:800000000000000", low, 1, True),
                                   (b"ot=th:8;rv:E0000000000000", low, 0.5, False), (b"ot=th:8;rv:e", low, 0.5, False)):
        (h, _), = envelopes(encode(ringspan, "sentry", batch([span(trace_id=tid, state=state)]), False))
        check_header(h, tid.hex())
        need(float(h["trace"]["sample_rate"]) == rate and h["trace"]["sampled"] == ("true" if kept else "false"), state, h["trace"])


if __name__ == "__main__":
    check_sampling(sys.argv[1])
    check_sizes(sys.argv[1])
    run("sentry", ["sentry", "sentry-transaction"], check)
