#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our encoders and others on the same spans, interleaved in one run, as ratios: peers.py BENCH [--rounds N] [--workload W]…

BENCH is the program made of bench/encode.c. Peers: @opentelemetry/otlp-transformer and dd-trace (npm, into build/node-bench), under
this machine's Node and under the newest one (npm's node-linux-*); and, on trees already built, protobuf's own C serializer (PyPI
protobuf, upb) and msgpack-c, msgpuck, protobuf-c and yyjson (bench/peers_c.c). What cannot be had is left out and named.
ns/span is the fastest chunk of all rounds; on a busy machine ratios are steadier than numbers.
"""
import argparse
import glob
import os
import random
import shutil
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
NODE = os.path.join(TOP, "build", "node-bench")
VENV = os.path.join(TOP, "build", "venv", "bin", "python")
WORKLOADS = ["A", "A-ascii", "A-esc", "B-0ev", "B-10ev", "B-exc"]
BUILD = os.path.join(TOP, "build", "peers")
LIBRARIES = {"msgpack-c": "datadog-v0.4", "msgpuck": "datadog-v0.4", "protobuf-c": "otlp-proto", "yyjson": "otlp-json"}
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


# The descriptors of opentelemetry-proto's messages, as the PyPI package carries them.
DESCRIPTORS = """
import sys
from google.protobuf import descriptor_pb2
from opentelemetry.proto.trace.v1 import trace_pb2
files, seen = descriptor_pb2.FileDescriptorSet(), set()
def add(f):
    if f.name in seen: return
    seen.add(f.name)
    for d in f.dependencies: add(d)
    f.CopyToProto(files.file.add())
add(trace_pb2.DESCRIPTOR)
open(sys.argv[1], "wb").write(files.SerializeToString())
print(*seen)
"""


def protobuf_c():
    """Flags that build with protobuf-c's code for OTLP; [] without protobuf-c."""
    if not shutil.which("protoc-c") or not os.path.exists(VENV):
        return []
    ds = os.path.join(BUILD, "otlp.ds")
    out = subprocess.run([VENV, "-c", DESCRIPTORS, ds], capture_output=True, text=True)
    if out.returncode or subprocess.run(["protoc-c", f"--descriptor_set_in={ds}", f"--c_out={BUILD}", *out.stdout.split()]).returncode:
        return []
    return ["-DWITH_PROTOBUF_C", *glob.glob(f"{BUILD}/opentelemetry/**/*.c", recursive=True), "-lprotobuf-c"]


