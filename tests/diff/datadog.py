# SPDX-License-Identifier: Apache-2.0
"""Datadog's trace payloads, decoded by the specification, and what an OpenTelemetry span has to become there.

decode(version, bytes) gives [chunk]; a chunk is {"priority", "dm", "origin", "tid", "spans"}, a span
{"service", "name", "resource", "type", "trace_id", "span_id", "parent_id", "start", "duration", "error", "meta",
"metrics", "links", "events"}; v1's fields are put back into meta. Anything the specification forbids raises Bad.
expected(...) computes the same from a span of otlpgen's model. Both are written from the specification, not from
ringspan.
"""
import json
import re

import msgpack

from common import need, pairs, plain
from otlpgen import named, text


def u64(v):
    need(type(v) is int and 0 <= v < 2**64, "not a u64", v)
    return v


def unpack(data):
    """All payloads of a file. Invalid UTF-8, float32 and keys that occur twice are errors."""
    u = msgpack.Unpacker(raw=False, strict_map_key=False, object_pairs_hook=pairs, max_buffer_size=2**31 - 1)
    u.feed(data)
    out = list(u)
    need(u.tell() == len(data), "bytes left over")
    return out


def check_limits(s):
    for k in ("service", "name", "type"):
        need(len(s[k].encode()) <= 100, k, "too long")
    need(len(s["resource"].encode()) <= 5000, "resource too long")
    for k, v in s["meta"].items():
        need(k and len(k.encode()) <= 200, "key", k)
        need(type(v) is str and len(v.encode()) <= 25000, "meta value", k)
    for k, v in s["metrics"].items():
        need(k and type(v) in (int, float), "metric", k, v)
    need(s["span_id"] != 0, "span id 0")


def typed(v):
    need(set(v) == {"type", {0: "string_value", 1: "bool_value", 2: "int_value", 3: "double_value", 4: "array_value"}[v["type"]]}, v)
    kind = v["type"]
    x = [x for k, x in v.items() if k != "type"][0]
    need(type(x) is {0: str, 1: bool, 2: int, 3: float, 4: dict}[kind], v)
    if kind != 4:
        return x
    need(set(x) == {"values"}, x)
    need(len({e["type"] for e in x["values"]}) <= 1 and all(e["type"] < 4 for e in x["values"]), "mixed array")
    return [typed(e) for e in x["values"]]


V04 = ["service", "name", "resource", "trace_id", "span_id", "parent_id", "start", "duration", "type", "error", "metrics", "meta"]


def decode_v04(payload):
    out = []
    for chunk in payload:
        need(chunk, "empty chunk")
        spans = []
        for s in chunk:
            need(set(V04) <= set(s) <= set(V04) | {"span_links", "span_events"}, set(s))
            s = dict(s)
            links, events = s.pop("span_links", None), s.pop("span_events", None)
            if links is not None:
                s["links"] = []
                for l in links:
                    need({"trace_id", "span_id"} <= set(l) <= {"trace_id", "trace_id_high", "span_id", "attributes", "tracestate", "flags"}, l)
                    s["links"].append({"trace_id": u64(l.get("trace_id_high", 0)) << 64 | u64(l["trace_id"]), "span_id": u64(l["span_id"]),
                                       "attributes": l.get("attributes", {}), "tracestate": l.get("tracestate", ""), "flags": l.get("flags", 0)})
                    need(all(type(v) is str for v in s["links"][-1]["attributes"].values()), "link attributes")
            if events is not None:
                s["events"] = []
                for e in events:
                    need({"time_unix_nano", "name"} <= set(e) <= {"time_unix_nano", "name", "attributes"}, e)
                    s["events"].append({"time": u64(e["time_unix_nano"]), "name": e["name"],
                                        "attributes": {k: typed(v) for k, v in e.get("attributes", {}).items()}})
            spans.append(s)
        out.append(v0_chunk(spans))
    return out


