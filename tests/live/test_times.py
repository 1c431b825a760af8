# SPDX-License-Identifier: Apache-2.0
"""Where a span begins and ends. Lower bounds only: a busy machine makes everything later, never earlier."""
import os
import time

from harness import CLIENT, SERVER, LiveTest, Nginx, Wire, node, python


class Times(LiveTest):
    def check_slow(self, make):
        process, port, _ = make(self.place)
        agent = self.agent()
        wire = Wire(("127.0.0.1", int(port)))
        for _ in range(20):
            wire.get("/slow/50")
        # The connection stays open: an idle one must not hold its span.
        agent.wait_for("the spans", lambda s: s.target == "/slow/50", 40)
        spans = agent.stop()
        wire.close()
        servers = spans.where(SERVER, {process.pid})
        clients = spans.where(CLIENT, {os.getpid()})
        self.assertEqual((len(servers), len(clients)), (20, 20))
        for side in (servers, clients):
            # A timer may fire a fraction of a millisecond early by the monotonic clock.
            self.assertGreaterEqual(min(s.ms for s in side), 49)
        for server, client in zip(sorted(servers, key=lambda s: s.start), sorted(clients, key=lambda s: s.start)):
            # Either end has the time of its own system call's return: whoever wakes the other may be the one to wait then.
            self.assertLess(client.start, server.end)
            self.assertGreater(client.end, server.start)
        middle = sorted(s.ms for s in servers)[10], sorted(s.ms for s in clients)[10]
        self.measured(f"a 50 ms handler: median {middle[0]:.2f} ms server, {middle[1]:.2f} ms client")

    def test_slow_handler_node(self):
        self.check_slow(node)

    def test_slow_handler_python(self):
        self.check_slow(python)

    def test_sendfile_100_mb_ends_with_its_last_byte(self):
        nginx = Nginx(self.place)
        agent = self.agent()
        wire = Wire(("127.0.0.1", nginx.port))
        wire.send("GET /f/100m.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        wire.head()
        got = len(wire.rest)
        wire.rest = b""
        begin, begin_ns = time.monotonic(), time.time_ns()
        while got < 100 << 20:
            data = wire.sock.recv(1 << 18)
            self.assertTrue(data)
            got += len(data)
            if got < 50 << 20 and time.monotonic() - begin < 0.4:
                time.sleep(0.002)  # a slow reader: the server's end is as late as ours
        last_byte = time.time_ns()
        wire.get("/s/200?next")
        spans = agent.stop()
        server = spans.where(SERVER, nginx.pids, "/f/100m.txt")
        client = spans.where(CLIENT, {os.getpid()}, "/f/100m.txt")
        self.assertEqual((len(server), len(client)), (1, 1))
        for span in (server[0], client[0]):
            self.assertEqual(span.status, 200)
            self.assertEqual(span.attributes.get("http.response.body.size"), 100 << 20)
            # The reader takes 400 ms for the first half, and the kernel holds a few megabytes.
            self.assertGreater(span.end, begin_ns + 300_000_000, "the end is the last byte's time")
        self.assertLess(client[0].end, last_byte + 1_000_000)
        self.measured(f"100 MB by sendfile: ends {(last_byte - server[0].end) / 1e6:.2f} ms (server), "
                      f"{(last_byte - client[0].end) / 1e6:.2f} ms (client) before the reader's own clock")
        self.assertEqual(len(spans.where(SERVER, nginx.pids, "/s/200?next")), 1, "the connection stays in step")
