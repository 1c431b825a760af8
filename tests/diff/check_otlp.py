#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random spans through `ringspan encode --to otlp-*`, decoded by protobuf from the published schema
(PyPI: opentelemetry-proto) and by json with protobuf's json_format: check_otlp.py RINGSPAN [--seeds N] [--first N].

Also: protobuf -> JSON -> protobuf gives the same bytes, valid input gives the bytes that protobuf itself writes,
and where Node and npm are there, @opentelemetry/otlp-transformer says the same of the same spans (peer.js)."""
import argparse
import base64
import json
import math
import os
import random
import shutil
import subprocess
import sys

import edges
import otlpgen
from otlpgen import named, text

try:
    from google.protobuf import json_format
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
except ImportError:
    print("skipped: no Python packages opentelemetry-proto and protobuf")
    print("0 passed, 0 failed, 1 skipped (otlp)")
    sys.exit(0)

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))


class Bad(Exception):
    pass


def need(cond, *what):
    if not cond:
        raise Bad(" ".join(map(str, what)))


def set_value(to, v):
    """The value of the model into an AnyValue, text made valid."""
    kind = v[0]
    if kind == "s":
        to.string_value = text(v[1])
    elif kind == "b":
        to.bool_value = v[1]
    elif kind == "i":
        to.int_value = v[1]
    elif kind == "d":
        to.double_value = v[1]
    elif kind == "y":
        to.bytes_value = v[1]
    elif kind == "a":
        to.array_value.SetInParent()
        for x in v[1]:
            set_value(to.array_value.values.add(), x)
    elif kind == "m":
        to.kvlist_value.SetInParent()
        set_attrs(to.kvlist_value.values, v[1])
    else:
        to.SetInParent()


def set_attrs(to, attrs, count=None):
    """count: the message that says how many were left out; None: a map inside a value, where nothing is."""
    if count is not None:
        count.dropped_attributes_count += len(attrs) - len(named(attrs))
        attrs = named(attrs)
    for k, v in attrs:
        kv = to.add()
        kv.key = text(k)
        kv.value.SetInParent()
        set_value(kv.value, v)


def expected(batch):
    out = TracesData()
    for r in batch:
        rs = out.resource_spans.add()
        rs.resource.SetInParent()
        set_attrs(rs.resource.attributes, r["attrs"], rs.resource)
        for sc in r["scopes"]:
            ss = rs.scope_spans.add()
            ss.scope.SetInParent()
            ss.scope.name, ss.scope.version = text(sc["name"]), text(sc["version"])
            set_attrs(ss.scope.attributes, sc["attrs"], ss.scope)
            for s in sc["spans"]:
                set_span(ss.spans.add(), s)
    return out


def set_span(o, s):
    o.trace_id, o.span_id, o.parent_span_id = s["trace_id"], s["span_id"], s["parent"]
    o.trace_state, o.name, o.kind, o.flags = text(s["state"]), text(s["name"]), s["kind"], s["flags"]
    o.start_time_unix_nano, o.end_time_unix_nano = s["start"], s["end"]
    o.dropped_attributes_count, o.dropped_events_count, o.dropped_links_count = s["dropped"], s["dropped_events"], s["dropped_links"]
    set_attrs(o.attributes, s["attrs"], o)
    for e in s["events"]:
        ev = o.events.add()
        ev.time_unix_nano, ev.name, ev.dropped_attributes_count = e["time"], text(e["name"]), e["dropped"]
        set_attrs(ev.attributes, e["attrs"], ev)
    for l in s["links"]:
        li = o.links.add()
        li.trace_id, li.span_id, li.trace_state, li.flags = l["trace_id"], l["span_id"], text(l["state"]), l["flags"]
        li.dropped_attributes_count = l["dropped"]
        set_attrs(li.attributes, l["attrs"], li)
    if s["status"] or s["message"]:
        o.status.code, o.status.message = s["status"], text(s["message"])


def encode(ringspan, to, source, data):
    r = subprocess.run([ringspan, "encode", "--to", to, "--from", source], input=data, capture_output=True)
    need(r.returncode == 0, "exit", r.returncode, r.stderr.decode()[-300:])
    return r.stdout


def ids_to_base64(o):
    """OTLP's JSON has hex ids, protobuf's json_format wants base64."""
    if isinstance(o, dict):
        for k, v in o.items():
            if k in ("traceId", "spanId", "parentSpanId"):
                need(v == v.lower(), "ids are lower case")
                o[k] = base64.b64encode(bytes.fromhex(v)).decode()
            else:
                ids_to_base64(v)
    elif isinstance(o, list):
        for x in o:
            ids_to_base64(x)
    return o


def rules(o):
    """What json_format would let pass: OTLP wants 64-bit integers as strings and enums as numbers."""
    if isinstance(o, dict):
        for k, v in o.items():
            if k in ("intValue", "startTimeUnixNano", "endTimeUnixNano", "timeUnixNano"):
                need(isinstance(v, str), k, "is not a string")
            elif k in ("kind", "code", "flags") or k.startswith("dropped"):
                need(isinstance(v, int), k, "is not a number")
            rules(v)
    elif isinstance(o, list):
        for x in o:
            rules(x)


def check_json(data, want):
    o = json.loads(data)
    rules(o)
    got = json_format.ParseDict(ids_to_base64(o), TracesData())
    need(got.SerializeToString(deterministic=True) == want, "JSON decodes to something else")


def check(ringspan, batch, valid):
    want = expected(batch).SerializeToString(deterministic=True)
    sources = [("otlp-proto", otlpgen.to_pb(batch))]
    if valid:
        sources.append(("otlp-json", otlpgen.to_json(batch).encode()))
    for source, data in sources:
        pb = encode(ringspan, "otlp-proto", source, data)
        got = TracesData.FromString(pb)
        need(got.SerializeToString(deterministic=True) == want, source, "-> protobuf decodes to something else")
        if valid:
            need(pb == want, source, "-> protobuf: other bytes than protobuf writes")
        js = encode(ringspan, "otlp-json", source, data)
        check_json(js, want)
        need(encode(ringspan, "otlp-proto", "otlp-json", js) == pb or not valid, "protobuf -> JSON -> protobuf")


ANYTHING = [None, 1, -1.5e3, "x", [], {}, [{"a": [1, {"b": None}]}], True]


def loose_number(r, k, v):
    """A number in one of the forms that ProtoJSON lets a sender choose from."""
    n = int(v)
    forms = [n, float(n)] if abs(n) < 2**53 else [n]
    return r.choice(forms if k in ("kind", "code") else [*forms, *map(str, forms)])


def loose(r, o):
    """The same document as another sender may write it: members in any order, unknown ones, nulls, other forms of values."""
    if isinstance(o, list):
        return [loose(r, x) for x in o]
    if not isinstance(o, dict):
        return o
    out = {}
    for k, v in r.sample(list(o.items()), len(o)):
        if r.random() < 0.1:
            out["unknown%d" % r.randrange(99)] = r.choice(ANYTHING)
        if k in ("kind", "code", "flags") or k in ("intValue", "startTimeUnixNano", "endTimeUnixNano", "timeUnixNano") or k.startswith("dropped"):
            out[k] = loose_number(r, k, v)
        elif k in ("traceId", "spanId", "parentSpanId"):
            out[k] = r.choice([v, v.upper()])
        elif k == "bytesValue":
            out[k] = r.choice([v, v.replace("+", "-").replace("/", "_"), v.rstrip("=")])
        elif k == "doubleValue" and isinstance(v, float):
            out[k] = r.choice([v, repr(v)])
        else:
            out[k] = loose(r, v)
    for k in ("traceState", "name", "message", "attributes", "events", "links", "status", "schemaUrl"):
        if k not in out and r.random() < 0.1:
            out[k] = None
    return out


def check_loose(ringspan, seed):
    """However a sender writes it, it is the same."""
    r, js = random.Random(seed), otlpgen.to_json(otlpgen.Gen(seed, True).batch())
    text = json.dumps(loose(r, json.loads(js)), ensure_ascii=r.random() < 0.5, indent=r.choice([None, 1]))
    text = r.choice(["", "\n ", "\ufeff"]) + text
    need(encode(ringspan, "otlp-proto", "otlp-json", text.encode()) == encode(ringspan, "otlp-proto", "otlp-json", js.encode()), "reads something else")


def peer_ready():
    """@opentelemetry/otlp-transformer in build/node, installed once."""
    if not shutil.which("node") or not shutil.which("npm"):
        return False
    home = os.path.join(TOP, "build", "node")
    os.makedirs(home, exist_ok=True)
    for f in ("package.json",):
        shutil.copy(os.path.join(HERE, f), home)
    if not os.path.isdir(os.path.join(home, "node_modules", "@opentelemetry", "otlp-transformer")):
        if subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=home).returncode:
            return False
    shutil.copy(os.path.join(HERE, "peer.js"), home)
    return True


def peer(fmt, js):
    home = os.path.join(TOP, "build", "node")
    r = subprocess.run(["node", os.path.join(home, "peer.js"), fmt], input=js, capture_output=True)
    need(r.returncode == 0, "peer:", r.stderr.decode()[-300:])
    return r.stdout


def normal(data):
    """Without the peer's documented differences: it writes an empty status, and flags that say "not remote"."""
    m = TracesData.FromString(data)
    for rs in m.resource_spans:
        for ss in rs.scope_spans:
            for s in ss.spans:
                if not s.status.code and not s.status.message:
                    s.ClearField("status")
                s.flags = 0
                for l in s.links:
                    l.flags = 0
    return m.SerializeToString(deterministic=True)