def v0_chunk(spans):
    for s in spans:
        for k in ("trace_id", "span_id", "parent_id", "start", "duration"):
            u64(s[k])
        need(s["error"] in (0, 1) and s["trace_id"] != 0)
        check_limits(s)
        for k in ("links", "events"):
            s.setdefault(k, None)
        for name, key in (("links", "_dd.span_links"), ("events", "events")):
            if key in s["meta"] and s[name] is None and s["meta"][key].startswith("["):
                need(len(s["meta"][key].encode()) < 25000, key, "too long")
                s[name + "_json"] = json.loads(s["meta"].pop(key), object_pairs_hook=pairs, parse_constant=lambda c: need(False, c))
    need(len({s["trace_id"] for s in spans}) == 1, "foreign span")
    first = spans[0]
    tid = first["meta"].pop("_dd.p.tid", None)
    need(tid is None or (len(tid) == 16 and int(tid, 16)), "tid", tid)
    need(all("_dd.p.tid" not in s["meta"] for s in spans))
    return {"priority": first["metrics"].pop("_sampling_priority_v1", None), "dm": first["meta"].pop("_dd.p.dm", ""),
            "tid": int(tid, 16) if tid else 0, "spans": spans}


def decode_v05(payload):
    need(len(payload) == 2)
    words, chunks = payload
    need(all(type(w) is str for w in words), "dictionary")
    need(len(set(words)) == len(words), "a string twice in the dictionary")
    used = set()

    def w(i):
        need(type(i) is int and 0 <= i < len(words), "index", i)
        used.add(i)
        return words[i]

    out = []
    for chunk in chunks:
        need(chunk, "empty chunk")
        spans = []
        for f in chunk:
            need(len(f) == 12, "fields")
            s = dict(zip(["service", "name", "resource", "trace_id", "span_id", "parent_id", "start", "duration", "error", "meta", "metrics", "type"], f))
            for k in ("service", "name", "resource", "type"):
                s[k] = w(s[k])
            s["meta"] = pairs([(w(k), w(v)) for k, v in s["meta"].items()])
            s["metrics"] = pairs([(w(k), v) for k, v in s["metrics"].items()])
            spans.append(s)
        out.append(v0_chunk(spans))
    need(len(used) == len(words), "unused strings", [words[i] for i in range(len(words)) if i not in used][:5])
    return out


def decode_v1(payload):
    table, seen = [""], {""}

    def w(v):
        if type(v) is str:
            need(v != "", "empty string inline")
            need(v not in seen, "a string inline twice", v[:80])
            seen.add(v)
            table.append(v)
            return v
        need(type(v) is int and 0 <= v < len(table), "index", v)
        return table[v]

    def value(code, v):
        if code == 1:
            return w(v)
        if code == 6:
            need(len(v) % 2 == 0)
            return [value(v[i], v[i + 1]) for i in range(0, len(v), 2)]
        need(code in (2, 3, 4) and type(v) is {2: bool, 3: float, 4: int}[code], code, v)
        return v

    def attrs(v):
        need(type(v) is list and len(v) % 3 == 0, "attribute list")
        out = []
        for i in range(0, len(v), 3):
            k = w(v[i])
            out.append((k, value(v[i + 1], v[i + 2])))
        return pairs(out)

    need(set(payload) <= set(range(2, 12)) and 11 in payload, "payload keys", set(payload))
    header, out = {}, []
    for k, v in payload.items():
        if k < 10:
            header[k] = w(v)
        elif k == 10:
            attrs(v)
        else:
            for c in v:
                out.append(v1_chunk(c, w, attrs))
    for c in out:
        c["header"] = header
    return out


def v1_chunk(c, w, attrs):
    need({1, 4, 6} <= set(c) <= {1, 2, 3, 4, 6, 7}, "chunk keys", set(c))
    chunk = {"priority": c[1], "origin": ""}
    for k, v in c.items():
        if k == 2:
            chunk["origin"] = w(v)
        elif k == 3:
            chunk["attributes"] = attrs(v)
        elif k == 4:
            need(v, "empty chunk")
            chunk["spans"] = [v1_span(s, w, attrs) for s in v]
        elif k == 6:
            need(type(v) is bytes and len(v) == 16, "trace id")
            chunk["tid"] = int.from_bytes(v[:8], "big")
            low = int.from_bytes(v[8:], "big")
        elif k == 7:
            chunk["dm"] = "-%d" % u64(v) if v else ""
    if chunk["priority"] == -128:
        chunk["priority"] = None
    for s in chunk["spans"]:
        s["trace_id"] = low
    return chunk


