#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exporters against a backend that misbehaves: check_export.py FEED [NAME…].

In each case: sent + lost (each by its cause) + held = produced; what was sent has arrived, what arrived twice is
no more than what is counted as uncertain; no secret is shown. CHAOS_SECONDS sets how long backends stay down (3).
"""
import email.utils
import json
import os
import shutil
import signal
import ssl
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import suite  # noqa: E402
from fake import Answer, Server  # noqa: E402
from suite import Failure, expect, wait_until  # noqa: E402

PORT = suite.free_port()  # one for all cases: a backend that comes back is at the same place
DOWN = float(os.environ.get("CHAOS_SECONDS", 3))
FEED = sys.argv[1] if len(sys.argv) > 1 else ""
RUNNING = []  # of the case at hand
SECRET = "s3cr3t-t0ken"
URL = f"http://127.0.0.1:{PORT}"


def start(spans, rate, *options, first=0, env=None):
    if "--drain-time" not in options:  # that all is done ends it before
        options += ("--drain-time", "60s")
    p = subprocess.Popen([FEED, str(spans), str(rate), str(first), *options], stderr=subprocess.PIPE,
                         stdout=subprocess.DEVNULL, text=True,
                         env=dict(os.environ, OTEL_EXPORTER_OTLP_HEADERS=f"authorization=Bearer%20{SECRET}", **(env or {})))
    RUNNING.append(p)
    return p


def wait_fed(process):
    """Until all spans have been handed over."""
    for line in process.stderr:
        expect(SECRET not in line, "the secret is shown")
        if line == "fed\n":
            return
    raise Failure("feed has ended")


def result(process, timeout=120, said=None):
    _, err = process.communicate(timeout=timeout)
    if said is not None:
        said += [x for x in err.splitlines() if x.startswith("ringspan: ")]
    expect(process.returncode == 0, f"feed ended with {process.returncode}: {err[-2000:]}")
    expect(SECRET not in err, "the secret is shown")
    lines = [x for x in err.splitlines() if x.startswith('{"produced"')]
    expect(len(lines) == 1, f"no report: {err[-2000:]}")
    report = json.loads(lines[0])
    for e in report["exporters"]:
        total = e["sent"] + e["held"] + sum(e["lost"].values())
        expect(total == e["in"], f"{e['name']}: {e['in']} in, {total} accounted for: {e}")
    return report


def run(spans, rate, *options, **more):
    return result(start(spans, rate, *options, **more))


def compare(server, e):
    """What arrived against what the exporter says."""
    counts = Counter(server.received)
    twice = sum(n - 1 for n in counts.values())
    expect(twice <= e["uncertain"], f"{twice} spans arrived twice, {e['uncertain']} are uncertain")
    expect(len(counts) >= e["sent"], f"{e['sent']} sent, {len(counts)} arrived")
    expect(len(counts) <= e["sent"] + e["uncertain"], f"{len(counts)} arrived, only {e['sent']} sent")


def all_sent(server, report, spans):
    e = report["exporters"][0]
    expect(e["sent"] == spans, f"{e['sent']} of {spans} sent: {e}")
    compare(server, e)
    return e


def case_plain():
    for exporter in ("otlp-http", "otlp-http-json"):
        for compression in ("none", "gzip"):
            server = Server(PORT)
            report = run(3000, 20000, "--exporter", f"{exporter}={URL}", "--compression", compression)
            all_sent(server, report, 3000)
            r = server.requests[0]
            expect(r["path"] == "/v1/traces", r["path"])
            expect(r["headers"]["Authorization"] == f"Bearer {SECRET}", "no header from the environment")
            expect(r["headers"]["User-Agent"].startswith("ringspan/"), "user agent")
            expect((r["headers"].get("Content-Encoding") == "gzip") == (compression == "gzip"), "compression")
            server.close()


def case_lone_span():
    """One span leaves within a second (the feed hands it over at once; the agent's batch adds its --batch-age)."""
    server = Server(PORT)
    all_sent(server, run(1, 100, "--exporter", f"otlp-http={URL}"), 1)
    server.close()


def case_environment():
    server = Server(PORT)
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": URL + "/base/", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
           "OTEL_EXPORTER_OTLP_TIMEOUT": "3000", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}
    report = run(10, 1000, env=env)
    expect(report["exporters"][0]["name"] == "otlp-http-json", "protocol from the environment")
    expect(server.requests[0]["path"] == "/base/v1/traces", server.requests[0]["path"])
    report = run(10, 1000, env={"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": URL + "/own/path"})
    expect(server.requests[-1]["path"] == "/own/path", server.requests[-1]["path"])
    report = run(10, 1000, env={"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": URL})
    expect(server.requests[-1]["path"] == "/", server.requests[-1]["path"])
    report = run(10, 1000, env={"OTEL_TRACES_EXPORTER": "none"})
    expect(report["exporters"] == [], "none")
    server.close()


