#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exporters against the real receivers, field by field: check_receivers.py FEED [NAME…].

An OpenTelemetry Collector is built from Go modules (tests/collector), the Datadog test agent comes from PyPI, into
build/receivers. What cannot be had is skipped, visibly. What was sent is known from exporter `file`, which gets the
same spans. CHECK_PORT: the first of 20 ports used.
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import suite  # noqa: E402
from check_export import certificates  # noqa: E402
from suite import Failure, expect  # noqa: E402
from fake import Answer, Server  # noqa: E402

PORT = int(os.environ.get("CHECK_PORT", 28600))
FEED = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
PLACE = os.path.abspath("build/receivers")
CHECKS = "trace_count_header,meta_tracer_version_header,trace_content_length,meta_events_is_valid_json"


class Skipped(unittest.SkipTest):
    pass


def command(*argv, **more):
    done = subprocess.run(argv, capture_output=True, text=True, **more)
    if done.returncode:
        raise Skipped(f"{argv[0]} {argv[1] if len(argv) > 1 else ''}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def collector():
    if suite.go_program("collector"):
        raise Skipped(suite.go_program("collector"))
    return os.path.abspath("build/collector")


def test_agent():
    path = PLACE + "/venv/bin/ddapm-test-agent"
    if not os.path.exists(path):
        os.makedirs(PLACE, exist_ok=True)
        command(sys.executable, "-m", "venv", PLACE + "/venv", timeout=300)
        command(PLACE + "/venv/bin/pip", "install", "-q", "ddapm-test-agent", timeout=600)
    return path


def wait_for(port, process):
    for _ in range(200):
        if process.poll() is not None:
            raise Failure(f"the receiver ended with {process.returncode}")
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise Failure("the receiver does not listen")


def feed(spans, exporter, reference, *options):
    done = subprocess.run([FEED, str(spans), "20000", "0", "--exporter", f"{exporter},file={reference}", "--file-max-bytes",
                           "0", *options], capture_output=True, text=True, timeout=120)
    expect(done.returncode == 0, done.stderr[-1000:])
    report = json.loads(next(x for x in done.stderr.splitlines() if x.startswith('{"produced"')))
    for e in report["exporters"]:
        expect(e["sent"] == spans, e)
    return report["exporters"][0]


# -- OTLP --


def attributes(items):
    return {a["key"]: json.dumps(a["value"], sort_keys=True) for a in items or []}


def plain(x):
    """Numbers as texts, absent and empty alike, attribute order of no meaning."""
    if isinstance(x, dict):
        return {k: attributes(v) if k == "attributes" else plain(v) for k, v in x.items() if v not in ("", [], {}, 0, "0")}
    if isinstance(x, list):
        return [plain(v) for v in x]
    return str(x) if isinstance(x, (int, float)) and not isinstance(x, bool) else x


def read_otlp(path):
    spans = {}
    for line in open(path):
        for r in json.loads(line)["resourceSpans"]:
            for sc in r["scopeSpans"]:
                for s in sc["spans"]:
                    expect(s["spanId"] not in spans, f"span {s['spanId']} is there twice")
                    spans[s["spanId"]] = plain({**s, "resource": r["resource"], "scope": sc["scope"],
                                                "schema": [r.get("schemaUrl"), sc.get("schemaUrl")]})
    return spans


def compare(sent, got):
    expect(len(sent) > 0 and sent.keys() == got.keys(), f"{len(sent)} spans sent, {len(got)} arrived")
    for key, span in sent.items():
        for field in span.keys() | got[key].keys():
            expect(span.get(field) == got[key].get(field), f"span {key}: {field}: {span.get(field)} became {got[key].get(field)}")


CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:{grpc}"{tls}}}
      http: {{endpoint: "127.0.0.1:{http}"{tls}}}
  zipkin: {{endpoint: "127.0.0.1:{zipkin}"}}
exporters:
  file: {{path: "{out}", flush_interval: 100ms}}
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: error}}}}
  pipelines:
    traces: {{receivers: [otlp, zipkin], exporters: [file]}}
