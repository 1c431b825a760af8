# SPDX-License-Identifier: Apache-2.0
"""What the checks of JSON formats share."""
import base64
import json
import subprocess

import edges
import otlpgen
from otlpgen import text


class Bad(Exception):
    pass


def need(ok, *what):
    if not ok:
        raise Bad(*what)


def pairs(p):
    keys = [k for k, _ in p]
    need(len(set(keys)) == len(keys), "a key twice", [k for k in keys if keys.count(k) > 1][:3])
    return dict(p)


def loads(s):
    """JSON, strictly: UTF-8, no key twice, no NaN."""
    return json.loads(s.decode("utf-8") if isinstance(s, bytes) else s, object_pairs_hook=pairs, parse_constant=lambda c: need(False, c))


def encode(ringspan, to, batch, valid):
    data = otlpgen.to_json(batch).encode() if valid else otlpgen.to_pb(batch)
    r = subprocess.run([ringspan, "encode", "--to", to, "--from", "otlp-json" if valid else "otlp-proto"], input=data, capture_output=True)
    need(r.returncode == 0, "exit", r.returncode, r.stderr.decode()[-400:])
    return r.stdout


def plain(v):
    """A value as plain JSON."""
    k = v[0]
    if k == "s":
        return text(v[1])
    if k == "y":
        return base64.b64encode(v[1]).decode()
    if k == "d":
        d = v[1]
        return "NaN" if d != d else "Infinity" if d == float("inf") else "-Infinity" if d == float("-inf") else d
    if k == "a":
        return [plain(x) for x in v[1]]
    if k == "m":
        return {text(a): plain(b) for a, b in v[1]}
    return v[1] if k in "bi" else None


def same_text(got, v):
    """A value as text: got is a string."""
    k = v[0]
    need(type(got) is str, "not a string", got)
    if k == "b":
        return got == ("true" if v[1] else "false")
    if k == "i":
        return int(got) == v[1]
    if k == "d":
        want = plain(v)
        return got == want if type(want) is str else float(got) == want
    if k == "e":
        return got == ""
    if k in "am":
        return loads(got) == plain(v)
    return got == plain(v)


def run(name, formats, check, seeds=100):
    import sys
    import traceback
    ringspan = sys.argv[1]
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    passed = failed = spans = 0
    batches = [(f"seed {n}", otlpgen.Gen(n, n % 3 == 0).batch(), n % 3 == 0) for n in range(first, first + seeds)]
    batches += [(what, batch, False) for what, batch in [*edges.all_batches(), *edges.deep()]]
    for what, batch, valid in batches:
        for to in formats:
            try:
                n = check(to, encode(ringspan, to, batch, valid), batch)
                need(n == sum(1 for _ in otlpgen.spans(batch)), "spans", n)
                passed += 1
                spans += n
            except Exception as e:
                failed += 1
                print(f"{what}, {to}: {type(e).__name__} {str(e)[:600]}")
                if not isinstance(e, Bad) and failed == 1:
                    traceback.print_exc()
    print(f"{spans} spans decoded\n{passed} passed, {failed} failed, 0 skipped ({name})")
    sys.exit(failed != 0)