def case_userinfo():
    server = Server(PORT)
    report = run(1, 100, "--exporter", f"otlp-http=http://user:{SECRET}@127.0.0.1:{PORT}/x?key={SECRET}")
    expect(report["exporters"][0]["target"] == f"{URL}/x", report["exporters"][0]["target"])
    expect(server.requests[0]["path"] == f"/x?key={SECRET}", server.requests[0]["path"])
    server.close()


def case_down():
    """Nobody listens at first: all arrives later, nothing twice."""
    n, rate = int(2000 * (DOWN + 1)), 2000
    p = start(n, rate, "--exporter", f"otlp-http={URL}", "--drain-time", "30s")
    time.sleep(DOWN)
    server = Server(PORT)
    said = []
    report = result(p, said=said)
    e = all_sent(server, report, n)
    expect(e["retried"] > 0, "nothing was retried")
    expect(len(said) == 2 and "Couldn't connect" in said[0] and "works again" in said[1], said)
    expect(report["stall_ms"] < 500 * DOWN, f"feeding stood still for {report['stall_ms']} ms")
    server.close()


def case_refusing():
    report = run(2000, 5000, "--exporter", f"otlp-http={URL}", "--drain-time", "1s")
    e = report["exporters"][0]
    expect(e["lost"]["not_sent_at_end"] == 2000, e)
    expect("onnect" in e["error"], e["error"])


def case_queue_full():
    """Bounded while the backend is down: the oldest go, and are counted."""
    server = None
    p = start(20000, 10000, "--exporter", f"otlp-http={URL}", "--queue-spans", "3000", "--drain-time", "30s")
    wait_fed(p)
    server = Server(PORT)
    report = result(p)
    e = report["exporters"][0]
    expect(e["lost"]["queue_full"] >= 12000 and e["sent"] + e["lost"]["queue_full"] == 20000, e)
    newest = format(20000, "016x")
    expect(newest in server.received, "the newest span is gone")
    compare(server, e)
    server.close()


def case_slow():
    server = Server(PORT, lambda n, r: Answer(delay=2.0 if n < 3 else 0))
    report = run(2000, 2000, "--exporter", f"otlp-http={URL}", "--drain-time", "60s")
    all_sent(server, report, 2000)
    expect(report["stall_ms"] < 1500, f"feeding stood still for {report['stall_ms']} ms")
    server.close()


def case_timeout():
    """Answers that come too late: the outcome is not known, spans may arrive twice, and that is counted."""
    server = Server(PORT, lambda n, r: Answer(delay=1.5 if n < 2 else 0))
    report = run(1000, 2000, "--exporter", f"otlp-http={URL}", "--export-timeout", "500ms", "--drain-time", "30s")
    e = all_sent(server, report, 1000)
    expect(e["uncertain"] > 0, "no outcome was uncertain")
    server.close()


def retry_after(status, value):
    first = []

    def answer(n, r):
        if not first:
            first.append(time.monotonic())
        return Answer(status, headers=[("Retry-After", value())]) if time.monotonic() - first[0] < 0.3 else Answer()

    server = Server(PORT, answer)
    report = run(1000, 1000, "--exporter", f"otlp-http={URL}", "--drain-time", "30s")
    all_sent(server, report, 1000)
    times = [r["time"] for r in server.requests]
    refused = [t for t in times if t - times[0] < 0.3]
    quiet = [t for t in times if 0.8 <= t - refused[-1] < 1.8]
    expect(not quiet, f"asked again after {min(quiet) - times[0] if quiet else 0:.2f} s")
    server.close()


def case_retry_after_seconds():
    retry_after(429, lambda: "2")


def case_retry_after_date():
    retry_after(503, lambda: email.utils.formatdate(time.time() + 3, usegmt=True))


def case_retryable_codes():
    for status in (429, 502, 503, 504):
        server = Server(PORT, lambda n, r: Answer(status if n < 2 else 200))
        e = all_sent(server, run(100, 1000, "--exporter", f"otlp-http={URL}", "--drain-time", "30s"), 100)
        expect(e["retried"] > 0, f"{status} was not retried")
        server.close()


