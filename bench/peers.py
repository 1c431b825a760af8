#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our encoders and others on the same spans, interleaved in one run, as ratios: peers.py BENCH [--rounds N] [--msgpack PROGRAM]

BENCH is the program made of bench/encode.c. Peers: @opentelemetry/otlp-transformer and dd-trace (npm, into build/node-bench), and
protobuf's own C serializer (PyPI protobuf, upb) and msgpack-c and msgpuck (bench/peers_msgpack.c) on trees already built. What cannot be had is left out and named.
ns/span is the fastest chunk of all rounds; on a busy machine ratios are steadier than numbers.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
NODE = os.path.join(TOP, "build", "node-bench")
VENV = os.path.join(TOP, "build", "venv", "bin", "python")
WORKLOADS = ["A", "A-ascii", "A-esc", "B-0ev", "B-10ev", "B-exc"]
PEERS = ["node", "upb", "msgpack-c", "msgpuck"]
JS_FORMATS = ["otlp-json", "otlp-proto", "datadog-v0.4", "datadog-v0.5"]

# A v0.4 payload as JSON for dd-trace: ids as text, which JavaScript's numbers cannot hold.
TRACES = """
import json, msgpack, sys
for chunk in (traces := msgpack.unpackb(open(sys.argv[1], "rb").read())):
    for s in chunk:
        s.update({k: str(s[k]) for k in ("trace_id", "span_id", "parent_id")})
json.dump({"traces": traces}, open(sys.argv[2], "w"))
"""

UPB = """
import sys, time
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
m = TracesData.FromString(open(sys.argv[1], "rb").read())
n = sum(len(ss.spans) for rs in m.resource_spans for ss in rs.scope_spans)
best = 1e18
for chunk in range(60):
    start, calls = time.perf_counter_ns(), 0
    while True:
        m.SerializeToString(); calls += 1
        end = time.perf_counter_ns()
        if end - start > 2e6: break
    best = min(best, (end - start) / calls / n)
print(best)
"""


def install():
    if not shutil.which("node") or not shutil.which("npm"):
        print("skipped: the JavaScript peers want node and npm")
        return []
    os.makedirs(NODE, exist_ok=True)
    for src in ("bench/package.json", "tests/diff/peer.js", "bench/peers.js"):
        shutil.copy(os.path.join(TOP, src), NODE)
    if subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=NODE).returncode:
        print("skipped: npm cannot install the JavaScript peers")
        return []
    return JS_FORMATS


def first(cmd):
    out = subprocess.run(cmd, capture_output=True, text=True)
    return float(out.stdout.split()[0]) if out.returncode == 0 else None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("bench")
    p.add_argument("--msgpack", help="the program made of bench/peers_msgpack.c")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--workload", action="append")
    args = p.parse_args()
    js = install()
    upb = os.path.exists(VENV) and subprocess.run([VENV, "-c", "import opentelemetry.proto"], capture_output=True).returncode == 0
    if not upb:
        print("skipped: protobuf's serializer (make check-encoders installs it)")
    if js and not (os.path.exists(VENV) and subprocess.run([VENV, "-c", "import msgpack"], capture_output=True).returncode == 0):
        print("skipped: dd-trace (make check-encoders installs the msgpack that makes its input)")
        js = [f for f in js if not f.startswith("datadog")]
    files, cells = {}, []
    for w in args.workload or WORKLOADS:
        for f, ext in (("otlp-json", "json"), ("otlp-proto", "pb"), ("datadog-v0.4", "msgpack"), ("datadog-v0.4-json", "msgpack-json")):
            files[w, f] = os.path.join(TOP, "build", f"peers-{w}.{ext}")
            with open(files[w, f], "wb") as out:
                subprocess.run([args.bench, "write", f, w, "100"], stdout=out, check=True)
        if "datadog-v0.4" in js:
            files[w, "traces"] = files[w, "datadog-v0.4-json"] + ".traces"
            subprocess.run([VENV, "-c", TRACES, files[w, "datadog-v0.4-json"], files[w, "traces"]], check=True)
        for f in JS_FORMATS:
            cells.append((w, f, "ringspan", [args.bench, "time", f, w, "100"]))
        for f in js:
            cells.append((w, f, "node", ["node", os.path.join(NODE, "peers.js"), f,
                                       files[w, "traces" if f.startswith("datadog") else "otlp-json"]]))
        if upb:
            cells.append((w, "otlp-proto", "upb", [VENV, "-c", UPB, files[w, "otlp-proto"]]))
        for lib in ("msgpack-c", "msgpuck"):
            if args.msgpack:
                cells.append((w, "datadog-v0.4", lib, [args.msgpack, lib, files[w, "datadog-v0.4"]]))
    best = {}
    for _ in range(args.rounds):
        for w, f, who, cmd in random.sample(cells, len(cells)):
            ns = first(cmd)
            if ns is not None:
                best[w, f, who] = min(ns, best.get((w, f, who), ns))
    if js:
        version = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
        print(f"Node {version}; otlp-* against @opentelemetry/otlp-transformer, datadog-* against dd-trace with the same tags\n"
              "(its events and links are ready JSON text: rendering them is in our time, not in its)")
    print("upb, msgpack-c, msgpuck: writing a tree that is already built; no UTF-8, no mapping")
    print(f"{'workload':10}{'format':15}{'ns/span':>9}" + "".join(f"{who:>10}{'ratio':>8}" for who in PEERS))
    for w in args.workload or WORKLOADS:
        for f in JS_FORMATS:
            ours = best.get((w, f, "ringspan"))
            row = f"{w:10}{f:15}{ours:9.1f}"
            for who in PEERS:
                theirs = best.get((w, f, who))
                row += f"{theirs:10.1f}{theirs / ours:8.1f}" if theirs else " " * 18
            print(row.rstrip())


if __name__ == "__main__":
    sys.exit(main())