def v1_span(m, w, attrs):
    need({1, 2, 3, 4, 6, 7, 8, 9} <= set(m) <= set(range(1, 17)), "span keys", set(m))
    s = {"parent_id": 0, "links": [], "events": []}
    names = {1: "service", 2: "name", 3: "resource", 10: "type", 13: "env", 14: "version", 15: "component"}
    for k, v in m.items():
        if k in names:
            s[names[k]] = w(v)
        elif k in (4, 5, 6, 7):
            s[{4: "span_id", 5: "parent_id", 6: "start", 7: "duration"}[k]] = u64(v)
        elif k == 8:
            need(type(v) is bool, "error", v)
            s["error"] = int(v)
        elif k == 9:
            s["attributes"] = attrs(v)
        elif k == 11:
            for l in v:
                need({1, 2} <= set(l) <= {1, 2, 3, 4, 5}, "link keys")
                x = {"attributes": {}, "tracestate": "", "flags": 0}
                for lk, lv in l.items():
                    if lk == 1:
                        need(type(lv) is bytes and len(lv) == 16)
                        x["trace_id"] = int.from_bytes(lv, "big")
                    elif lk == 3:
                        x["attributes"] = attrs(lv)
                        need(all(type(a) is str for a in x["attributes"].values()), "link attributes")
                    elif lk == 4:
                        x["tracestate"] = w(lv)
                    else:
                        x[{2: "span_id", 5: "flags"}[lk]] = u64(lv)
                s["links"].append(x)
        elif k == 12:
            for e in v:
                need({1, 2} <= set(e) <= {1, 2, 3}, "event keys")
                x = {"attributes": {}}
                for ek, ev in e.items():
                    if ek == 1:
                        x["time"] = u64(ev)
                    elif ek == 2:
                        x["name"] = w(ev)
                    else:
                        x["attributes"] = attrs(ev)
                s["events"].append(x)
        elif k == 16:
            need(v in range(6), "kind", v)
            s["kind"] = v
    s["meta"] = {k: v for k, v in s["attributes"].items() if type(v) in (str, bool)}
    s["metrics"] = {k: v for k, v in s["attributes"].items() if type(v) in (int, float)}
    need(not {"env", "version", "component", "span.kind", "_dd.p.tid", "_dd.p.dm", "_dd.origin", "_sampling_priority_v1", "events",
              "_dd.span_links"} & set(s["attributes"]), "a field among the attributes")
    check_limits({**s, "meta": {k: v for k, v in s["meta"].items() if type(v) is str}})
    for k in ("env", "version", "component"):
        if s.get(k):
            s["meta"][k] = s[k]
    if s.get("kind"):
        s["meta"]["span.kind"] = KINDS[s["kind"]]
    return s


def decode(version, data):
    f = {"datadog-v0.4": decode_v04, "datadog-v0.4-json": decode_v04, "datadog-v0.5": decode_v05, "datadog-v1": decode_v1}[version]
    return [c for payload in unpack(data) for c in f(payload)]


# -- what a span has to become -------------------------------------------------------------------------------

KINDS = ["unspecified", "internal", "server", "client", "producer", "consumer"]
RENAMES = {"client.address": "http.client_ip", "http.response.body.size": "http.response.content_length", "http.response.status_code": "http.status_code",
           "http.request.body.size": "http.request.content_length", "http.request.header.referrer": "http.referrer", "http.request.method": "http.method",
           "http.route": "http.route", "network.protocol.version": "http.version", "server.address": "http.server_name", "url.full": "http.url",
           "user_agent.original": "http.useragent"}
SQL = """other_sql mssql microsoft.sql_server mysql oracle oracle.db db2 ibm.db2 postgresql redshift aws.redshift cloudscape hsqldb maxdb sap.maxdb
ingres actian.ingres firstsql edb cache intersystems.cache firebird firebirdsql derby informix ibm.informix mariadb sqlite sybase teradata vertica h2
h2database coldfusion cockroachdb progress hanadb sap.hana adabas softwareag.adabas filemaker instantdb interbase netezza ibm.netezza pervasive
pointbase clickhouse""".split()
OWN = "redis memcached mongodb elasticsearch opensearch cassandra".split()
EATEN = {"service.name", "operation.name", "resource.name", "span.type", "analytics.event", "sampling.priority", "_sampling_priority_v1", "_dd.p.tid", "_dd.p.dm"}
FIELDS = {"_dd.origin", "span.kind", "env", "version", "component"}
REASONS = {400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 409: "Conflict", 418: "I'm a teapot", 429: "Too Many Requests",
           500: "Internal Server Error", 503: "Service Unavailable", 200: "OK"}