def case_permanent_codes():
    for status in (301, 400, 401, 403, 404, 500, 501):
        server = Server(PORT, lambda n, r: Answer(status, body=SECRET.encode()))
        report = run(100, 10000, "--exporter", f"otlp-http={URL}")
        e = report["exporters"][0]
        expect(e["lost"]["rejected"] == 100 and e["retried"] == 0, f"{status}: {e}")
        expect(str(status) in e["error"] or status == 301, f"{status}: {e['error']}")
        server.close()


def case_reset():
    """The connection is reset in the middle of the body."""
    server = Server(PORT, lambda n, r: Answer(reset=1000 if n < 3 else None))
    report = run(3000, 5000, "--exporter", f"otlp-http={URL}", "--drain-time", "30s")
    all_sent(server, report, 3000)
    server.close()


def case_answer_cut_off():
    """200, and the connection ends within the answer's body: the spans have been taken, and are not sent again."""
    server = Server(PORT, lambda n, r: Answer(missing=100))
    report = run(2000, 2000, "--exporter", f"otlp-http={URL}", "--drain-time", "30s")
    all_sent(server, report, 2000)
    expect(len(server.received) == 2000, f"{len(server.received)} spans arrived")
    server.close()


def case_idle_close():
    """Connections are closed after each answer, without a word: no failure, no loss."""
    server = Server(PORT, lambda n, r: Answer(hang_up=True))
    report = run(2000, 2000, "--exporter", f"otlp-http={URL}", "--drain-time", "30s")
    all_sent(server, report, 2000)
    server.close()


def case_partial():
    """Half of the spans rejected: counted, never sent again."""

    def answer(n, r):
        if r["ids"] is None:
            return Answer()
        k = len(r["ids"]) // 2
        return Answer(body=json.dumps({"partialSuccess": {"rejectedSpans": str(k), "errorMessage": "bad " + SECRET}}).encode())

    server = Server(PORT, answer)
    e = run(2000, 10000, "--exporter", f"otlp-http-json={URL}")["exporters"][0]
    rejected = sum(len(r["ids"]) // 2 for r in server.requests)
    expect(e["lost"]["rejected"] == rejected and e["sent"] == 2000 - rejected, e)
    expect(e["retried"] == 0 and len(server.received) == 2000, "spans were sent again")
    expect("rejected" in e["error"], e["error"])
    server.close()


def case_split():
    """413 until a message has 40 spans at most: every span arrives once."""
    for exporter in ("otlp-http", "otlp-http-json", "zipkin"):
        def answer(n, r):
            return Answer(413 if r["ids"] and len(r["ids"]) > 40 else 200)

        server = Server(PORT, answer)
        report = run(2000, 20000, "--exporter", f"{exporter}={URL}", "--drain-time", "30s")
        all_sent(server, report, 2000)
        expect(set(server.received) == {format(i + 1, "016x") for i in range(2000)}, "not the spans that were made")
        server.close()
    server = Server(PORT, lambda n, r: Answer(413))
    e = run(50, 20000, "--exporter", f"otlp-http={URL}")["exporters"][0]
    expect(e["lost"]["too_big"] == 50, e)
    server.close()


def certificates(directory):
    """A CA, a server's and a client's certificate."""
    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, cwd=directory, capture_output=True)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
            "-subj", "/CN=test CA")
    for name in ("server", "client"):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj",
                f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out",
                f"{name}.pem", "-days", "2", "-copy_extensions", "copy")


def case_tls():
    with tempfile.TemporaryDirectory() as d:
        certificates(d)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(d + "/server.pem", d + "/server.key")
        server = Server(PORT, tls=context)
        url = f"otlp-http=https://127.0.0.1:{PORT}"
        e = run(500, 5000, "--exporter", url, "--drain-time", "2s")["exporters"][0]
        expect(e["lost"]["not_sent_at_end"] == 500 and "certificate" in e["error"], e)
        expect(not server.requests, "spans went to a server that is not known")
        all_sent(server, run(500, 5000, "--exporter", url, "--tls-ca", d + "/ca.pem"), 500)
        server.close()
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(d + "/ca.pem")
        server = Server(PORT, tls=context)
        e = run(500, 5000, "--exporter", url, "--tls-ca", d + "/ca.pem", "--drain-time", "1s")["exporters"][0]
        expect(e["lost"]["not_sent_at_end"] == 500, e)
        all_sent(server, run(500, 5000, "--exporter", url, "--tls-ca", d + "/ca.pem", "--tls-cert", d + "/client.pem",
                             "--tls-key", d + "/client.key"), 500)
        server.close()


