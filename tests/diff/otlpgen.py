# SPDX-License-Identifier: Apache-2.0
"""Seeded OTLP trace data for the encoders' tests: every value type, nesting, sizes 0 to 70 KB, text that is
valid UTF-8 and text that is not, events, links, trace state, dropped counts.

The model is plain Python. Text is `bytes` (so that it can be invalid). An attribute list is a list of
(key, value); a value is ("s", bytes) | ("b", bool) | ("i", int) | ("d", float) | ("y", bytes) |
("a", [value]) | ("m", [(key, value)]) | ("e",). to_pb() writes OTLP protobuf by hand, independent of any
library; to_json() writes OTLP JSON and needs valid text (Rng.valid_only).
"""
import codecs
import json
import random
import struct

T0 = 1_700_000_000_000_000_000


def text(b):
    """What every encoder must make of text: a truncated tail is cut, other ill-formed parts become U+FFFD."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(b, final=False)


def named(attrs):
    """Attributes without a name are invalid: left out, and counted where there is a count."""
    return [(k, v) for k, v in attrs if text(k)]


class Gen:
    def __init__(self, seed, valid_only=False):
        self.r = random.Random(seed)
        self.valid_only = valid_only

    # -- text ---------------------------------------------------------------------------------------------
    WORDS = ["a", "GET", "/商品/日本語-💥", "hello world", 'quote " back \\ slash', "tab\tnewline\n", "é", "\x00\x01\x1f",
             "\u2028", "𝒳", "null", "/api/v1/users/{id}", "'; DROP TABLE x; --", "\x7f", "Ünïcödé", "<&>"]
    BAD = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe6\x97", b"\xf0\x9f\x98", b"\x80", b"\xc3("]

    def text(self, longest=60):
        r, out = self.r, b""
        n = r.choice([0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65]) if r.random() < 0.7 else r.randrange(longest + 1)
        while len(out) < n:
            if not self.valid_only and r.random() < 0.1:
                out += r.choice(self.BAD)
            elif r.random() < 0.5:
                out += r.choice(self.WORDS).encode()
            else:
                out += bytes(r.choice(b"abcdefghijklmnopqrstuvwxyz/-_. ") for _ in range(r.randrange(1, 20)))
        return out

    def long_text(self):
        """Up to 70 KB: around every limit a protocol has."""
        r = self.r
        n = r.choice([200, 255, 256, 257, 1000, 4096, 4999, 5000, 5001, 24998, 24999, 25000, 25001, 25003, 65535, 65536, 70000])
        unit = r.choice(["x", "é", "日", "💥", "ab\tc\n", "\\\""]).encode()
        s = b"y" * r.randrange(4) + unit * (n // len(unit) + 1)
        s = s[:n]
        if self.valid_only:
            s = s.decode("utf-8", "ignore").encode()
        return s

    # -- values -------------------------------------------------------------------------------------------
    def value(self, depth=0):
        r = self.r
        k = r.random()
        if k < 0.45:
            return ("s", self.text())
        if k < 0.50:
            return ("s", self.long_text() if depth == 0 and r.random() < 0.3 else self.text(300))
        if k < 0.60:
            return ("b", r.random() < 0.5)
        if k < 0.72:
            return ("i", r.choice([0, 1, -1, 127, 128, 255, 256, -32, -33, -128, -129, 65535, 65536, 2**31 - 1, 2**31, 2**32, -2**31,
                                   2**53, 2**53 + 1, 2**63 - 1, -2**63, r.randrange(-10**6, 10**6)]))
        if k < 0.82:
            return ("d", r.choice([0.0, -0.0, 0.5, 1.0, -1.5, 1e300, 5e-324, 0.1, 1e21, 1e-7, 123456789.125, float("nan"), float("inf"),
                                   float("-inf"), r.uniform(-1e6, 1e6)]))
        if k < 0.86:
            return ("y", bytes(r.randrange(256) for _ in range(r.randrange(20))))
        if k < 0.93 and depth < 3:
            if r.random() < 0.6:
                kind = r.choice("sbid")
                return ("a", [self.scalar(kind) for _ in range(r.randrange(5))])
            return ("a", [self.value(depth + 1) for _ in range(r.randrange(5))])
        if k < 0.98 and depth < 3:
            return ("m", self.attrs(r.randrange(4), depth + 1))
        return ("e",)

    def scalar(self, kind):
        r = self.r
        return {"s": lambda: ("s", self.text()), "b": lambda: ("b", r.random() < 0.5), "i": lambda: ("i", r.randrange(-300, 300)),
                "d": lambda: ("d", r.uniform(-10, 10))}[kind]()

    KEYS = ["a", "key.one", "app.user.id", "日本", "k" * 40, "k" * 210, "thread.id", "peer.service", "custom tag", "net.peer.name"]

    def key(self):
        r = self.r
        if r.random() < 0.5:
            return r.choice(self.KEYS).encode() + str(r.randrange(30)).encode()
        k = self.text(30)
        return k or b"k"

    def attrs(self, n, depth=0):
        out, seen = [], set()
        for _ in range(n):
            k = self.key()
            if text(k) in seen or not text(k):
                continue
            seen.add(text(k))
            out.append((k, self.value(depth)))
        return out

    def semconv(self):
        """Attributes that the mappings look at, in combinations that real spans have and some that they do not."""
        r = self.r
        s = lambda *v: ("s", r.choice(v).encode())
        groups = [
            [("http.request.method", s("GET", "POST", "_OTHER")), ("url.full", s("https://example.com/a?b=c")), ("http.route", s("/a/{id}")),
             ("http.response.status_code", ("i", r.choice([200, 404, 418, 500, 503, 599]))), ("server.address", s("example.com")), ("server.port", ("i", 443))],
            [("http.method", s("GET", "PUT")), ("http.status_code", ("i", r.choice([200, 401, 409, 429]))), ("http.target", s("/x"))],
            [("db.system", s("mysql", "postgresql", "redis", "mongodb", "memcached", "cassandra", "elasticsearch", "opensearch", "hive", "Unknown DB")),
             ("db.statement", s("SELECT 1", "GET key")), ("db.namespace", s("shop"))],
            [("db.system.name", s("microsoft.sql_server", "oracle.db", "other_sql", "clickhouse")), ("db.query.text", s("SELECT 2"))],
            [("messaging.system", s("kafka", "rabbitmq")), ("messaging.operation", s("publish", "receive", "process")),
             ("messaging.destination.name", s("orders"))],
            [("rpc.system", s("grpc", "aws-api")), ("rpc.method", s("Get")), ("rpc.service", s("my.Service", "S3")), ("rpc.grpc.status_code", ("i", r.randrange(17)))],
            [("rpc.system.name", s("grpc")), ("rpc.method", s("my.Service/Get")), ("rpc.response.status_code", s("OK", "INTERNAL"))],
            [("faas.invoked_provider", s("aws")), ("faas.invoked_name", s("fn"))],
            [("faas.trigger", s("pubsub"))],
            [("graphql.operation.type", s("query")), ("graphql.operation.name", s("FindBook"))],
            [("network.protocol.name", s("amqp", "HTTP"))],
            [("operation.name", s("My Operation", "op.name"))], [("resource.name", s("res name"))], [("span.type", s("cache"))],
            [("sampling.priority", ("i", r.choice([-1, 0, 1, 2])))], [("env", s("dev"))], [("version", s("v9"))],
            [("component", s("tomcat"))], [("error.type", s("java.io.IOException"))], [("_dd.measured", ("i", 1))],
            [("client.address", s("10.0.0.1")), ("user_agent.original", s("curl/8")), ("http.request.header.x-a", s("1"))],
            [("peer.service", s("Peer"))], [("error", ("b", r.random() < 0.5))],
        ]
        out = []
        for g in r.sample(groups, r.randrange(0, 4)):
            for k, v in g:
                if r.random() < 0.85:
                    out.append((k.encode(), v))
        return out

    # -- spans --------------------------------------------------------------------------------------------
    def ident(self, n):
        r = self.r
        return bytes(r.randrange(1, 256) for _ in range(n))

    def event(self):
        r = self.r
        if r.random() < 0.3:
            return {"time": T0 + r.randrange(10**9), "name": b"exception", "dropped": 0,
                    "attrs": [(b"exception.type", ("s", b"java.lang.IllegalStateException")), (b"exception.message", ("s", self.text())),
                              (b"exception.stacktrace", ("s", b"E: x\n\tat com.example.A(A.java:1)\n" * r.randrange(1, 120)))]}
        return {"time": T0 + r.randrange(10**9), "name": self.text() or b"e", "attrs": self.attrs(r.randrange(5)), "dropped": r.choice([0, 0, 3])}

    def link(self):
        r = self.r
        tid = self.ident(16) if r.random() < 0.7 else bytes(8) + self.ident(8)
        return {"trace_id": tid, "span_id": self.ident(8), "state": r.choice([b"", b"dd=s:1", b"a=b,c=d"]), "flags": r.choice([0, 1, 0x100, 0x301]),
                "attrs": self.attrs(r.randrange(3)), "dropped": r.choice([0, 0, 2])}

    def span(self, trace_id):
        r = self.r
        start = T0 + r.randrange(10**12)
        seen, attrs = set(), []
        for k, v in self.semconv() + self.attrs(r.choice([0, 1, 3, 8, 20])):
            if text(k) not in seen:
                seen.add(text(k))
                attrs.append((k, v))
        many = r.random() < 0.05
        return {"trace_id": trace_id, "span_id": self.ident(8), "parent": self.ident(8) if r.random() < 0.6 else b"",
                "state": r.choice([b"", b"", b"dd=s:1;o:rum,x=y", b"x=y, dd=o:rum;t.dm:-4;s:2", b"dd=s:-1", b"dd=s:1x", b"dd=s:200", b"xdd=s:2"]), "flags": r.choice([0, 1, 0x101, 0x301]), "name": self.text() or b"n",
                "kind": r.randrange(6), "start": start, "end": start + r.choice([0, 1, 999, 1000, 1500, r.randrange(10**9)]), "attrs": attrs,
                "events": [self.event() for _ in range(r.randrange(20, 60) if many else r.choice([0, 0, 1, 3]))],
                "links": [self.link() for _ in range(r.randrange(100, 300) if many else r.choice([0, 0, 1, 2]))],
                "status": r.randrange(3), "message": self.text() if r.random() < 0.4 else b"", "dropped": r.choice([0, 0, 5]),
                "dropped_events": r.choice([0, 0, 1]), "dropped_links": r.choice([0, 0, 1])}

    def resource(self):
        r = self.r
        out = []
        if r.random() < 0.85:
            out.append((b"service.name", ("s", r.choice([b"My Service", b"shop", b"svc-1", "Zoë".encode(), b"x" * 120]))))
        for k, v in [("deployment.environment.name", "prod"), ("deployment.environment", "stage"), ("service.version", "1.2.3"), ("host.name", "h1"),
                     ("telemetry.sdk.language", "c"), ("telemetry.sdk.version", "0.1"), ("service.namespace", "ns"), ("container.id", "c" * 64),
                     ("process.pid", 42)]:
            if r.random() < 0.4:
                out.append((k.encode(), ("i", v) if isinstance(v, int) else ("s", v.encode())))
        return out + [(k, v) for k, v in self.attrs(r.randrange(3)) if k not in dict(out)]

    def batch(self):
        r = self.r
        out = []
        for _ in range(r.choice([1, 1, 1, 2, 3])):
            traces = [self.ident(16) if r.random() < 0.8 else bytes(8) + self.ident(8) for _ in range(r.randrange(1, 4))]
            scopes = []
            for _ in range(r.choice([1, 1, 2])):
                scopes.append({"name": r.choice([b"", b"scope", self.text()]), "version": r.choice([b"", b"1.0"]),
                               "attrs": self.attrs(r.choice([0, 0, 2])), "spans": [self.span(r.choice(traces)) for _ in range(r.randrange(1, 5))]})
            out.append({"attrs": self.resource(), "scopes": scopes})
        return out


# -- OTLP protobuf, written by hand --------------------------------------------------------------------------

def _varint(n):
    n &= 2**64 - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _tag(f, w):
    return _varint(f << 3 | w)


def _len(f, b):
    return _tag(f, 2) + _varint(len(b)) + b


def _opt(f, b):
    return _len(f, b) if b else b""


def _int(f, n):
    return _tag(f, 0) + _varint(n) if n else b""


def _value(v):
    k = v[0]
    if k == "s":
        return _len(1, v[1])
    if k == "b":
        return _tag(2, 0) + _varint(int(v[1]))
    if k == "i":
        return _tag(3, 0) + _varint(v[1])
    if k == "d":
        return _tag(4, 1) + struct.pack("<d", v[1])
    if k == "a":
        return _len(5, b"".join(_len(1, _value(x)) for x in v[1]))
    if k == "m":
        return _len(6, _attrs(1, v[1]))
    if k == "y":
        return _len(7, v[1])
    return b""


def _attrs(f, attrs):
    return b"".join(_len(f, _opt(1, k) + _len(2, _value(v))) for k, v in attrs)


def _span(s):
    out = _len(1, s["trace_id"]) + _len(2, s["span_id"]) + _opt(3, s["state"]) + _opt(4, s["parent"]) + _opt(5, s["name"]) + _int(6, s["kind"])
    out += _tag(7, 1) + struct.pack("<Q", s["start"]) + _tag(8, 1) + struct.pack("<Q", s["end"]) + _attrs(9, s["attrs"]) + _int(10, s["dropped"])
    for e in s["events"]:
        out += _len(11, _tag(1, 1) + struct.pack("<Q", e["time"]) + _opt(2, e["name"]) + _attrs(3, e["attrs"]) + _int(4, e["dropped"]))
    out += _int(12, s["dropped_events"])
    for e in s["links"]:
        b = _len(1, e["trace_id"]) + _len(2, e["span_id"]) + _opt(3, e["state"]) + _attrs(4, e["attrs"]) + _int(5, e["dropped"])
        out += _len(13, b + (_tag(6, 5) + struct.pack("<I", e["flags"]) if e["flags"] else b""))
    out += _int(14, s["dropped_links"])
    if s["status"] or s["message"]:
        out += _len(15, _opt(2, s["message"]) + _int(3, s["status"]))
    return out + (_tag(16, 5) + struct.pack("<I", s["flags"]) if s["flags"] else b"")


def to_pb(batch):
    out = b""
    for rs in batch:
        b = _len(1, _attrs(1, rs["attrs"]))
        for ss in rs["scopes"]:
            scope = _opt(1, ss["name"]) + _opt(2, ss["version"]) + _attrs(3, ss["attrs"])
            b += _len(2, _len(1, scope) + b"".join(_len(2, _span(s)) for s in ss["spans"]))
        out += _len(1, b)
    return out


# -- OTLP JSON -----------------------------------------------------------------------------------------------

def _jvalue(v):
    import base64
    k = v[0]
    if k == "s":
        return {"stringValue": v[1].decode()}
    if k == "b":
        return {"boolValue": v[1]}
    if k == "i":
        return {"intValue": str(v[1])}
    if k == "d":
        d = v[1]
        return {"doubleValue": "NaN" if d != d else "Infinity" if d == float("inf") else "-Infinity" if d == float("-inf") else d}
    if k == "y":
        return {"bytesValue": base64.b64encode(v[1]).decode()}
    if k == "a":
        return {"arrayValue": {"values": [_jvalue(x) for x in v[1]]}}
    if k == "m":
        return {"kvlistValue": {"values": _jattrs(v[1])}}
    return {}


def _jattrs(attrs):
    return [{"key": k.decode(), "value": _jvalue(v)} for k, v in attrs]


def _jspan(s):
    return {"traceId": s["trace_id"].hex(), "spanId": s["span_id"].hex(), "traceState": s["state"].decode(), "parentSpanId": s["parent"].hex(),
            "flags": s["flags"], "name": s["name"].decode(), "kind": s["kind"], "startTimeUnixNano": str(s["start"]), "endTimeUnixNano": str(s["end"]),
            "attributes": _jattrs(s["attrs"]), "droppedAttributesCount": s["dropped"],
            "events": [{"timeUnixNano": str(e["time"]), "name": e["name"].decode(), "attributes": _jattrs(e["attrs"]),
                        "droppedAttributesCount": e["dropped"]} for e in s["events"]], "droppedEventsCount": s["dropped_events"],
            "links": [{"traceId": e["trace_id"].hex(), "spanId": e["span_id"].hex(), "traceState": e["state"].decode(), "flags": e["flags"],
                       "attributes": _jattrs(e["attrs"]), "droppedAttributesCount": e["dropped"]} for e in s["links"]],
            "droppedLinksCount": s["dropped_links"],
            **({"status": {"message": s["message"].decode(), "code": s["status"]}} if s["status"] or s["message"] else {})}


def to_json(batch):
    return json.dumps({"resourceSpans": [
        {"resource": {"attributes": _jattrs(rs["attrs"])},
         "scopeSpans": [{"scope": {"name": ss["name"].decode(), "version": ss["version"].decode(), "attributes": _jattrs(ss["attrs"])},
                         "spans": [_jspan(s) for s in ss["spans"]]} for ss in rs["scopes"]]} for rs in batch]}, ensure_ascii=False)


def spans(batch):
    """(resource, scope, span), in order."""
    for rs in batch:
        for ss in rs["scopes"]:
            for s in ss["spans"]:
                yield rs, ss, s