"""


class Collector:
    def __init__(self, directory, tls=False):
        self.out = directory + "/collector.jsonl"
        pair = f'tls: {{cert_file: "{directory}/server.pem", key_file: "{directory}/server.key", client_ca_file: "{directory}/ca.pem"}}'
        with open(directory + "/config.yaml", "w") as f:
            f.write(CONFIG.format(grpc=PORT, http=PORT + 1, zipkin=PORT + 2, out=self.out, tls=", " + pair if tls else ""))
        self.process = subprocess.Popen([collector(), "--config", "file:" + directory + "/config.yaml"],
                                        stdout=subprocess.DEVNULL, stderr=open(directory + "/log", "w"))
        wait_for(PORT + 1, self.process)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        return self.out


def with_collector(exporters, tls=False, options=()):
    for exporter, port in exporters:
        for compression in ("none", "gzip"):
            with tempfile.TemporaryDirectory() as d:
                if tls:
                    certificates(d)
                    options = ("--tls-ca", d + "/ca.pem", "--tls-cert", d + "/client.pem", "--tls-key", d + "/client.key")
                c = Collector(d, tls)
                scheme = "https" if tls else "http"
                try:
                    feed(3000, f"{exporter}={scheme}://127.0.0.1:{port}", d + "/sent", "--compression", compression, *options)
                finally:
                    c.stop()
                compare(read_otlp(d + "/sent"), read_otlp(c.out))


ALL_OTLP = [("otlp-grpc", PORT), ("otlp-http", PORT + 1), ("otlp-http-json", PORT + 1)]


def case_otlp():
    with_collector(ALL_OTLP)


def case_otlp_mtls():
    with_collector(ALL_OTLP, tls=True)


def case_otlp_zstd():
    with tempfile.TemporaryDirectory() as d:
        c = Collector(d)
        try:
            feed(3000, f"otlp-http=http://127.0.0.1:{PORT + 1}", d + "/sent", "--compression", "zstd")
        finally:
            c.stop()
        compare(read_otlp(d + "/sent"), read_otlp(c.out))


def case_zipkin():
    """The collector's Zipkin receiver turns it back into OTLP: what Zipkin can say must have survived."""
    with tempfile.TemporaryDirectory() as d:
        c = Collector(d)
        try:
            feed(3000, f"zipkin=http://127.0.0.1:{PORT + 2}", d + "/sent")
        finally:
            c.stop()
        sent, got = read_otlp(d + "/sent"), read_otlp(c.out)
        expect(sent.keys() == got.keys(), f"{len(sent)} spans sent, {len(got)} arrived")
        for key, s in sent.items():
            g = got[key]
            for field in ("traceId", "parentSpanId", "kind"):
                expect(s.get(field) == g.get(field), f"span {key}: {field}: {s.get(field)} became {g.get(field)}")
            expect(s["name"].lower() == g["name"], f"span {key}: {s['name']} became {g['name']}")
            expect(int(s["startTimeUnixNano"]) // 1000 == int(g["startTimeUnixNano"]) // 1000, f"span {key}: start")
            expect((s.get("status") or {}).get("code") == (g.get("status") or {}).get("code"), f"span {key}: status")
            expect(len(s.get("events", [])) == len(g.get("events", [])), f"span {key}: events")


# -- Datadog --


def get(url, unix=None):
    if not unix:
        return json.loads(urllib.request.urlopen(url, timeout=10).read())
    return json.loads(command("curl", "-s", "--unix-socket", unix, url.replace(f"127.0.0.1:{PORT + 5}", "localhost")))


def datadog(version, unix):
    with tempfile.TemporaryDirectory() as d:
        sock = d + "/apm.socket" if unix else None
        argv = [test_agent(), "-p", str(PORT + 5), "--otlp-http-port", str(PORT + 6), "--otlp-grpc-port", str(PORT + 7)]
        agent = subprocess.Popen(argv + (["--trace-uds-socket", sock] if unix else []), cwd=d, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, env=dict(os.environ, ENABLED_CHECKS=CHECKS))
        base = f"http://127.0.0.1:{PORT + 5}"
        try:
            if unix:
                for _ in range(200):
                    if os.path.exists(sock):
                        break
                    time.sleep(0.1)
            else:
                wait_for(PORT + 5, agent)
            e = feed(2000, f"datadog={'unix://' + sock if unix else base}", d + "/sent", "--dd-protocol", version)
            expect(e["protocol"].startswith("v" + {"auto": "1.0"}.get(version, version)), f"{e['protocol']}: {e['error']}")
            for check, result in get(base + "/test/trace_check/summary", sock).items():
                expect(not result["Failed_Checks"] and not result["Skipped_Checks"], f"{check}: {result}")
            got = {s["span_id"]: s for chunk in get(base + "/test/traces", sock) for s in chunk}
        finally:
            agent.terminate()
            agent.wait(30)
        sent = read_otlp(d + "/sent")
        expect({int(k, 16) for k in sent} == got.keys(), f"{len(sent)} spans sent, {len(got)} arrived")
        for key, s in sent.items():
            g = got[int(key, 16)]
            where = f"span {key}"
            expect(g["trace_id"] & (1 << 64) - 1 == int(s["traceId"][16:], 16), f"{where}: trace id {g['trace_id']}")
            expect((g.get("parent_id") or 0) == int(s.get("parentSpanId", "0"), 16), f"{where}: parent {g.get('parent_id')}")
            expect(g["start"] == int(s["startTimeUnixNano"]), f"{where}: start {g['start']}")
            expect(g["duration"] == int(s["endTimeUnixNano"]) - int(s["startTimeUnixNano"]), f"{where}: duration")
            expect(bool(g.get("error")) == ((s.get("status") or {}).get("code") == "2"), f"{where}: error {g.get('error')}")
            expect(g["service"] == "feed", f"{where}: service {g['service']}")
            meta = g.get("meta") or {}
            has_link = "span_links" in g and g["span_links"] or "_dd.span_links" in meta
            has_event = "span_events" in g and g["span_events"] or "events" in meta
            expect(bool(has_link) == bool(s.get("links")), f"{where}: links")
            expect(bool(has_event) == bool(s.get("events")), f"{where}: events")


def case_datadog_v04():
    datadog("0.4", False)


def case_datadog_v05():
    datadog("0.5", False)


def case_datadog_v1():
    datadog("auto", False)


def case_datadog_unix():
    datadog("auto", True)
    datadog("0.4", True)


# -- Sentry --

HEX32, HEX16 = re.compile(r"^[0-9a-f]{32}$"), re.compile(r"^[0-9a-f]{16}$")
TYPES = {"string": str, "boolean": bool, "integer": int, "double": (int, float)}


def read_envelope(body):
    """Strictly: header line, then items of header line, `length` bytes and a newline."""
    header, _, rest = body.partition(b"\n")
    items = []
    while rest:
        line, _, rest = rest.partition(b"\n")
        item = json.loads(line)
        expect("type" in item and "length" in item, f"item header {item}")
        payload, rest = rest[: item["length"]], rest[item["length"]:]
        expect(len(payload) == item["length"] and rest[:1] in (b"\n", b""), "an item's length is wrong")
        items.append((item, json.loads(payload)))
        rest = rest[1:]
    return json.loads(header), items


def check_span_v2(s, trace):
    expect(HEX32.match(s["trace_id"]) and HEX16.match(s["span_id"]), f"ids of {s}")
    expect(s["trace_id"] == trace, "a span of another trace")
    expect("parent_span_id" not in s or HEX16.match(s["parent_span_id"]), f"parent of {s}")
    expect(s["status"] in ("ok", "error") and isinstance(s["is_segment"], bool) and s["name"], f"status of {s}")
    expect(0 < s["start_timestamp"] <= s["end_timestamp"], f"times of {s}")
    for key, a in s["attributes"].items():
        expect(isinstance(a["value"], TYPES[a["type"]]), f"attribute {key}: {a}")
    for link in s.get("links", []):
        expect(HEX32.match(link["trace_id"]) and HEX16.match(link["span_id"]), f"link {link}")


def check_transaction(t, trace):
    expect(t["type"] == "transaction" and HEX32.match(t["event_id"]) and t["transaction"], f"transaction {t}")
    expect(t["contexts"]["trace"]["trace_id"] == trace, "a transaction of another trace")
    expect(t["start_timestamp"] <= t["timestamp"], "times")
    for s in t.get("spans", []):
        expect(HEX16.match(s["span_id"]) and s["trace_id"] == trace and HEX16.match(s["parent_span_id"]), f"span {s}")
    return [t["contexts"]["trace"]["span_id"]] + [s["span_id"] for s in t.get("spans", [])]


def sentry_ids(body, _):
    header, items = read_envelope(body)
    expect(header["trace"]["public_key"] == "abcdef0123456789", f"header {header}")
    ids = []
    for item, payload in items:
        if item["type"] == "span":
            expect(item["content_type"] == "application/vnd.sentry.items.span.v2+json", f"item {item}")
            expect(item["item_count"] == len(payload["items"]) <= 1000, "item_count")
            for s in payload["items"]:
                check_span_v2(s, header["trace"]["trace_id"])
            ids += [s["span_id"] for s in payload["items"]]
        elif item["type"] == "transaction":
            expect(header["event_id"] == payload["event_id"], "event ids differ")
            ids += check_transaction(payload, header["trace"]["trace_id"])
        else:
            expect(item["type"] == "client_report", f"item {item}")
            for e in payload["discarded_events"]:
                expect(e["quantity"] > 0 and e["reason"] and e["category"], f"report {e}")
    return ids


def sentry(form):
    faults = []

    def ids(body, content_type):
        try:
            return sentry_ids(body, content_type)
        except (Failure, KeyError, ValueError) as e:
            faults.append(str(e))
            return []

    with tempfile.TemporaryDirectory() as d:
        server = Server(PORT + 8, ids=ids)
        try:
            feed(2000, f"sentry=http://abcdef0123456789@127.0.0.1:{PORT + 8}/sub/42", d + "/sent", "--sentry-format", form,
                 "--drain-time", "30s")
        finally:
            server.close()
        expect(not faults, faults[:1])
        r = server.requests[0]
        expect(r["path"] == "/sub/api/42/envelope/", r["path"])
        expect("sentry_key=abcdef0123456789" in r["headers"]["X-Sentry-Auth"], r["headers"]["X-Sentry-Auth"])
        expect(sorted(server.received) == sorted(read_otlp(d + "/sent")), f"{len(server.received)} spans arrived")


def case_sentry_spans():
    sentry("spans")


def case_sentry_transactions():
    sentry("transactions")


def case_sentry_limits():
    """A limit in an answer: nothing is sent while it is on; the loss is counted, and told with the next envelope."""
    def answer(n, r):
        return Answer(429, headers=[("X-Sentry-Rate-Limits", "1:span:organization, 60:error:key")]) if n == 0 else Answer()

    server = Server(PORT + 8, answer, ids=sentry_ids)
    done = subprocess.run([FEED, "4000", "1000", "0", "--exporter", f"sentry=http://abcdef0123456789@127.0.0.1:{PORT + 8}/42",
                           "--drain-time", "10s"], capture_output=True, text=True, timeout=60)
    server.close()
    e = json.loads(next(x for x in done.stderr.splitlines() if x.startswith('{"produced"')))["exporters"][0]
    expect(e["lost"]["rate_limited"] > 500 and e["sent"] + sum(e["lost"].values()) == 4000, e)
    gap = [r["time"] - server.requests[0]["time"] for r in server.requests if 0.2 < r["time"] - server.requests[0]["time"] < 0.95]
    expect(not gap, f"sent while limited: {gap[:3]}")
    reported = sum(x["quantity"] for r in server.requests for item, p in read_envelope(r["body"])[1]
                   if item["type"] == "client_report" for x in p["discarded_events"])
    expect(0 < reported <= e["lost"]["rate_limited"], f"{reported} reported, {e['lost']['rate_limited']} lost")


def main():
    return suite.run([(name[5:], case) for name, case in globals().items() if name.startswith("case_")], sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
