# SPDX-License-Identifier: Apache-2.0
"""Batches at the edges, by name, of otlpgen's model: every limit a protocol has with one less and one more, every
value type in every place, text that is not valid in every place, ids and times and counts at the ends of their ranges.
"""
import os

from otlpgen import T0, text

HERE = os.path.dirname(os.path.abspath(__file__))


def utf8():
    """The byte strings of the table of text rules."""
    for line in open(os.path.join(HERE, "../vectors/otlp/utf8.tsv")).read().splitlines()[1:]:
        word = line.split("\t")[0]
        if word != "-":
            yield bytes.fromhex(word)


SCALARS = [("s", b""), ("s", b"x"), ("b", False), ("b", True), ("y", b""), ("y", b"\x00"), ("y", b"\xff\xfe"), ("y", b"abc"), ("e",),
           ("a", []), ("m", []), ("a", [("e",)]), ("a", [("a", []), ("m", [])]), ("m", [(b"e", ("e",))]), ("a", [("s", b""), ("i", 0), ("b", False), ("d", 0.0)]),
           ("a", [("y", b"\x01"), ("s", b"q\"\\\n")]), ("m", [(b"q\"", ("s", b"\\")), (b"a", ("a", [("m", [(b"i", ("i", -1))])]))])]
INTS = [0, 1, -1, 23, 24, 31, 32, -32, -33, 127, 128, -127, -128, -129, 255, 256, 32767, 32768, -32768, -32769, 65535, 65536, 2**31 - 1, 2**31, -2**31,
        -2**31 - 1, 2**32 - 1, 2**32, 2**53 - 1, 2**53, 2**53 + 1, -2**53, -2**53 - 1, 2**63 - 1, -2**63] + [10**k for k in range(1, 19)] + \
       [10**k - 1 for k in range(1, 19)] + [1 << 7 * k for k in range(1, 9)] + [(1 << 7 * k) - 1 for k in range(1, 9)]
DOUBLES = [0.0, -0.0, 1.0, -1.0, 0.1, 0.3, 1 / 3, 5e-324, 2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308, -1.7976931348623157e308,
           1e15, 1e16, 1e17, 1e21, 1e22, 1e23, 9007199254740993.0, 4.35, 0.000001, 0.0001, 0.00001, 1e-7, 123456789012345680.0, 2.0**64, 9.5367431640625e-07,
           float("nan"), float("inf"), float("-inf"), 5e-5, 9.999999999999999e22, 1e9, 999999999.9999999]


def letters(t):
    """Of other characters Datadog makes something else in names; agents do, with their tables, not we."""
    return all(c.isascii() or c.isalpha() for c in text(t))


def nested(n):
    v = ("s", b"deep")
    for i in range(n):
        v = ("m", [(b"k", v)]) if i % 2 else ("a", [v])
    return v


def lengths(limit):
    return [limit + d for d in (-4, -3, -2, -1, 0, 1, 2, 3, 4)]