def yyjson():
    """The same for yyjson, whose source the PyPI package carries."""
    if not glob.glob(f"{BUILD}/yyjson-*/yyjson/yyjson.c"):
        subprocess.run([VENV, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", BUILD, "yyjson==4.0.6"], capture_output=True)
        for sdist in glob.glob(f"{BUILD}/yyjson-*.tar.gz"):
            tarfile.open(sdist).extractall(BUILD, filter="data")
    src = glob.glob(f"{BUILD}/yyjson-*/yyjson/yyjson.c")
    return ["-DWITH_YYJSON", f"-I{os.path.dirname(src[0])}", src[0]] if src else []


def build():
    """peers_c and the names of what is in it."""
    os.makedirs(BUILD, exist_ok=True)
    parts = {"msgpuck": ["-DWITH_MSGPUCK", "-lmsgpuck"] if os.path.exists("/usr/include/msgpuck.h") else [], "protobuf-c": protobuf_c(), "yyjson": yyjson()}
    have = ["msgpack-c"] + [name for name, flags in parts.items() if flags]
    print("".join(f"skipped: {name}\n" for name, flags in parts.items() if not flags), end="")
    program = os.path.join(BUILD, "peers_c")
    cc = [os.environ.get("CC", "cc"), "-O3", "-march=haswell" if os.uname().machine == "x86_64" else "-O3", f"-I{BUILD}", "-o", program,
          os.path.join(HERE, "peers_c.c"), "-lmsgpackc", *sum(parts.values(), [])]
    if subprocess.run(cc).returncode:
        print("skipped: the C libraries, which do not compile")
        return None, []
    return program, have


def nodes():
    """Name and program of every Node there is."""
    found = [("node", "node")] + [(f"node{i}", p) for i, p in enumerate(glob.glob(os.path.join(NODE, "node_modules", "node-linux-*", "bin", "node")))]
    names = {}
    for _, program in found:
        out = subprocess.run([program, "--version"], capture_output=True, text=True)
        if out.returncode == 0:
            names.setdefault("Node " + out.stdout.strip().lstrip("v").split(".")[0], program)
    return names


def first(cmd):
    out = subprocess.run(cmd, capture_output=True, text=True)
    return float(out.stdout.split()[0]) if out.returncode == 0 else None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("bench")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--workload", action="append")
    args = p.parse_args()
    js = install()
    node = nodes() if js else {}
    upb = os.path.exists(VENV) and subprocess.run([VENV, "-c", "import opentelemetry.proto"], capture_output=True).returncode == 0
    if not upb:
        print("skipped: protobuf's serializer (make check-encoders installs it)")
    if js and not (os.path.exists(VENV) and subprocess.run([VENV, "-c", "import msgpack"], capture_output=True).returncode == 0):
        print("skipped: dd-trace (make check-encoders installs the msgpack that makes its input)")
        js = [f for f in js if not f.startswith("datadog")]
    program, libraries = build()
    files, cells = {}, []
    for w in args.workload or WORKLOADS:
        for f, ext in (("otlp-json", "json"), ("otlp-proto", "pb"), ("datadog-v0.4", "msgpack"), ("datadog-v0.4-json", "msgpack-json")):
            files[w, f] = os.path.join(BUILD, f"{w}.{ext}")
            with open(files[w, f], "wb") as out:
                subprocess.run([args.bench, "write", f, w, "100"], stdout=out, check=True)
        if "datadog-v0.4" in js:
            files[w, "traces"] = files[w, "datadog-v0.4-json"] + ".traces"
            subprocess.run([VENV, "-c", TRACES, files[w, "datadog-v0.4-json"], files[w, "traces"]], check=True)
        for f in JS_FORMATS:
            cells.append((w, f, "ringspan", [args.bench, "time", f, w, "100"]))
        for f in js:
            for name, exe in node.items():
                cells.append((w, f, name, [exe, os.path.join(NODE, "peers.js"), f, files[w, "traces" if f.startswith("datadog") else "otlp-json"]]))
        if upb:
            cells.append((w, "otlp-proto", "upb", [VENV, "-c", UPB, files[w, "otlp-proto"]]))
        for lib in libraries:
            cells.append((w, LIBRARIES[lib], lib, [program, lib, files[w, LIBRARIES[lib]]]))
    best = {}
    for _ in range(args.rounds):
        for w, f, who, cmd in random.sample(cells, len(cells)):
            ns = first(cmd)
            if ns is not None:
                best[w, f, who] = min(ns, best.get((w, f, who), ns))
    if js:
        print("Node: otlp-* against @opentelemetry/otlp-transformer, datadog-* against dd-trace with the same tags\n"
              "(its events and links are ready JSON text: rendering them is in our time, not in its)")
    print("upb, msgpack-c, msgpuck, protobuf-c, yyjson: writing a tree that is already built; no mapping")
    for w in args.workload or WORKLOADS:
        for f in JS_FORMATS:
            ours = best[w, f, "ringspan"]
            theirs = "".join(f"  {who} {best[w, f, who]:.0f} = {best[w, f, who] / ours:.1f}x" for who in [*node, "upb", *libraries] if (w, f, who) in best)
            print(f"{w:8}{f:14}{ours:8.1f} ns/span {theirs}")


if __name__ == "__main__":
    sys.exit(main())
