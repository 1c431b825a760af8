#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random spans as Zipkin v2 JSON, compared with OpenTelemetry's mapping: check_zipkin.py RINGSPAN [FIRST_SEED]."""
import ipaddress

from common import loads, need, plain, run, same_text
from otlpgen import named, spans, text

KEYS = {"traceId", "id", "parentId", "name", "kind", "timestamp", "duration", "localEndpoint", "remoteEndpoint", "annotations", "tags"}
REMOTE = ["peer.service", "service.peer.name", "server.address", "net.peer.name", "network.peer.address", "server.socket.domain",
          "server.socket.address", "net.sock.peer.name", "net.sock.peer.addr", "peer.hostname", "peer.address", "db.name"]


def lower(s):
    return "".join(c.lower() if c.isascii() else c for c in s)


def attr(attrs, key):
    return next((v for k, v in attrs if text(k) == key), None)


def expected_tags(rs, ss, s):
    tags = {}

    def put(k, v):
        if k and k not in tags:
            tags[k] = v

    if s["status"]:
        put("otel.status_code", ("s", b"OK" if s["status"] == 1 else b"ERROR"))
    if s["status"] == 2:
        put("error", ("s", s["message"]))
    for k, v in s["attrs"]:
        if text(k) == "error" and v in (("b", False), ("s", b"false")):
            continue
        put(text(k), v)
    ns = attr(rs["attrs"], "service.namespace")
    if ns and ns[0] == "s" and ns[1]:
        put("service.namespace", ns)
    for k, v in (("otel.scope.name", ss["name"]), ("otel.scope.version", ss["version"])):
        if v:
            put(k, ("s", v))
    for k, n in (("otel.dropped_attributes_count", s["dropped"]), ("otel.dropped_events_count", s["dropped_events"])):
        if n:
            put(k, ("i", n))
    return tags


def check_span(g, rs, ss, s):
    need(set(g) <= KEYS, "keys", set(g) - KEYS)
    need(g["traceId"] == s["trace_id"].hex() and g["id"] == s["span_id"].hex(), "ids")
    need(g.get("parentId", "") == s["parent"].hex(), "parent")
    need(g["name"] == lower(text(s["name"])), "name", g["name"], text(s["name"]))
    need(g.get("kind") == [None, None, "SERVER", "CLIENT", "PRODUCER", "CONSUMER"][s["kind"]], "kind")
    need(g["timestamp"] == max(1, s["start"] // 1000) and type(g["timestamp"]) is int, "timestamp")
    need(g["duration"] == max(1, (s["end"] - s["start"]) // 1000), "duration")
    svc = attr(rs["attrs"], "service.name")
    need(g["localEndpoint"] == {"serviceName": lower(text(svc[1])) if svc and svc[0] == "s" and svc[1] else "unknown_service"}, "local", g["localEndpoint"])
    remote = next((x for x in ((k, attr(s["attrs"], k)) for k in REMOTE) if x[1] and x[1][0] == "s" and x[1][1]), None)
    if remote and s["kind"] in (3, 4):
        r = g["remoteEndpoint"]
        need(set(r) <= {"serviceName", "ipv4", "ipv6", "port"} and r, "remote", r)
        if "ipv4" in r:
            ipaddress.IPv4Address(r["ipv4"])
        else:
            need(r["serviceName"] == lower(text(remote[1][1])), "remote", r, remote)
    else:
        need("remoteEndpoint" not in g, "remote", g.get("remoteEndpoint"))
    notes = g.get("annotations", [])
    need(len(notes) == len(s["events"]), "annotations")
    for n, e in zip(notes, s["events"]):
        need(n["timestamp"] == max(1, e["time"] // 1000), "annotation time")
        attrs = named(e["attrs"])
        if not attrs:
            need(n["value"] == text(e["name"]), "annotation", n["value"])
        else:
            need(loads("{" + n["value"] + "}") == {text(e["name"]): {text(k): plain(v) for k, v in attrs}}, "annotation", n["value"][:200])
    tags, want = g.get("tags", {}), expected_tags(rs, ss, s)
    need(tags.keys() == want.keys(), "tags", tags.keys() ^ want.keys())
    for k, v in want.items():
        need(same_text(tags[k], v), "tag", k, tags[k][:100], str(v)[:100])


def check(to, data, batch):
    lines = data.decode("utf-8").split("\n")
    got = [s for line in lines if line for s in loads(line)]
    want = list(spans(batch))
    need(len(got) == len(want), "spans", len(got), len(want))
    for g, (rs, ss, s) in zip(got, want):
        check_span(g, rs, ss, s)
    return len(got)


if __name__ == "__main__":
    run("zipkin", ["zipkin"], check)
