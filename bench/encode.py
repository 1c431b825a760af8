#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What encoding costs: encode.py BENCH [time|count|check|update] [--format F]… [--workload W]… [--rounds N]

BENCH is the program made of bench/encode.c.
time    a table: ns/span (the best of all rounds and chunks), the median round, bytes/span, the ratio to memcpy of
        the same bytes in the same process, allocations in steady state; batches of 100 spans and of one.
        Rounds are interleaved: in each, all cells run in a random order.
count   instructions per span, by callgrind: repeatable to the digit on one compiler
check   count, compared with bench/baseline.tsv: more than 10 % above it fails
update  count, written to bench/baseline.tsv; what has risen by more than 10 % wants a --reason, which is written there, too
"""
import argparse
import concurrent.futures
import os
import random
import re
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BASELINE = os.path.join(HERE, "baseline.tsv")
GATED = ["A", "A-esc", "B-0ev", "B-10ev", "B-exc"]
SLACK = 1.10


def listed(bench, what):
    out = subprocess.run([bench, "list"], capture_output=True, text=True, check=True).stdout
    return [l.split("\t")[1] for l in out.splitlines() if l.startswith(what + "\t")]


def compiler(bench):
    """The compiler that made the encoders: counts of another one are no regression."""
    r = subprocess.run(["readelf", "-p", ".comment", bench], capture_output=True, text=True)
    m = re.search(r"\]\s+(GCC|clang)[^\n]*?(\d+)\.\d+\.\d+", r.stdout)
    return f"{m[1]} {m[2]}" if m else "unknown"


def count(bench, fmt, workload, spans=100):
    r = subprocess.run(["valgrind", "--tool=callgrind", "--toggle-collect=measured", "--callgrind-out-file=/dev/null",
                        bench, "count", fmt, workload, str(spans)], capture_output=True, text=True)
    m = re.search(r"Collected\s*:\s*(\d+)", r.stderr)
    if r.returncode or not m:
        sys.exit(f"valgrind failed for {fmt} {workload}: {r.stderr[-300:]}")
    return int(m[1]) / (4 * spans)


def count_all(bench, cells):
    """{cell: instructions per span}; as many at a time as there are processors, which changes no count."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(cells, pool.map(lambda c: count(bench, *c), cells)))


def read_baseline():
    """Who made it, and {(format, workload): (instructions, the reason of its last rise)}."""
    made_by, rows = "unknown", {}
    for line in open(BASELINE):
        if line.startswith("# compiler: "):
            made_by = line[12:].strip()
        elif line.strip() and not line.startswith("#"):
            f, w, n, why = (line.rstrip("\n") + "\t").split("\t")[:4]
            rows[f, w] = (float(n), why)
    return made_by, rows


def do_time(args, cells):
    cells = [(f, w, n) for f, w in cells for n in (100, 1)]
    results = {c: [] for c in cells}
    for _ in range(args.rounds):
        for f, w, n in random.sample(cells, len(cells)):
            out = subprocess.run([args.bench, "time", f, w, str(n)], capture_output=True, text=True, check=True).stdout
            results[f, w, n].append([float(x) for x in out.split("\t")])
    instructions = count_all(args.bench, [c[:2] for c in cells if c[2] == 100]) if args.instructions else {}
    print(f"{'format':18}{'workload':12}{'spans':>6}{'ns/span':>10}{'median':>10}{'bytes':>10}{'x memcpy':>10}{'instr':>9}{'allocs':>8}")
    allocs = 0
    for c in cells:
        r = results[c]
        best = min(r, key=lambda x: x[0])
        allocs += int(max(x[4] for x in r))
        instr = f"{instructions[c[:2]]:9.0f}" if c[2] == 100 and c[:2] in instructions else " " * 9
        print(f"{c[0]:18}{c[1]:12}{c[2]:6}{best[0]:10.1f}{statistics.median(x[1] for x in r):10.1f}{best[2]:10.1f}"
              f"{min(x[3] for x in r):10.2f}{instr}{max(x[4] for x in r):8.0f}")
    if allocs:
        print(f"{allocs} allocations in steady state: there should be none")
    return allocs != 0


def do_check(args, cells):
    if not shutil.which("valgrind"):
        print("skipped: no valgrind\n0 passed, 0 failed, 1 skipped (instructions)")
        return False
    made_by, base = read_baseline()
    mine = compiler(args.bench)
    if made_by != mine:
        print(f"skipped: bench/baseline.tsv was made by {made_by}, this program by {mine}")
        print("0 passed, 0 failed, 1 skipped (instructions)")
        return False
    passed = failed = 0
    for (f, w), n in count_all(args.bench, cells).items():
        want = base.get((f, w), (None, ""))[0]
        if want is None:
            failed += 1
            print(f"FAILED    {f} {w}: {n:.0f} instructions per span; not in bench/baseline.tsv (make bench-encode-update)")
        elif n > want * SLACK:
            failed += 1
            print(f"FAILED    {f} {w}: {n:.0f} instructions per span, {want:.0f} before: {100 * (n / want - 1):+.0f} %")
        else:
            passed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped (instructions)")
    return failed != 0


def do_update(args, cells):
    made_by, old = read_baseline()
    rows = dict(old) if args.format or args.workload else {}
    for (f, w), n in count_all(args.bench, cells).items():
        before, why = old.get((f, w), (None, ""))
        if before and n > before * SLACK and made_by == compiler(args.bench):
            if not args.reason:
                sys.exit(f"{f} {w}: {n:.0f} instructions per span, {before:.0f} before: give --reason \"why that has to be\"")
            why = args.reason
        rows[f, w] = (n, why)
    with open(BASELINE, "w") as out:
        out.write("# Instructions per span (make bench-encode-update): batches of 100, AVX2, callgrind. A change that raises one by more\n"
                  "# than 10 % comes with a new baseline, and its reason in the last column (ARGS='--reason \"…\"').\n")
        out.write(f"# compiler: {compiler(args.bench)}\n")
        for (f, w), (n, why) in rows.items():
            out.write(f"{f}\t{w}\t{n:.0f}\t{why}".rstrip() + "\n")
    return False


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bench")
    p.add_argument("what", nargs="?", default="time", choices=["time", "count", "check", "update"])
    p.add_argument("--format", action="append")
    p.add_argument("--workload", action="append")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--reason", help="with update: why a count may be more than 10 %% higher than before")
    p.add_argument("--instructions", action="store_true", help="with time: count them, too (slow)")
    args = p.parse_args()
    formats = args.format or listed(args.bench, "format")
    workloads = args.workload or (listed(args.bench, "workload") if args.what == "time" else GATED)
    cells = [(f, w) for f in formats for w in workloads]
    if args.what == "count":
        for (f, w), n in count_all(args.bench, cells).items():
            print(f"{f}\t{w}\t{n:.0f}")
        return False
    return {"time": do_time, "check": do_check, "update": do_update}[args.what](args, cells)


if __name__ == "__main__":
    sys.exit(main())
