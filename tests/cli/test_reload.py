# SPDX-License-Identifier: Apache-2.0
"""What a reload does with exporters."""
import http.server
import json
import os
import socket
import threading

from common import Agent, can_capture, Collector, Dir, fails, needs_capture, ringspan, Server, status
from suite import expect, wait_until


class Keyed(Collector):
    """Knows by which keys it was asked."""
    def do_POST(self):
        self.server.keys.append(self.headers[self.server.key_header])
        super().do_POST()


def test_reload_moves_exporters():
    """Another endpoint, other headers: what waits goes there, nothing is lost; other exporters need a restart."""
    needs_capture()
    with (Dir() as d, Server() as web, socket.create_server(("127.0.0.1", 0)) as mute,
          http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keyed) as backend):
        backend.posts, backend.keys, backend.key_header = 0, [], "X-Key"
        threading.Thread(target=backend.serve_forever, daemon=True).start()
        there = f"http://127.0.0.1:{backend.server_address[1]}"

        def reload(text):
            d("c.yaml", text)
            done = ringspan("reload", "--json", "--socket", d("s"))
            answer = json.loads(done.stdout)
            return done.returncode, answer["error"], answer["applied"], answer["restart"]

        def exporter():
            return status(d("s"))["exporters"][0]

        def sends(n):
            for _ in range(n):
                web.get()
            wait_until("what was asked for is sent", lambda: exporter()["sent"] >= before + 2 * n and not exporter()["queued"])

        d("c.yaml", f"exporter: otlp-http\nendpoint: http://127.0.0.1:{mute.getsockname()[1]}\n")
        with Agent("run", "-c", d("c.yaml"), "--socket", d("s"), "--pid", str(os.getpid()), "--port", str(web.port),
                   "--batch-age", "10ms") as a:
            before = 0
            for _ in range(8):
                web.get()
            wait_until("16 spans wait", lambda: exporter()["queued"] == 16)
            code, error, *_ = reload("exporter: otlp-http\nendpoint: 'ftp://x'\nothers: skip\n")
            expect(code == 1 and "exporter otlp-http: the endpoint" in error, (code, error))
            expect(exporter()["queued"] == 16 and str(mute.getsockname()[1]) in exporter()["target"], exporter())
            done = reload(f"exporter: otlp-http\nendpoint: {there}\notlp-headers: X-Key=one\ncompression: gzip\n")
            expect(done == (0, "", ["endpoint", "otlp-headers", "compression"], []), done)
            sends(0)
            expect(exporter()["sent"] == 16 and exporter()["failed"] == 0, exporter())
            # Twice, so that nothing is left of the settings that were read at first.
            for key in ("two", "three"):
                before = exporter()["sent"]
                done = reload(f"exporter: otlp-http\nendpoint: {there}\notlp-headers: X-Key={key}\ncompression: gzip\n")
                expect(done == (0, "", ["otlp-headers"], []), done)
                sends(1)
            done = reload("exporter: zipkin\nendpoint: http://127.0.0.1:1/\notlp-headers: X-Key=four\nmax-events: 7\n")
            expect(done == (0, "", ["max-events"], ["exporter", "endpoint", "otlp-headers", "compression"]), done)
            for i in range(3):
                done = reload(f"exporter: zipkin\nmax-events: {i}\n")
                expect(done[2] == ["max-events"], done)
            before = exporter()["sent"]
            sends(1)
            keys = [k for i, k in enumerate(backend.keys) if not i or backend.keys[i - 1] != k]
            expect(keys == ["one", "two", "three"], keys)
            code, said, _ = a.end()
            expect(code == 0 and "nothing lost" in said, f"{code}: {said}")
        backend.shutdown()


