#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replay event scripts and compare the spans: run.py [--update] [NAME…]. No root.

Beside CASE.jsonl (or CASE.tev) stand two files or three:
CASE.expect      written by hand, before the program ran: a line per span,
                 KIND METHOD TARGET STATUS START-END [KEY=VALUE…]
                 times in µs of the script, '-' no status, '*' any end, '?' any target. Keys: error, events ('*':
                 some; none without the key), parent (target of the parent's span, or its id; none without the
                 key), links (TYPE>target, with commas; none without the key), trace (target or id), id, status,
                 name, req_body, resp_body, attr.NAME, nowhere (text that must not occur).
                 Of a target that two spans have: client:/x or server:/x.
CASE.opts        options of this replay, if there are any; words with blanks or newlines between
CASE.spans.json  all that is put out, rewritten by --update; its diff is for review.
After each replay every stage of the ledger must add up: in = out + dropped + held.
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
RINGSPAN = os.environ.get("RINGSPAN", os.path.join(TOP, "build", "ringspan"))
ERROR_CODES = (2, "ERROR", "error", "STATUS_CODE_ERROR")


def target(span):
    a = span["attributes"]
    if "url.path" in a:
        return a["url.path"] + ("?" + a["url.query"] if "url.query" in a else "")
    return "/" + a.get("url.full", "").split("://", 1)[-1].partition("/")[2]


def check_span(span, words, spans, base):
    """What is wrong with a span, given its line of CASE.expect; an empty list when nothing is."""
    kind, method, where, status, times = words[:5]
    want = dict(w.split("=", 1) for w in words[5:])
    a = span["attributes"]
    wrong = []

    def same(what, got, expected):
        if str(got) != str(expected):
            wrong.append(f"{what} is {got!r}, not {expected!r}")

    same("kind", str(span["kind"]).lower(), kind)
    same("method", a.get("http.request.method_original", a.get("http.request.method")), method)
    if where != "?":
        same("target", target(span), where)
    same("status code", a.get("http.response.status_code", "-"), status)
    start, end = times.split("-")
    same("start", (span["start_unix_nano"] - base) / 1000, float(start))
    if end != "*":
        same("end", (span["end_unix_nano"] - base) / 1000, float(end))
    if want.get("error") == "*":
        if "error.type" not in a or a["error.type"].isdigit():
            wrong.append(f"error.type is {a.get('error.type')!r}, not the name of a failure")
    elif status.isdigit() and int(status) >= (500 if kind == "server" else 400) and "error" not in want:
        same("error.type", a.get("error.type"), status)
    else:
        same("error.type", a.get("error.type", ""), want.get("error", ""))
    events = [e["name"] for e in span.get("events", [])]
    if want.get("events") == "*":
        if not events:
            wrong.append("there is no event")
    else:
        same("events", ",".join(events), want.get("events", ""))
    parent = span.get("parent_span_id") or ""
    by_target = {**{target(s): s for s in spans}, **{f"{str(s['kind']).lower()}:{target(s)}": s for s in spans}}
    by_id = {s["span_id"]: f"{str(s['kind']).lower()}:{target(s)}" for s in spans}
    links = [f"{x['attributes'].get('ringspan.link.type')}>{by_id.get(x['span_id'], x['span_id'])}"
             for x in span.get("links", [])]
    same("links", ",".join(links), want.get("links", ""))
    if want.get("parent", "") in by_target:
        above = by_target[want["parent"]]
        same("parent", parent, above["span_id"])
        same("trace", span["trace_id"], above["trace_id"])
    else:
        same("parent", parent, want.get("parent", ""))
    code = span["status"]["code"]
    if want.get("status") == "error" and code not in ERROR_CODES or want.get("status") == "unset" and code in ERROR_CODES:
        wrong.append(f"status.code is {code!r}, not {want['status']}")
    for key, value in want.items():
        if key == "trace":
            same(key, span["trace_id"], by_target[value]["trace_id"] if value in by_target else value)
        elif key == "id":
            same(key, span["span_id"], value)
        elif key == "name":
            same(key, span["name"], value)
        elif key == "req_body":
            same(key, a.get("http.request.body.size"), value)
        elif key == "resp_body":
            same(key, a.get("http.response.body.size"), value)
        elif key.startswith("attr."):
            same(key, a.get(key[5:]), value)
        elif key == "nowhere" and value in json.dumps(span):
            wrong.append(f"{value!r} occurs in it")
    return wrong