def case_no_such_host():
    begin = time.monotonic()
    try:
        socket.getaddrinfo("no-such-host.invalid", 4318)
    except socket.gaierror:
        pass
    wait = 1 + 2 * (time.monotonic() - begin)  # name servers may be slow to say no
    report = run(2000, 2000, "--exporter", "otlp-http=http://no-such-host.invalid:4318", "--drain-time", f"{1000 * wait:.0f}ms")
    e = report["exporters"][0]
    expect(e["lost"]["not_sent_at_end"] == 2000 and "resolve" in e["error"], e)
    expect(report["stall_ms"] < 1500, f"feeding stood still for {report['stall_ms']} ms")


def case_unix_socket():
    with tempfile.TemporaryDirectory() as d:
        server = Server(0, unix=d + "/backend.sock")
        report = run(100, 1000, "--exporter", f"otlp-http=unix://{d}/backend.sock")
        e = all_sent(server, report, 100)
        expect(e["target"] == f"unix://{d}/backend.sock", e["target"])
        server.close()


def case_several():
    """One backend is down, the other does not notice."""
    with tempfile.TemporaryDirectory() as d:
        server = Server(PORT)
        report = run(3000, 5000, "--exporter", f"otlp-http={URL},otlp-http-json=http://127.0.0.1:{suite.free_port()},file={d}/out",
                     "--drain-time", "4s")
        by_name = {e["name"]: e for e in report["exporters"]}
        expect(by_name["otlp-http"]["sent"] == 3000, by_name["otlp-http"])
        expect(by_name["otlp-http-json"]["lost"]["not_sent_at_end"] == 3000, by_name["otlp-http-json"])
        expect(by_name["file"]["sent"] == 3000, by_name["file"])
        compare(server, by_name["otlp-http"])
        server.close()


def case_file_rotation():
    with tempfile.TemporaryDirectory() as d:
        e = run(20000, 20000, "--exporter", f"file={d}/out", "--file-max-bytes", "2m", "--file-count", "9")["exporters"][0]
        expect(e["sent"] == 20000, e)
        ids, files = [], sorted(os.listdir(d))
        for name in files:
            expect(os.path.getsize(f"{d}/{name}") <= 2 << 20, f"{name} is too big")
            for line in open(f"{d}/{name}"):
                doc = json.loads(line)
                ids += [s["spanId"] for r in doc["resourceSpans"] for sc in r["scopeSpans"] for s in sc["spans"]]
        expect(len(files) > 2 and len(ids) == len(set(ids)) == 20000, f"{len(files)} files, {len(ids)} spans")
        e = run(20000, 20000, "--exporter", f"file={d}/few", "--file-max-bytes", "1m", "--file-count", "1")["exporters"][0]
        expect(sorted(x for x in os.listdir(d) if x.startswith("few")) == ["few", "few.1"], os.listdir(d))


def small_disk(directory, size):
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", directory]).returncode:
        print("skipped: no small file system can be mounted (needs root)")
        return False
    return True


def case_file_disk_full():
    """Lines stay whole; what did not fit is tried again and in the end counted."""
    with tempfile.TemporaryDirectory() as d:
        if not small_disk(d, "1m"):
            return
        try:
            e = run(10000, 10000, "--exporter", f"file={d}/out", "--drain-time", "500ms")["exporters"][0]
            ids = []
            for line in open(d + "/out"):
                doc = json.loads(line)
                ids += [s["spanId"] for r in doc["resourceSpans"] for sc in r["scopeSpans"] for s in sc["spans"]]
            expect(len(ids) == e["sent"] and 0 < e["sent"] < 10000, e)
            expect("No space" in e["error"], e["error"])
        finally:
            subprocess.run(["umount", "-l", d], check=True)


