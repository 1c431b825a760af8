#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random spans through `ringspan encode --to datadog-*`, decoded by the specification (datadog.py), and by the
Datadog test agent (PyPI: ddapm-test-agent) where it is installed: check_datadog.py RINGSPAN [--seeds N] [--first N]."""
import argparse
import json
import os
import subprocess
import sys
import traceback

import datadog
import edges
import otlpgen
from common import Bad, encode

FORMATS = ["datadog-v0.4", "datadog-v0.4-json", "datadog-v0.5", "datadog-v1"]

try:
    import logging
    logging.disable(logging.WARNING)
    from ddapm_test_agent import trace as test_agent
except ImportError:
    test_agent = None


def by_test_agent(to, data):
    """Refuses or takes the payload; the number of spans."""
    if to == "datadog-v0.5":
        chunks = test_agent.decode_v05(data)
    elif to == "datadog-v1":
        chunks = test_agent.decode_v1(data)
    else:
        chunks = test_agent.decode_v04("application/msgpack", data, False)
    return sum(map(len, chunks))


def received(to, data):
    """What the receiver keeps: [chunk of spans]."""
    if to == "datadog-v1":
        return test_agent.decode_v1(data) if test_agent else None
    payload = datadog.unpack(data)[0]
    if to == "datadog-v0.4":
        return payload
    w = payload[0].__getitem__
    names = ["service", "name", "resource", "trace_id", "span_id", "parent_id", "start", "duration", "error", "meta", "metrics", "type"]
    return [[{**dict(zip(names, f)), "service": w(f[0]), "name": w(f[1]), "resource": w(f[2]), "type": w(f[11]),
              "meta": {w(k): w(v) for k, v in f[9].items()}, "metrics": {w(k): v for k, v in f[10].items()}} for f in c] for c in payload[1]]


def same(a, b):
    """Equal, where something empty may as well be absent, and JSON texts are their contents."""
    if isinstance(a, dict) and isinstance(b, dict):
        empty = lambda x: x in ([], {}, 0, "") and x is not False
        return all(k in a and k in b and same(a[k], b[k]) or (k not in a and empty(b[k])) or (k not in b and empty(a[k])) for k in a.keys() | b.keys())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, str) and isinstance(b, str) and a.startswith("[{") and b.startswith("[{"):
        return json.loads(a) == json.loads(b)
    return a == b


def vectors(ringspan):
    """Payloads of other producers: a span that says the same becomes the same to the receiver."""
    passed = failed = 0
    path = os.path.join(os.path.dirname(__file__), "../vectors/datadog/")
    inputs = json.load(open(path + "inputs.json"))
    for v in json.load(open(path + "vectors.json")):
        if v["name"] not in inputs:
            continue
        to = inputs[v["name"]]["to"]
        r = subprocess.run([ringspan, "encode", "--to", to], input=json.dumps(inputs[v["name"]]["otlp"]).encode(), capture_output=True)
        got = received(to, r.stdout) if not r.returncode else r.stderr.decode()
        want = received(to, bytes.fromhex(v["hex"]))
        if same(got, want):
            passed += 1
        else:
            failed += 1
            print("vector", v["name"], "\n got ", got, "\n want", want)
    return passed, failed


def main():
    p = argparse.ArgumentParser()
    p.add_argument("ringspan")
    p.add_argument("--seeds", type=int, default=150)
    p.add_argument("--first", type=int, default=1)
    args = p.parse_args()
    passed, failed = vectors(args.ringspan)
    spans = 0
    batches = [(f"seed {n}", otlpgen.Gen(n, n % 3 == 0).batch(), n % 3 == 0) for n in range(args.first, args.first + args.seeds)]
    batches += [(what, batch, False) for what, batch in [*edges.all_batches(), *edges.deep()]]
    for what, batch, valid in batches:
        total = sum(1 for _ in otlpgen.spans(batch))
        for to in FORMATS:
            try:
                data = encode(args.ringspan, to, batch, valid)
                n = datadog.check(to, data, batch)
                datadog.need(n == total, "spans", n, total)
                if test_agent and len(datadog.unpack(data)) == 1:
                    datadog.need(by_test_agent(to, data) == total, "the test agent sees another number of spans")
                passed += 1
                spans += n
            except Exception as e:
                failed += 1
                print(f"{what}, {to}: {type(e).__name__} {str(e)[:400]}")
                if not isinstance(e, Bad):
                    traceback.print_exc()
    if not test_agent:
        print("skipped: the Datadog test agent's decoders (pip install ddapm-test-agent)")
    print(f"{spans} spans decoded")
    print(f"{passed} passed, {failed} failed, {not test_agent:d} skipped (datadog)")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