def around(limit):
    """Texts around a limit, of characters of each length, that the limit cuts anywhere; and text that grows when it is repaired."""
    for n in lengths(limit):
        for unit in (b"x", "é".encode(), "日".encode(), "💥".encode()):
            for lead in range(len(unit)):
                yield (b"y" * lead + unit * (n // len(unit) + 1))[:n].decode("utf-8", "ignore").encode()
    for n in lengths(limit // 3) + [limit]:
        yield b"\xff" * n
    for n in lengths(limit):
        yield b"x" * (n - 1) + b"\xff"
        yield b"x" * (n - 3) + b"\xe6\x97\xff"


def span(**more):
    span.n += 1
    s = {"trace_id": bytes(range(1, 17)), "span_id": (span.n | 1 << 60).to_bytes(8, "big"), "parent": b"", "state": b"", "flags": 0, "name": b"n", "kind": 1, "start": T0,
         "end": T0 + 1500, "attrs": [], "events": [], "links": [], "status": 0, "message": b"", "dropped": 0, "dropped_events": 0, "dropped_links": 0}
    s.update(more)
    return s


span.n = 0


def event(name=b"e", attrs=(), **more):
    return {"time": T0, "name": name, "attrs": list(attrs), "dropped": 0, **more}


def link(attrs=(), **more):
    return {"trace_id": bytes(range(17, 33)), "span_id": b"\x01" * 8, "state": b"", "flags": 0, "attrs": list(attrs), "dropped": 0, **more}


def batch(spans, attrs=((b"service.name", ("s", b"svc")),), scope=(b"sc", b"1"), scope_attrs=()):
    return [{"attrs": list(attrs), "scopes": [{"name": scope[0], "version": scope[1], "attrs": list(scope_attrs), "spans": list(spans)}]}]


def everywhere(attrs):
    """The attributes in each place that has some; names are unique in each."""
    return batch([span(attrs=attrs, events=[event(attrs=attrs)], links=[link(attrs)])], attrs=attrs, scope_attrs=attrs)


def texts_everywhere(t):
    a = [(b"k" + t, ("s", t)), (b"arr", ("a", [("s", t)])), (b"map", ("m", [(t, ("s", t))]))]
    s = span(name=t, message=t, state=t, status=2, attrs=a, events=[event(t, a), event(b"exception", [(b"exception.message", ("s", t)), (b"exception.type", ("s", t))])],
             links=[link(a, state=t)])
    return batch([s], attrs=a + [(b"service.name", ("s", b"a" + (t if letters(t) else b"")))], scope=(t, t), scope_attrs=a)


def deep():
    """Nested as deep as may be: deeper than most protobuf decoders go."""
    yield "nested 62 to 64 deep", everywhere([(b"n%d" % n, nested(n)) for n in (62, 63, 64)])


def all_batches():
    """(name, batch)"""
    numbers = [(b"i%d" % i, ("i", v)) for i, v in enumerate(INTS)] + [(b"d%d" % i, ("d", v)) for i, v in enumerate(DOUBLES)]
    values = [(b"v%d" % i, v) for i, v in enumerate(SCALARS)]
    yield "numbers", everywhere(numbers)
    yield "numbers in arrays", everywhere([(b"i", ("a", [v for k, v in numbers if v[0] == "i"])), (b"d", ("a", [v for k, v in numbers if v[0] == "d"])),
                                           (b"mixed", ("a", [v for k, v in numbers])), (b"map", ("m", numbers))])
    yield "values", everywhere(values)
    yield "values in arrays", everywhere([(b"a%d" % i, ("a", [v, v])) for i, (k, v) in enumerate(values)])
    yield "values in maps", everywhere([(b"m%d" % i, ("m", [(k, v), (b"z", v)])) for i, (k, v) in enumerate(values)])
    yield "values alone", batch([span(attrs=[kv]) for kv in values + numbers])
    yield "nested", everywhere([(b"n%d" % n, nested(n)) for n in (1, 2, 5, 20)])
    yield "keys without a name", everywhere([(b"", ("s", b"x")), (b"k", ("m", [(b"", ("i", 1))])), (b"\xe6", ("i", 2)), (b"\xf0\x9f", ("i", 2))])
    yield "no keys with a name", everywhere([(b"", ("s", b"x"))])
    for i, t in enumerate(utf8()):
        yield f"text {t.hex()}", texts_everywhere(t)
    for limit, what in ((100, "names"), (200, "keys"), (5000, "resource"), (25000, "values")):
        some = list(around(limit))
        if limit > 1000:
            some = some[::7]
        for at in range(0, len(some), 12):
            part = some[at:at + 12]
            yield f"{what} around {limit}, {at}", batch(
                [span(attrs=[(b"service.name", ("s", b"s" + (t if letters(t) else b""))), (b"span.type", ("s", t))]) for t in part] +
                [span(attrs=[(b"resource.name", ("s", t))]) for t in part] + [span(name=t) for t in part] +
                [span(kind=2, attrs=[(b"http.request.method", ("s", b"GET")), (b"http.route", ("s", t))]) for t in part] +
                [span(attrs=[(b"v", ("s", t)), (b"a", ("a", [("s", t)])), (b"y", ("y", t)), (b"exception.x", ("m", [(b"k", ("s", t))]))]) for t in part])
            if limit == 200:
                yield f"{what} around {limit}, {at}, as keys", batch([span(attrs=[(t, ("s", b"v"))], events=[event(attrs=[(t, ("i", 1))])],
                                                                           links=[link([(t, ("s", b"v"))])]) for t in part])
    yield "ids", batch([span(trace_id=bytes(8) + b"\x01" * 8), span(trace_id=bytes(15) + b"\x01", span_id=bytes(7) + b"\x01"),
                        span(trace_id=b"\xff" * 16, span_id=b"\xff" * 8, parent=b"\xff" * 8), span(trace_id=b"\x80" + bytes(7) + b"\x80" + bytes(7), span_id=b"\x80" + bytes(7)),
                        span(parent=bytes(7) + b"\x01"), span(span_id=b"\x02" * 8, parent=b"\x02" * 8)])
    t = []
    for start, end in ((0, 0), (0, 1), (0, 999), (0, 1000), (1, 1), (999, 999), (1000, 2001), (T0, T0), (T0, T0 + 999), (T0, T0 + 1000), (T0, T0 + 2**31), (T0, T0 + 2**32),
                       (2**63 - 1, 2**63 - 1), (0, 2**63 - 1), (T0 - 1, T0 + 10**9), (1111111111000000000, 9223372036854775807), (999999999 * 10**9, 10**18),
                       (999999999999999999, 1000000000000000000)):
        t.append(span(start=start, end=end, events=[event(time=start), event(time=end)]))
    yield "times", batch(t)
    yield "times of events", batch([span(events=[event(time=n) for n in (0, 1, 999, 1000, T0, 2**63 - 1, 2**63, 2**64 - 1)])])
    yield "dropped", batch([span(dropped=n, dropped_events=n, dropped_links=n, events=[event(dropped=n), event(attrs=[(b"k", ("i", 1))], dropped=n)],
                                 links=[link(dropped=n), link([(b"k", ("i", 1))], dropped=n)]) for n in (1, 127, 128, 2**31, 2**32 - 1)])
    yield "flags", batch([span(flags=f, links=[link(flags=f)]) for f in (0, 1, 2, 3, 0x100, 0x101, 0x200, 0x300, 0x301, 0x303, 0xff, 0x3ff, 2**31, 2**32 - 1)])
    yield "trace state", batch([span(state=t, links=[link(state=t)]) for t in (b"a=b", b"dd=s:1;t.dm:-4", b"x" * 256, b"x" * 512, b"a=" + b"y" * 24998, b"ot=th:8;rv:00000000000001",
                                                                              b",".join(b"k%d=v" % i for i in range(32)))])
    yield "statuses and kinds", batch([span(status=st, kind=k, message=m) for st in range(3) for k in range(6) for m in (b"", b"why")])
    yield "no attributes, no scope", batch([span()], attrs=(), scope=(b"", b""))
    yield "many attributes", everywhere([(b"k%d" % i, ("i", i)) for i in range(300)])
    yield "15, 16, 17, 31 to 33 attributes", batch([span(attrs=[(b"k%d" % i, ("s", b"v")) for i in range(n)], events=[event(attrs=[(b"k%d" % i, ("s", b"v")) for i in range(n)])] * n,
                                                         links=[link()] * n) for n in (15, 16, 17, 31, 32, 33)])
    for n in range(24900, 25040, 7):
        # JSON texts of all lengths around the limit, in the last of three and in the first
        yield f"events as JSON around the limit, {n}", batch(
            [span(events=[event(b"a"), event(b"b", [(b"k", ("s", b"x" * (n - 150 + d)))]), event(b"c")]) for d in range(7)] +
            [span(events=[event(b"b", [(b"k", ("s", b"x" * (n - 60 + d)))])]) for d in range(7)] +
            [span(events=[event(b"x" * (n - 110 + d)), event(b"c")]) for d in range(7)] +
            [span(links=[link(), link([(b"k", ("s", b"x" * (n - 240 + d)))]), link()]) for d in range(7)] +
            [span(links=[link([(b"k", ("s", b"x" * (n - 120 + d)))])]) for d in range(7)])
    yield "events as JSON, many small", batch([span(events=[event(b"e" * n)] * 700, links=[link()] * 400) for n in (1, 2, 3, 10)])
    yield "a trace of 1001 spans", batch([span(parent=b"" if i == 0 else (10**6).to_bytes(8, "big"), span_id=(10**6 + i).to_bytes(8, "big")) for i in range(1001)])
    yield "a trace of 1002 spans and a root", batch([span(parent=b"" if i == 0 else (2 * 10**6).to_bytes(8, "big"), span_id=(2 * 10**6 + i).to_bytes(8, "big")) for i in range(1000)])