def test_reload_moves_sentry():
    """Another DSN, beside an exporter that no reload concerns: what waits goes there, by the new key."""
    needs_capture()
    with (Dir() as d, Server() as web, socket.create_server(("127.0.0.1", 0)) as mute,
          http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keyed) as backend):
        backend.posts, backend.keys, backend.key_header = 0, [], "X-Sentry-Auth"
        threading.Thread(target=backend.serve_forever, daemon=True).start()

        def config(name, port, form, events):
            d("c.yaml", f"exporter: sentry,file={d('out')}\nsentry-dsn: http://{name}@127.0.0.1:{port}/7\n"
                        f"sentry-format: {form}\nmax-events: {events}\n")

        def exporter():
            return status(d("s"))["exporters"][0]

        config("first", mute.getsockname()[1], "spans", 5)
        with Agent("run", "-c", d("c.yaml"), "--socket", d("s"), "--pid", str(os.getpid()), "--port", str(web.port),
                   "--batch-age", "10ms") as a:
            web.get()
            wait_until("2 spans wait", lambda: exporter()["queued"] == 2)
            config("second", backend.server_address[1], "transactions", 7)
            o = json.loads(ringspan("reload", "--json", "--socket", d("s")).stdout)
            expect(sorted(o["applied"]) == ["max-events", "sentry-dsn", "sentry-format"] and not o["restart"], o)
            wait_until("they are sent", lambda: exporter()["sent"] == 2)
            web.get()
            wait_until("those that follow too", lambda: exporter()["sent"] == 4)
            expect(exporter()["protocol"] == "envelopes of transactions", exporter())
            expect(all("sentry_key=second" in k for k in backend.keys), backend.keys)
            code, said, _ = a.end()
            expect(code == 0 and "nothing lost" in said, f"{code}: {said}")
        with open(d("out")) as f:
            expect(sum(line.count('"spanId"') for line in f) == 4, "the file is not whole")
        backend.shutdown()


def test_reload_leaves_exporters():
    """Where to is told of as applied only if an exporter goes there."""
    needs_capture()
    with Dir() as d:
        d("c.yaml", f"exporter: file={d('out')}\nendpoint: http://127.0.0.1:1/1\n")
        with Agent("run", "-c", d("c.yaml"), "--socket", d("s"), "--pid", str(os.getpid())) as a:
            d("c.yaml", f"exporter: file={d('out')}\nendpoint: http://127.0.0.1:2/1\nmax-events: 7\n")
            o = json.loads(ringspan("reload", "--json", "--socket", d("s")).stdout)
            expect(o["applied"] == ["max-events"] and o["restart"] == ["endpoint"], o)
            expect(a.end()[0] == 0, a.said)


def test_certificate_files():
    """A file that cannot be used is told of at the start, by a check and by a reload, not at the first connection."""
    with Dir() as d:
        d("empty.pem", "no certificate\n")
        for option in ("tls-ca", "tls-cert", "tls-key", "k8s-ca"):
            for file, why in ((d("none.pem"), "No such file"), (d("empty.pem"), "there is no PEM in it"),
                              (os.path.dirname(d("x")), "not a regular file")):
                fails(ringspan("run", f"--{option}", file, "--check-config"), 2, f"--{option}: {file}: {why}")
                d("c.yaml", f"{option}: {file}\n")
                fails(ringspan("config", "check", d("c.yaml")), 2, f"c.yaml:1:{len(option) + 3}: {option[4:]}: {file}: {why}")
        d("c.yaml", "port: 1\n")
        if not can_capture():
            return
        fails(ringspan("run", "--tls-ca", d("none.pem"), "--socket", d("s")), 2, "none.pem: No such file")
        with Agent("run", "-c", d("c.yaml"), "--socket", d("s")) as a:
            d("c.yaml", f"port: 1\ntls-ca: {d('empty.pem')}\n")
            fails(ringspan("reload", "--socket", d("s")), 1, "there is no PEM in it")
            d("c.yaml", f"port: 1\nexporter: file={d('out')}\n")
            expect(ringspan("reload", "--socket", d("s")).returncode == 0, "the next one is refused too")
            expect(a.end()[0] == 0, a.said)
