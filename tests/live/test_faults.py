# SPDX-License-Identifier: Apache-2.0
"""Things that go wrong: crashes, aborts, resets. Spans end with error.type and never invent a status."""
import os
import signal
import socket
import time

from harness import CLIENT, SERVER, Failure, LiveTest, Nginx, Wire, node, python, stop, wait_until


class Faults(LiveTest):
    def one(self, spans, kind, pids, prefix):
        found = spans.where(kind, pids, prefix)
        self.assertEqual(len(found), 1, f"{kind} spans of {prefix}: {found}")
        return found[0]

    def check_dies(self, make):
        """The server is killed after half of a response."""
        process, port, _ = make(self.place)
        agent = self.agent(everybody=True)
        wire = Wire(("127.0.0.1", int(port)))
        wire.get("/s/200?before")
        with self.assertRaises((Failure, OSError)):
            wire.get("/die")
        wire.close()
        process.wait()
        spans = agent.stop()
        server = self.one(spans, SERVER, {process.pid}, "/die")
        client = self.one(spans, CLIENT, {os.getpid()}, "/die")
        for span in (server, client):
            self.assertEqual(span.status, 200, "the status was on the wire")
            self.assertTrue(span.error)
            self.assertNotEqual(span.error, "200")
        self.assertTrue(server.failed)
        self.assertEqual(self.one(spans, SERVER, {process.pid}, "/s/200").error, None)

    def test_server_dies_in_mid_response_node(self):
        self.check_dies(node)

    def test_server_dies_in_mid_response_python(self):
        self.check_dies(python)

    def check_segv(self, make):
        """SIGSEGV with a request open: an event on the request's span, no status."""
        process, port, _ = make(self.place)
        agent = self.agent()
        wire = Wire(("127.0.0.1", int(port)))
        with self.assertRaises((Failure, OSError)):
            wire.get("/segv")
        wire.close()
        process.wait()
        self.assertEqual(process.returncode, -signal.SIGSEGV)
        spans = agent.stop()
        server = self.one(spans, SERVER, {process.pid}, "/segv")
        client = self.one(spans, CLIENT, {os.getpid()}, "/segv")
        for span in (server, client):
            self.assertIsNone(span.status)
            self.assertTrue(span.error)
        self.assertTrue([n for n in server.event_names if "signal" in n or "exit" in n], server.event_names)

    def test_segv_with_a_request_open_node(self):
        self.check_segv(node)

    def test_segv_with_a_request_open_python(self):
        self.check_segv(python)

    def test_client_gives_up(self):
        """The client closes before the answer; the server answers into the void or is told."""
        process, port, _ = node(self.place)
        agent = self.agent()
        wire = Wire(("127.0.0.1", int(port)))
        wire.send("GET /slow/100000 HTTP/1.1\r\nHost: a\r\n\r\n")
        wire.wait_read()
        wire.close()
        agent.wait_for("the client's span", lambda s: s.kind == CLIENT and s.target == "/slow/100000")
        spans = agent.stop()
        client = self.one(spans, CLIENT, {os.getpid()}, "/slow/100000")
        self.assertIsNone(client.status)
        self.assertTrue(client.error)
        self.assertLess(client.ms, 100000)
        self.assertLessEqual(len(spans.where(SERVER, {process.pid}, "/slow/100000")), 1)

    def test_client_resets(self):
        process, port, _ = node(self.place)
        agent = self.agent()
        wire = Wire(("127.0.0.1", int(port)))
        wire.send("GET /slow/100000 HTTP/1.1\r\nHost: a\r\n\r\n")
        wire.wait_read()
        wire.reset()
        agent.wait_for("the server's span", lambda s: s.kind == SERVER and s.target == "/slow/100000")
        spans = agent.stop()
        server = self.one(spans, SERVER, {process.pid}, "/slow/100000")
        self.assertIsNone(server.status)
        self.assertTrue(server.error)
        self.assertLess(server.ms, 100000)
        self.assertTrue([n for n in server.event_names if "reset" in n], server.event_names)

    def test_client_stops_in_mid_upload(self):
        nginx = Nginx(self.place)
        agent = self.agent()
        wire = Wire(("127.0.0.1", nginx.port))
        wire.send("POST /f/1k.txt?upload HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nonly this")
        wire.wait_read()
        wire.close()
        wait_until("the access log", lambda: nginx.log.count() >= 1)
        spans = agent.stop()
        row = nginx.log.rows()[0]
        server = self.one(spans, SERVER, nginx.pids, "/f/1k.txt?upload")
        self.assertEqual(server.status, int(row[2]) if row[5] != "0" else None)
        client = self.one(spans, CLIENT, {os.getpid()}, "/f/1k.txt?upload")
        self.assertTrue(client.error or client.status)

    def test_early_answer(self):
        """405 is sent while the upload still goes on; the next request on the connection is in step."""
        nginx = Nginx(self.place)
        agent = self.agent()
        wire = Wire(("127.0.0.1", nginx.port))
        body = b"b" * 300000
        wire.send(b"PUT /f/1k.txt?early HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n" + body[:1000])
        self.assertEqual(wire.response(), 405)
        wire.send(body[1000:])
        self.assertEqual(wire.get("/s/200?after"), 200)
        spans = agent.stop()
        self.assertEqual(self.one(spans, SERVER, nginx.pids, "/f/1k.txt?early").status, 405)
        self.assertEqual(self.one(spans, SERVER, nginx.pids, "/s/200?after").status, 200)
        self.assertEqual(self.one(spans, CLIENT, {os.getpid()}, "/s/200?after").status, 200)

    def test_nobody_answers(self):
        """A server that accepts and closes without a word."""
        listener = socket.create_server(("127.0.0.1", 0))
        agent = self.agent()
        wire = Wire(listener.getsockname())
        wire.send("GET /silence HTTP/1.1\r\nHost: a\r\n\r\n")
        other, _ = listener.accept()
        other.recv(4096)
        other.close()
        self.assertEqual(wire.sock.recv(10), b"")
        wire.close()
        listener.close()
        spans = agent.stop()
        for kind in (SERVER, CLIENT):
            span = self.one(spans, kind, {os.getpid()}, "/silence")
            self.assertIsNone(span.status)
            self.assertTrue(span.error)

    def test_head_split_byte_by_byte(self):
        nginx = Nginx(self.place)
        agent = self.agent()
        wire = Wire(("127.0.0.1", nginx.port))
        wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"GET /s/404?slowly HTTP/1.1\r\nHost: a\r\nX-Long: " + b"h" * 300 + b"\r\n\r\n":
            wire.send(bytes([byte]))
        self.assertEqual(wire.response(), 404)
        spans = agent.stop()
        self.assertEqual(self.one(spans, SERVER, nginx.pids, "/s/404?slowly").status, 404)
        self.assertEqual(self.one(spans, CLIENT, {os.getpid()}, "/s/404?slowly").status, 404)

    def test_agent_killed_leaves_nothing(self):
        """kill -9: no program, map or pin of ours stays."""
        import subprocess

        def ours():
            import json
            found = []
            for what in ("prog", "map", "link"):
                text = subprocess.run(["bpftool", "-j", what, "list"], stdout=subprocess.PIPE, text=True).stdout
                found += [(what, row["id"]) for row in json.loads(text or "[]")
                          if agent.process.pid in [p.get("pid") for p in row.get("pids", [])]
                          or str(row.get("name", "")).startswith("rs_")]
            return set(found)

        class Nobody:
            class process:
                pid = -1
        agent = Nobody
        before = ours()
        agent = self.agent()
        started = ours()
        self.assertTrue(started - before, "bpftool sees the agent's programs")
        agent.process.send_signal(signal.SIGKILL)
        agent.process.wait()
        agent.process.stdout = agent.process.stderr = None
        # Programs of other agents on this machine may come and go: only those of the killed one count.
        wait_until("the kernel to drop all programs and maps", lambda: not (ours() & (started - before)))
        pins = subprocess.run(["find", "/sys/fs/bpf", "-name", "*ringspan*"], stdout=subprocess.PIPE, text=True).stdout
        self.assertEqual(pins, "")
        # A second agent takes the stale socket over.
        again = self.agent()
        again.stop()

    def test_agent_ends_within_a_second(self):
        nginx = Nginx(self.place)
        for sig in (signal.SIGTERM, signal.SIGINT):
            agent = self.agent(name=f"agent{int(sig)}")
            wire = Wire(("127.0.0.1", nginx.port))
            wire.get("/s/200?last")
            begin = time.monotonic()
            self.assertEqual(stop(agent.process, sig), 0)
            self.measured(f"signal {int(sig)}: ended after {time.monotonic() - begin:.2f} s")
            from harness import Spans
            self.assertEqual(len(Spans.load(agent.out).where(SERVER, nginx.pids, "/s/200?last")), 1)
            wire.close()