def cut(s, n):
    return s.encode()[:n].decode("utf-8", "ignore")


def tag_value(s):
    """Datadog's normal form of tag values."""
    out, gap = "", False
    for c in s:
        low = c.lower() if len(c.lower()) == 1 and len(c.lower().encode()) == len(c.encode()) else c
        if low.isalpha() or low in ":./-" or low.isdigit():
            out += ("_" if gap else "") + low
            gap = False
        else:
            gap = True
    return out[:200]


def norm_name(s):
    """Datadog's normal form of operation names, which agents apply to what they receive."""
    out = ""
    for c in cut(s, 100):
        if c.isascii() and c.isalnum():
            if out or c.isalpha():
                out += c
        elif c == "." and out:
            out = out[:-1] + "." if out[-1] == "_" else out + "."
        elif out and out[-1] not in "._":
            out += "_"
    return out[:-1] if out.endswith("_") else out


def as_text(v):
    """A value as a tag: a string, or the object that the string is the JSON of, or the number that it is."""
    k = v[0]
    if k == "b":
        return "true" if v[1] else "false"
    if k == "e":
        return ""
    if k in "am":
        return ("json", plain(v))
    if k in "id":
        return ("number", v[1])
    return cut(plain(v), 25000)


def same_text(got, want):
    if type(want) is str:
        return got == want
    if want[0] == "number":
        return same_number(float(got) if type(want[1]) is float else int(got), want[1])
    if len(got.encode()) > 24990:
        return True  # cut
    return same_json(json.loads(got, object_pairs_hook=pairs), want[1])


def same_number(a, b):
    return a == b or (a != a and b != b)


def same_json(a, b):
    if type(a) is not type(b):
        return type(a) in (int, float) and type(b) in (int, float) and a == b
    if type(a) is dict:
        return a.keys() == b.keys() and all(same_json(a[k], b[k]) for k in a)
    if type(a) is list:
        return len(a) == len(b) and all(map(same_json, a, b))
    return a == b or (type(a) is str and len(b.encode()) > 25000 and a == cut(b, 25000))


class Attrs:
    """Lookup as the agent does: texts that are not empty, the span's before the resource's."""

    def __init__(self, span, resource):
        self.maps = []
        for attrs in (span, resource):
            m = {}
            for k, v in attrs:
                m.setdefault(text(k), v)
            self.maps.append(m)

    def str(self, *keys):
        for k in keys:
            for m in self.maps:
                v = m.get(k)
                if v and v[0] == "s" and v[1]:
                    return text(v[1])
        return ""

    def any(self, *keys):
        for k in keys:
            for m in self.maps:
                if k in m:
                    return m[k]
        return None


def name_of(a, kind):
    client, server = kind == 3, kind == 2
    s = lambda *k: tag_value(a.str(*k))
    if s("operation.name"):
        return s("operation.name")
    if (client or server) and a.str("http.request.method", "http.method"):
        return "http.server.request" if server else "http.client.request"
    if client and a.str("db.system.name", "db.system"):
        return s("db.system.name", "db.system") + ".query"
    if s("messaging.system") and s("messaging.operation") and kind >= 2:
        return s("messaging.system") + "." + s("messaging.operation")
    rpc = s("rpc.system.name", "rpc.system")
    if rpc == "aws-api" and client:
        return "aws." + s("rpc.service") + ".request" if s("rpc.service") else "aws.client.request"
    if rpc and (client or server):
        return rpc + (".client.request" if client else ".server.request")
    if s("faas.invoked_provider") and s("faas.invoked_name") and client:
        return s("faas.invoked_provider") + "." + s("faas.invoked_name") + ".invoke"
    if s("faas.trigger") and server:
        return s("faas.trigger") + ".invoke"
    if s("graphql.operation.type"):
        return "graphql.server.request"
    if client or server:
        proto = s("network.protocol.name")
        return (proto + "." if proto else "") + ("client.request" if client else "server.request")
    return ["Internal", "Internal", "", "", "Producer", "Consumer"][kind]


