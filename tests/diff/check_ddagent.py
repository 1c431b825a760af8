#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Datadog agent's own code (Go modules, tests/diff/ddagent) on the same spans: its decoders on our payloads, its OTLP
mapping beside ours: check_ddagent.py RINGSPAN [FIRST_SEED]. Skipped, visibly, without Go or its modules."""
import base64
import json
import os
import re
import subprocess
import sys

import datadog
import otlpgen
from common import Bad, encode, need

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "../../build/ddagent")


def build():
    try:
        r = subprocess.run(["go", "build", "-o", os.path.abspath(PROGRAM), "."], cwd=os.path.join(HERE, "ddagent"), capture_output=True, text=True)
    except FileNotFoundError:
        return "no Go toolchain"
    return r.returncode and "its modules cannot be built: " + r.stderr.strip()[-300:]


class Agent:
    def __init__(self):
        self.p = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(self, kind, data):
        self.p.stdin.write(kind.encode() + b" " + base64.b64encode(data) + b"\n")
        self.p.stdin.flush()
        out = json.loads(self.p.stdout.readline())
        need(type(out) is not dict, "the agent refuses:", out)
        return out


def number(s):
    return float(s.replace("+Inf", "inf").replace("-Inf", "-inf"))


def same_number(text, v):
    f = number(text)
    return f == v or f == float(v) or (f != f and v != v)


def check_v0(agent, kind, spans, payload):
    """spans: [chunk of spans], as the payload says by our own decoding."""
    got = agent.ask(kind, payload)
    need([len(c) for c in got] == [len(c) for c in spans], "chunks")
    for g, s in ((g, s) for gc, sc in zip(got, spans) for g, s in zip(gc, sc)):
        for k in ("service", "name", "resource", "type", "start", "duration", "error"):
            need(g[k] == s[k], k, g[k], s[k])
        for k in ("trace_id", "span_id", "parent_id"):
            need(int(g[k]) == s[k], k, g[k], s[k])
        need((g["meta"] or {}) == s["meta"], "meta", {k for k in s["meta"].keys() | g["meta"].keys() if s["meta"].get(k) != g["meta"].get(k)})
        need(g["metrics"].keys() == s["metrics"].keys() and all(same_number(g["metrics"][k], v) for k, v in s["metrics"].items()), "metrics")
        need(g["links"] == len(s.get("span_links", [])) and g["events"] == len(s.get("span_events", [])), "links or events")


def check_v1(agent, payload):
    got, want = agent.ask("v1", payload), datadog.decode("datadog-v1", payload)
    need([len(c) for c in got] == [len(c["spans"]) for c in want], "chunks")
    for gc, c in zip(got, want):
        for g, s in zip(gc, c["spans"]):
            for k in ("service", "name", "resource", "type", "start", "duration"):
                need(g[k] == s[k], k, g[k], s[k])
            for k in ("env", "version", "component"):
                need(g[k] == s.get(k, ""), k, g[k], s.get(k))
            for k in ("trace_id", "span_id", "parent_id"):
                need(int(g[k]) == s[k], k, g[k], s[k])
            need(g["error"] == bool(s["error"]) and int(g["tid"], 16) == c["tid"] and g["mechanism"] == int(c["dm"][1:] or 0 if c["dm"] else 0), "chunk")
            need(g["priority"] == (-128 if c["priority"] is None else c["priority"]), "priority")
            need(g["attributes"].keys() == s["attributes"].keys(), "attributes", g["attributes"].keys() ^ s["attributes"].keys())
            for k, v in s["attributes"].items():
                a = g["attributes"][k]
                need(a == v if type(v) is str else a == str(v).lower() if type(v) is bool else same_number(a, v), "attribute", k, a, v)
            need(g["links"] == len(s["links"]) and g["events"] == len(s["events"]), "links or events")


# Ours alone: what tracers write and the agent's ingest does not, and what chunks carry elsewhere there.
OURS = {"error.message", "error.type", "error.stack", "_dd.p.tid", "_dd.p.dm"}
# Theirs alone or written another way: statistics, and JSON that the agent does not escape.
THEIRS = {"rpc.grpc.status_code", "events", "_dd.span_links", "_sample_rate"}


def check_mapping(agent, batch, payload):
    got = agent.ask("map", otlpgen.to_pb(batch))
    mine = {}
    for c in datadog.unpack(payload)[0]:
        for s in c:
            mine[s["trace_id"], s["span_id"]] = s
    for g, (rs, ss, src) in zip(got, otlpgen.spans(batch)):
        s = mine[int(g["trace_id"]), int(g["span_id"])]
        if datadog.is_datadogs(src) or "rpc.system.name" in {otlpgen.text(k) for k, _ in src["attrs"] + rs["attrs"]}:
            continue  # a name that is newer than the agent's mapping
        need(datadog.tag_value(datadog.cut(s["service"], 100)) == g["service"], "service", s["service"], g["service"])
        need(datadog.norm_name(s["name"]) == g["name"], "name", s["name"], g["name"])
        need(s["resource"] == g["resource"] or len(g["resource"].encode()) >= 5000 or not g["resource"], "resource", s["resource"], g["resource"])
        need(s["type"] == g["type"] and s["error"] == g["error"] and s["start"] == g["start"] and s["duration"] == g["duration"], "type or times", s["type"], g["type"])
        scope = {otlpgen.text(k) for k, _ in ss["attrs"]}
        for k in (s["meta"].keys() | g["meta"].keys()) - OURS - THEIRS - scope:
            a, b = s["meta"].get(k), g["meta"].get(k)
            if len(k.encode()) >= 200 or k in ("env", "version") or len((b or "").encode()) > 24000:
                continue
            if a != b and a is not None and b is not None and a[:1] in "[{" and b[:1] in "[{":
                continue  # JSON, escaped differently
            if not a and not b or a == "" or (b or "").startswith("{") or not b:
                continue  # something empty, or JSON that Go cannot write (NaN)
            need(a == b or re.fullmatch(r"-?[\d.e+-]+|NaN|[+-]?Inf(inity)?", b), "meta", k, a, b)
        for k in (s["metrics"].keys() | g["metrics"].keys()) - THEIRS - {"_sampling_priority_v1"}:
            if len(k.encode()) < 200:
                need(k in s["metrics"] and k in g["metrics"] and same_number(g["metrics"][k], s["metrics"][k]), "metric", k, s["metrics"].get(k), g["metrics"].get(k))


def main():
    why = build()
    if why:
        print("skipped: the Datadog agent's decoders and mapping:", why)
        print("0 passed, 0 failed, 1 skipped (ddagent)")
        return 0
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    agent, passed, failed = Agent(), 0, 0
    from check_datadog import received
    for seed in range(first, first + 100):
        valid = seed % 3 == 0
        batch = otlpgen.Gen(seed, valid).batch()
        for what in ["v0.4", "v0.5", "v1"] + ["map"] * valid:
            to = {"map": "datadog-v0.4-json"}.get(what, "datadog-" + what)
            try:
                payload = encode(sys.argv[1], to, batch, valid)
                if len(datadog.unpack(payload)) != 1:
                    continue
                if what == "map":
                    check_mapping(agent, batch, payload)
                elif what == "v1":
                    check_v1(agent, payload)
                else:
                    check_v0(agent, what, received(to, payload), payload)
                passed += 1
            except Bad as e:
                failed += 1
                print(f"seed {seed} {what}: {str(e)[:500]}")
    print(f"{passed} passed, {failed} failed, 0 skipped (ddagent)")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