def case_spool_restart():
    """The backend is down, the agent is killed (-9), starts again: all arrives."""
    with tempfile.TemporaryDirectory() as d:
        options = ("--exporter", f"otlp-http={URL}", "--spool", d, "--drain-time", "30s")
        p = start(100000, 5000, *options)
        wait_until("the spool to grow", lambda: sum(os.path.getsize(f.path) for f in os.scandir(d)) > 1 << 20)
        p.send_signal(signal.SIGKILL)
        p.communicate()
        server = Server(PORT)
        report = run(100, 1000, *options, first=1000000)
        e = report["exporters"][0]
        old = e["in"] - 100
        expect(old > 1000, f"only {old} spans were found in the spool")
        all_sent(server, report, old + 100)
        expect(set(server.received) >= {format(i + 1, "016x") for i in range(old)}, "not the spans that were made")
        expect(not [f for f in os.listdir(d) if f.endswith(".seg")], "the spool is not empty")
        server.close()


def case_spool_kill_while_sending():
    """Killed while spans go out: each arrives; twice only what was on its way."""
    with tempfile.TemporaryDirectory() as d:
        server = Server(PORT, lambda n, r: Answer(delay=0.05))
        options = ("--exporter", f"otlp-http={URL}", "--spool", d, "--drain-time", "30s")
        p = start(100000, 10000, *options)
        wait_until("spans to arrive", lambda: len(server.received) > 5000)
        p.send_signal(signal.SIGKILL)
        p.communicate()
        time.sleep(0.3)
        report = run(100, 1000, *options, first=1000000)
        counts = Counter(server.received)
        numbers = sorted(int(i, 16) for i in counts if int(i, 16) <= 1000000)
        expect(numbers == list(range(1, len(numbers) + 1)), "spans are missing")
        twice = sum(n - 1 for n in counts.values())
        expect(twice <= 4 * 512, f"{twice} spans arrived twice")
        expect(report["exporters"][0]["held"] == 0, report)
        server.close()


def case_spool_stop():
    """An orderly end with the backend down: spans stay in the spool, held and not lost."""
    with tempfile.TemporaryDirectory() as d:
        options = ("--exporter", f"otlp-http={URL}", "--spool", d)
        e = run(3000, 10000, *options, "--drain-time", "200ms")["exporters"][0]
        expect(e["held"] == 3000 and not sum(e["lost"].values()), e)
        server = Server(PORT)
        all_sent(server, run(0, 1, *options, "--drain-time", "30s"), 3000)
        server.close()


def case_spool_bounded():
    with tempfile.TemporaryDirectory() as d:
        options = ("--exporter", f"otlp-http={URL}", "--spool", d, "--spool-bytes", "2m", "--queue-bytes", "1m")
        e = run(30000, 15000, *options, "--drain-time", "100ms")["exporters"][0]
        expect(e["spool_bytes"] <= 2 << 20, e)
        expect(e["lost"]["queue_full"] > 0 and e["held"] > 0, e)
        server = Server(PORT)
        all_sent(server, run(0, 1, *options, "--drain-time", "30s"), e["held"])
        expect(format(30000, "016x") in server.received, "the newest span is gone")
        server.close()


def case_spool_damaged():
    """A damaged message is counted, the others arrive; a torn end is cut off."""
    with tempfile.TemporaryDirectory() as d:
        options = ("--exporter", f"otlp-http={URL}", "--spool", d)
        run(3000, 10000, *options, "--drain-time", "100ms")
        segment = next(f"{d}/{f}" for f in os.listdir(d) if f.endswith(".seg"))
        with open(segment, "r+b") as f:
            f.seek(2000)
            f.write(b"XXXX")
        size = os.path.getsize(segment)
        os.truncate(segment, size - 100)
        server = Server(PORT)
        e = run(0, 1, *options, "--drain-time", "30s")["exporters"][0]
        expect(e["lost"]["gave_up"] > 0 and e["sent"] == len(set(server.received)) > 1000, e)
        server.close()


def case_spool_disk_full():
    with tempfile.TemporaryDirectory() as d:
        if not small_disk(d, "1m"):
            return
        try:
            p = start(10000, 10000, "--exporter", f"otlp-http={URL}", "--spool", d, "--drain-time", "30s")
            wait_fed(p)
            server = Server(PORT)
            all_sent(server, result(p), 10000)
            server.close()
        finally:
            subprocess.run(["umount", "-l", d], check=True)


def closing(case):
    def call():
        try:
            case()
        finally:
            for process in RUNNING:
                process.kill()
                process.wait()
            RUNNING.clear()
            for server in Server.running[:]:
                server.close()
    return call


def main():
    if not shutil.which("openssl"):
        sys.exit("no openssl to make certificates with")
    return suite.run([(name[5:], closing(case)) for name, case in globals().items() if name.startswith("case_")], sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