def resource_of(a, span):
    if a.str("resource.name"):
        return a.str("resource.name")
    m = a.str("http.request.method", "http.method")
    if m:
        m = "HTTP" if m == "_OTHER" else m
        b = a.str("http.route") if span["kind"] == 2 else a.str("url.template") if span["kind"] == 3 else ""
        return m + (" " + b if b else "")
    for first, second in ((("messaging.operation",), ("messaging.destination", "messaging.destination.name")), (("rpc.method",), ("rpc.service",)),
                          (("graphql.operation.type",), ("graphql.operation.name",))):
        if a.str(*first):
            b = a.str(*second)
            return a.str(*first) + (" " + b if b else "")
    if a.str("db.system.name", "db.system") and a.str("db.statement", "db.query.text"):
        return a.str("db.statement", "db.query.text")
    return text(span["name"])


def type_of(a, kind):
    if a.str("span.type"):
        return a.str("span.type")
    if kind != 3:
        return "web" if kind == 2 else "custom"
    db = tag_value(a.str("db.system.name", "db.system"))
    return "http" if not db else "sql" if db in SQL else db if db in OWN else "db"


def is_datadogs(span):
    keys = {text(k) for k, _ in span["attrs"]}
    return {"operation.name", "resource.name", "span.type"} <= keys or "_sampling_priority_v1" in keys


def number(v):
    return v[1] if v and v[0] in "id" else None


def expected(version, rs, ss, s):
    v1 = version == "datadog-v1"
    meta, metrics = {}, {}
    a = Attrs(s["attrs"], rs["attrs"])
    native = is_datadogs(s)

    def put(k, v):
        if k and k not in meta and not (v1 and k in metrics):
            meta[k] = v

    def put_attr(k, v, resource):
        raw, k = text(k), cut(text(k), 200)
        if not k or raw in EATEN or (v1 and raw in FIELDS):
            return
        if raw in ("events", "_dd.span_links") and (v1 or s["events" if raw == "events" else "links"]):
            return
        k = RENAMES.get(raw, "http.request.headers." + raw[20:] if raw.startswith("http.request.header.") else k)
        if v[0] in "id" and not resource:
            if k not in metrics and not (v1 and k in meta):
                metrics[k] = v[1]
        elif v1 and v[0] == "b" and not resource:
            put(k, v[1])
        else:
            put(k, as_text(v))

    for k, v in s["attrs"]:
        put_attr(k, v, False)
    if not native:
        if not v1:
            put("span.kind", KINDS[s["kind"]])
        put("otel.trace_id", s["trace_id"].hex())
        put("otel.status_code", ["Unset", "Ok", "Error"][s["status"]])
        if s["message"]:
            put("otel.status_description", text(s["message"]))
        exceptions = [e for e in s["events"] if e["name"] == b"exception"]
        if exceptions:
            put("_dd.span_events.has_exception", "true")
        if s["status"] == 2:
            for k, v in exceptions[-1]["attrs"] if exceptions else []:
                if v[0] == "s" and k in (b"exception.type", b"exception.stacktrace"):
                    put({b"exception.type": "error.type", b"exception.stacktrace": "error.stack"}[k], as_text(v))
                elif v[0] == "s" and k == b"exception.message" and v[1]:
                    put("error.message", as_text(v))
            msg = text(s["message"])
            if not s["message"]:
                code = a.any("http.status_code", "http.response.status_code")
                if code and code[0] == "i" and code[1] >= 0:
                    msg = str(code[1]) + (" " + REASONS[code[1]] if code[1] in REASONS else "")
            if msg or s["message"]:
                put("error.msg", msg)
                put("error.message", msg)
    elif s["kind"] and not v1:
        put("span.kind", KINDS[s["kind"]])
    if s["state"]:
        put("w3c.tracestate", text(s["state"]))
    scope = [(b"otel.scope.name", ss["name"]), (b"otel.library.name", ss["name"]), (b"otel.scope.version", ss["version"]),
             (b"otel.library.version", ss["version"])]
    ctx = [(k, ("s", v)) for k, v in scope if v] + ss["attrs"] + rs["attrs"]
    if a.str("db.namespace") and "db.name" not in {text(k) for k, _ in ctx}:
        put("db.name", a.str("db.namespace"))
    if "http.status_code" in a.maps[0] and "http.response.status_code" in a.maps[0] and a.maps[0]["http.status_code"][0] == "i":
        metrics["http.status_code"] = a.maps[0]["http.status_code"][1]
    env, version_ = tag_value(a.str("deployment.environment.name", "deployment.environment")), tag_value(a.str("service.version"))
    if v1:
        for k, v in (("env", a.str("env") if "env" in a.maps[0] else env or a.str("env")), ("version", a.str("version") if "version" in a.maps[0] else version_),
                     ("component", a.str("component"))):
            if v:
                meta[k] = v
        if s["kind"]:
            meta["span.kind"] = KINDS[s["kind"]]
    for k, v in ctx:
        put_attr(k, v, True)
    if not v1:
        if env:
            put("env", env)
        if version_:
            put("version", version_)
    service = a.str("service.name") or "otlpresourcenoservicename"
    return {"service": tag_value(cut(service, 100)), "name": cut(name_of(a, s["kind"]), 100), "resource": cut(resource_of(a, s), 5000),
            "type": cut(type_of(a, s["kind"]), 100), "trace_id": int.from_bytes(s["trace_id"][8:], "big"), "span_id": int.from_bytes(s["span_id"], "big"),
            "parent_id": int.from_bytes(s["parent"] or b"\0", "big"), "start": s["start"], "duration": s["end"] - s["start"],
            "error": int(s["status"] == 2), "meta": meta, "metrics": metrics}