def check_expected(path, spans):
    lines = [line.split() for line in open(path) if line.strip() and not line.startswith("#")]
    shown = [f"{s['kind']} {target(s)} {s['attributes'].get('http.response.status_code', '-')}" for s in spans]
    if len(lines) != len(spans):
        return [f"{len(spans)} spans, not {len(lines)}: {shown}"]
    if not lines:
        return []
    # Only differences of times are compared: the script's zero is anywhere.
    lines.sort(key=lambda w: (float(w[4].split("-")[0]), w[2]))
    spans = sorted(spans, key=lambda s: (s["start_unix_nano"], target(s)))
    base = spans[0]["start_unix_nano"] - int(lines[0][4].split("-")[0]) * 1000
    wrong = []
    for words, span in zip(lines, spans):
        wrong += [f"{' '.join(words[:3])}: {w}" for w in check_span(span, words, spans, base)]
    return wrong


def replay(path, ledger):
    opts = path.rsplit(".", 1)[0] + ".opts"
    words = open(opts).read().split() if os.path.exists(opts) else []
    done = subprocess.run([RINGSPAN, "replay", path, "--format", "json", "--seed", "1", "--ledger", ledger, *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode != 0:
        raise ValueError(f"replay ended with {done.returncode}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_ledger(path):
    """Every stage: in = out + dropped + held."""
    stages = {}
    for line in open(path):
        stage, kind, name, value = line.rstrip("\n").split("\t")[:4]
        sums = stages.setdefault(stage, {"in": 0, "out": 0, "dropped": 0, "held": 0, "info": 0})
        sums[kind] += int(value)
    if not stages:
        return ["the ledger is empty"]
    return [f"stage {stage}: {s['in']} in, {s['out']} out + {s['dropped']} dropped + {s['held']} held"
            for stage, s in stages.items() if s["in"] != s["out"] + s["dropped"] + s["held"]]


def pretty(spans):
    for span in spans:
        span["resource"].pop("telemetry.sdk.version", None)
    return "".join(json.dumps(s, indent=1, sort_keys=True, ensure_ascii=False) + "\n" for s in spans)


def run_case(path, update):
    stem = path.rsplit(".", 1)[0]
    ledger = os.path.join(TOP, "build", "golden-ledger.tsv")
    spans = replay(path, ledger)
    wrong = check_ledger(ledger)
    if os.path.exists(stem + ".expect"):
        wrong += check_expected(stem + ".expect", spans)
    golden, text = stem + ".spans.json", pretty(spans)
    if update:
        with open(golden, "w") as f:
            f.write(text)
    elif not os.path.exists(golden):
        wrong.append("no .spans.json: run make golden-update and review it")
    elif open(golden).read() != text:
        old, new = open(golden).read().splitlines(), text.splitlines()
        first = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
        wrong.append(f"differs from {os.path.basename(golden)} at line {first + 1}: "
                     f"{new[first:first + 1]} instead of {old[first:first + 1]}")
    return wrong


def main():
    update = "--update" in sys.argv[1:]
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    cases = sorted(os.path.join(folder, f) for folder, _, files in os.walk(HERE) for f in files
                   if f.endswith((".jsonl", ".tev")))
    passed = failed = 0
    for path in cases:
        name = os.path.relpath(path, HERE)
        if names and not any(n in name for n in names):
            continue
        try:
            wrong = run_case(path, update)
        except (ValueError, KeyError, subprocess.TimeoutExpired) as e:
            wrong = [f"{type(e).__name__}: {e}"]
        if wrong:
            failed += 1
            print(f"FAILED    {name}: " + "\n          ".join(wrong))
        else:
            passed += 1
    if not passed + failed:
        sys.exit(f"no case has {' or '.join(names)} in its name")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
