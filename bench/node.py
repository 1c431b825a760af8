#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A busy node: 200 traced processes, 10,000 connections, 20,000 requests/s, beside a small case of the same rate.

node.py LOAD [--seconds N] [--rate N] [--processes N] [--connections N] [--args "…"]. Root. Both ends of every
connection are traced; spans are encoded as OTLP JSON and written to /dev/null. Prints the rate that was reached (two cores
may not give 20,000), what was lost, memory, and CPU per request as ratio to the small case (4 processes, 64
connections). Fails when something was lost or a span is missing.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RINGSPAN = os.path.join(TOP, "build", "ringspan")
# Rows that are no loss of this traffic: other programs on the machine, see tests/live/harness.py.
NO_LOSS = {"stream.unknown_protocol", "stream.out_of_step", "stream.unfinished", "stream.late", "kernel.missed"}


def status(sock):
    out = subprocess.run([RINGSPAN, "status", "--json", "--socket", sock], check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def ledger(o):
    return {f"{r['stage']}.{r['name']}": r["value"] for r in o["ledger"] if r["kind"] == "dropped"}


def cpu(o):
    return o["usage"]["cpu_user_ns"] + o["usage"]["cpu_system_ns"]


def most_resident(pid):
    """Bytes, at most since forget_resident(). Asking the agent for its status all the time would cost it what is to be measured."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


def forget_resident(pid):
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as f:
        f.write("5")


def measure(args, load, processes, connections, port):
    with tempfile.TemporaryDirectory() as d:
        sock = d + "/s"
        argv = [RINGSPAN, "run", "--socket", sock, "--comm", "node_load", "--exporter", "file=/dev/null", "--file-max-bytes", "0",
                *args.args.split()]
        agent = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        clients = max(2, processes // 10)
        work = None
        try:
            while "capturing" not in agent.stderr.readline():
                if agent.poll() is not None:
                    sys.exit("ringspan did not start")
            work = subprocess.Popen([load, *map(str, (processes - clients, clients, connections, args.rate, args.seconds, port))],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            if work.stdout.readline() != "ready\n":
                sys.exit("node_load did not start")
            time.sleep(1)
            before = status(sock)
            forget_resident(agent.pid)
            work.stdin.write("\n")
            work.stdin.flush()
            sent, answered, late, took, load_cpu, control = work.stdout.readline().split()
            time.sleep(1)
            after = status(sock)
            rss = most_resident(agent.pid)
            work.stdin.close()
            work.wait(60)
        finally:
            for p in (agent, work):
                if p and p.poll() is None:
                    p.terminate()
                    p.wait(60)
            agent.stderr.close()
    spans = sum(s["spans"] for s in after["services"]) - sum(s["spans"] for s in before["services"])
    lost = {k: v - ledger(before).get(k, 0) for k, v in ledger(after).items()
            if v > ledger(before).get(k, 0) and k not in NO_LOSS}
    return {"processes": processes, "connections": connections, "requests": int(answered), "sent": int(sent),
            "late": int(late), "rate": int(answered) / float(took), "spans": spans, "lost": lost,
            "us": (cpu(after) - cpu(before)) / 1000 / int(answered), "load_us": int(load_cpu) / 1000 / int(answered), "control_us": int(control) / 1000, "rss": rss,
            "maps": after["usage"]["map_bytes"]}


def show(name, m):
    print(f"{name:6} {m['processes']:4} processes {m['connections']:6} connections {m['rate']:8.0f} requests/s"
          f" {m['spans']:9} spans, lost {m['lost'] or 0}; agent {m['us']:.2f} µs CPU/request, {m['rss'] / 1e6:.0f} MB,"
          f" maps {m['maps'] / 1e6:.1f} MB; the programs themselves {m['load_us']:.1f} µs/request", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("load")
    p.add_argument("--seconds", type=int, default=60)
    p.add_argument("--rate", type=int, default=20000)
    p.add_argument("--processes", type=int, default=200)
    p.add_argument("--connections", type=int, default=10000)
    p.add_argument("--port", type=int, default=21100, help="of the first server; below the ports that clients get")
    p.add_argument("--args", default="")
    args = p.parse_args()
    small = measure(args, args.load, 4, 64, args.port)
    show("small", small)
    node = measure(args, args.load, args.processes, args.connections, args.port)
    show("node", node)
    print(f"node/small: CPU per request {node['us'] / small['us']:.2f} (a program that touches no memory, woken as often:"
          f" {node['control_us'] / small['control_us']:.2f}), requests/s {node['rate'] / small['rate']:.2f},"
          f" memory {node['rss'] / small['rss']:.2f}")
    faults = [f"{n}: {m['requests'] * 2 - m['spans']} spans are missing" for n, m in (("small", small), ("node", node))
              if m["spans"] != 2 * m["requests"]]
    faults += [f"lost {m['lost']}" for m in (small, node) if m["lost"]]
    print("\n".join(faults) or "nothing lost, nothing missing")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