def inherited(span):
    """(priority, decision maker) of tracestate's dd= member, unless the sampled flag says otherwise."""
    members = dict(m.strip().split("=", 1) for m in text(span["state"]).split(",") if "=" in m)
    fields = dict(f.split(":", 1) for f in members.get("dd", "").split(";") if ":" in f)
    if not re.fullmatch(r"-?[0-9]+", fields.get("s", "")) or abs(int(fields["s"])) > 127:
        return None, ""
    n = int(fields["s"])
    return (n, fields.get("t.dm", "")) if (n > 0) == bool(span["flags"] & 1) else (None, "")


def expected_chunks(version, batch):
    """[(trace id, priority, dm, [(rs, ss, span)])], in order."""
    out = []
    for rs in batch:
        traces = {}
        for ss in rs["scopes"]:
            for s in ss["spans"]:
                traces.setdefault(s["trace_id"], []).append((rs, ss, s))
        for tid, spans in traces.items():
            priority, dm = None, ""
            for _, _, s in spans:
                n = number(Attrs(s["attrs"], []).any("sampling.priority"))
                if n is not None and priority is None:
                    priority, dm = int(n), "-4" if n > 0 else ""
            if priority is None:
                priority, dm = inherited(spans[0][2])
            if priority is None and not is_datadogs(spans[0][2]):
                priority, dm = 1, "-9"
            out.append((tid, priority, dm, spans))
    return out


def same_event_value(version, got, v):
    k = v[0]
    if k in "bis":
        return got == (cut(text(v[1]), 25000) if k == "s" else v[1]) and type(got) is {"b": bool, "i": int, "s": str}[k]
    if k == "d":
        return type(got) is float and same_number(got, v[1])
    if k == "a":
        kinds = {x[0] for x in v[1]}
        if kinds <= set("bisd") and (version == "datadog-v1" or len(kinds) <= 1):
            return type(got) is list and len(got) == len(v[1]) and all(same_event_value(version, g, x) for g, x in zip(got, v[1]))
    return same_text(got, as_text(v))