def for_peer(batch):
    """What the peer's span type can hold and its JSON gets right (it writes bytes as an object, NaN and infinity as null): simple values, no
    whole doubles, no integers above 2^53, no keys that JavaScript sorts first, no trace state, no two scopes that
    are the same: it makes one of them."""
    ok = lambda v: v[0] in "sbid" and not (v[0] == "i" and abs(v[1]) > 2**53) and not (v[0] == "d" and not math.isfinite(v[1] % 1 or math.inf))
    keep = lambda attrs: [(k, v) for k, v in attrs if ok(v) and not k.isdigit()]
    for r in batch:
        r["attrs"] = keep(r["attrs"])
        for i, sc in enumerate(r["scopes"]):
            sc["attrs"] = []
            sc["name"] = (sc["name"] or b"s") + b"%d" % i
            for s in sc["spans"]:
                s["attrs"], s["state"] = keep(s["attrs"]), b""
                s["kind"] = s["kind"] or 1
                s["message"] = s["message"] if s["status"] == 2 else b""
                for x in s["events"] + s["links"]:
                    x["attrs"] = keep(x["attrs"])
                    x["state"] = b""
    return batch


def check_peer(ringspan, batch):
    js = otlpgen.to_json(for_peer(batch)).encode()
    want = normal(encode(ringspan, "otlp-proto", "otlp-json", js))
    need(normal(peer("proto", js)) == want, "the peer's protobuf says something else")
    theirs = encode(ringspan, "otlp-proto", "otlp-json", peer("json", js))
    need(normal(theirs) == want, "the peer's JSON says something else")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("ringspan")
    p.add_argument("--seeds", type=int, default=150)
    p.add_argument("--first", type=int, default=1)
    args = p.parse_args()
    passed = failed = skipped = 0

    def run(what, fn, *a):
        nonlocal passed, failed
        try:
            fn(*a)
            passed += 1
        except (Bad, json_format.ParseError, ValueError) as e:
            failed += 1
            print(f"{what}: {str(e)[:400]}")

    for seed in range(args.first, args.first + args.seeds):
        valid = seed % 3 == 0
        run(f"seed {seed}", check, args.ringspan, otlpgen.Gen(seed, valid).batch(), valid)
    for name, batch in edges.all_batches():
        run(name, check, args.ringspan, batch, False)
    for seed in range(args.first, args.first + 40):
        run(f"written otherwise, seed {seed}", check_loose, args.ringspan, seed)
    if peer_ready():
        for seed in range(args.first, args.first + 25):
            run(f"peer, seed {seed}", check_peer, args.ringspan, otlpgen.Gen(seed, True).batch())
    else:
        skipped += 1
        print("skipped: @opentelemetry/otlp-transformer wants node and npm")
    print(f"{passed} passed, {failed} failed, {skipped} skipped (otlp)")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