def check_span(version, got, rs, ss, s):
    want = expected(version, rs, ss, s)
    for k, v in want.items():
        if k not in ("meta", "metrics"):
            need(got[k] == v, k, got[k], v)
    need(got["meta"].keys() == want["meta"].keys(), "meta", sorted(got["meta"].keys() ^ want["meta"].keys())[:8])
    for k, v in want["meta"].items():
        ok = got["meta"][k] is v if type(v) is bool else same_text(got["meta"][k], cut(v, 25000) if type(v) is str else v)
        need(ok, "meta", k, str(got["meta"][k])[:100], str(v)[:100])
    need(got["metrics"].keys() == want["metrics"].keys(), "metrics", got["metrics"].keys() ^ want["metrics"].keys())
    for k, v in want["metrics"].items():
        need(same_number(got["metrics"][k], v) and type(got["metrics"][k]) is type(v), "metrics", k, got["metrics"][k], v)
    check_links(version, got, s)
    check_events(version, got, s)


def check_links(version, got, s):
    as_json = version in ("datadog-v0.4-json", "datadog-v0.5")
    have = got.get("links_json", []) if as_json else got["links"] or []
    need(len(have) == len(s["links"]) or (as_json and len(have) < len(s["links"])), "links", len(have))
    if len(have) < len(s["links"]):
        size = len(json.dumps(have, ensure_ascii=False, separators=(",", ":")).encode())
        l = s["links"][len(have)]
        following = len(json.dumps([text(l["state"]), {text(k): str(as_text(v)) for k, v in l["attrs"]}], ensure_ascii=False).encode()) + 180
        need(size + following > 24500, "links end early", size, following)
    for g, l in zip(have, s["links"]):
        if as_json:
            need(g["trace_id"] == l["trace_id"].hex() and g["span_id"] == l["span_id"].hex(), "link ids")
            need(g.get("flags", 0) == l["flags"] & 255 and g.get("dropped_attributes_count", 0) == l["dropped"], "link flags")
        else:
            need(g["trace_id"] == int.from_bytes(l["trace_id"], "big") and g["span_id"] == int.from_bytes(l["span_id"], "big"), "link ids")
            need(g["flags"] == (l["flags"] & 255 | 1 << 31 if l["flags"] else 0), "link flags")
        need(g.get("tracestate", "") == text(l["state"]), "link tracestate")
        attrs = g.get("attributes", {})
        need(attrs.keys() == {text(k) for k, _ in named(l["attrs"])}, "link attributes")
        for k, v in named(l["attrs"]):
            need(same_text(attrs[text(k)], as_text(v)), "link attribute", k, attrs[text(k)][:80])


def check_events(version, got, s):
    as_json = version in ("datadog-v0.4-json", "datadog-v0.5")
    have = got.get("events_json", []) if as_json else got["events"] or []
    need(len(have) == len(s["events"]) or (as_json and len(have) < len(s["events"])), "events", len(have))
    if len(have) < len(s["events"]):
        e = s["events"][len(have)]
        size = len(json.dumps(have, ensure_ascii=False, separators=(",", ":")).encode())
        following = len(json.dumps([text(e["name"]), {text(k): plain(v) for k, v in e["attrs"]}], ensure_ascii=False).encode()) + 120
        need(size + following > 24500, "events end early", size, following)
    for g, e in zip(have, s["events"]):
        need(g["time_unix_nano" if as_json else "time"] == e["time"] and g["name"] == text(e["name"]), "event", g["name"])
        attrs = g.get("attributes", {})
        need(attrs.keys() == {text(k) for k, _ in named(e["attrs"])}, "event attributes", attrs.keys())
        for k, v in named(e["attrs"]):
            if as_json:
                need(same_json(attrs[text(k)], plain(v)), "event attribute", k, v)
            else:
                need(same_event_value(version, attrs[text(k)], v), "event attribute", k, v, attrs[text(k)])


def check(version, data, batch):
    """Everything. Returns the number of spans."""
    got, want, n = decode(version, data), expected_chunks(version, batch), 0
    need(len(got) == len(want), "chunks", len(got), len(want))
    for c, (tid, priority, dm, spans) in zip(got, want):
        need(c["tid"] == int.from_bytes(tid[:8], "big"), "upper half")
        need(c["priority"] == priority and c["dm"] == dm, "priority", c["priority"], c["dm"], priority, dm)
        need(len(c["spans"]) == len(spans), "spans of a chunk")
        for g, (rs, ss, s) in zip(c["spans"], spans):
            check_span(version, g, rs, ss, s)
            n += 1
    return n
