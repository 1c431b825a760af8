# SPDX-License-Identifier: Apache-2.0
"""What belongs together: both ends of a connection, events on the right span, an SDK's process left alone."""
import collections
import os
import subprocess
import sys

from harness import CLIENT, ROOM, SERVER, SERVERS, SLOW, LiveTest, Nginx, Wire, node, python, wrk


class Traces(LiveTest):
    def test_one_trace_from_end_to_end(self):
        """No context in any header: wrk's span, nginx's, its call's and the next nginx's are one trace."""
        inner = os.path.join(self.place.dir, "back")
        os.makedirs(inner)
        back = Nginx(type("Inner", (), {"dir": inner, "path": staticmethod(lambda n: os.path.join(inner, n)),
                                        "spawn": staticmethod(self.place.spawn)}))
        front = Nginx(self.place, backend=f"127.0.0.1:{back.port}")
        agent = self.agent("--port", str(front.port), "--port", str(back.port), *ROOM)
        wrk(self.place, f"http://127.0.0.1:{front.port}", 1, prefix="t", base="/px")
        spans = [s for s in agent.stop() if s.status is not None]
        by_id = {s.id: s for s in spans}
        ends = collections.Counter()
        for s in spans:
            if s.kind != SERVER:
                continue
            above = by_id.get(s.parent)
            ends["none" if not above else "right" if (above.kind, above.target, above.trace) ==
                 (CLIENT, s.target, s.trace) else "wrong"] += 1
        sizes = collections.Counter(collections.Counter(s.trace for s in spans).values())
        self.measured(f"joined by sequence: {dict(ends)}; spans per trace: {dict(sizes)}")
        self.assertEqual(ends["wrong"], 0)
        self.assertGreater(ends["right"], 100)
        self.assert_most(ends["right"], sum(ends.values()), "joined")
        self.assertEqual(max(sizes), 4)

    def check_unix_ends(self, spans, path, wanted, at_least):
        """Each server span of `at_least` requests and more has the client's span of the same request above it."""
        spans = [s for s in spans if s.raw["attributes"].get("network.peer.address") == path or
                 s.raw["attributes"].get("network.transport") == "unix"]
        clients = {s.id: s for s in spans if s.kind == CLIENT}
        servers = [s for s in spans if s.kind == SERVER]
        self.assertEqual((len(clients), len(servers)), (wanted, wanted))
        joined = [s for s in servers if s.parent]
        self.assert_most(len(joined), at_least, "joined")
        for s in joined:
            self.assertEqual(s.attributes["ringspan.parent.source"], "sequence")
            above = clients.pop(s.parent)
            self.assertEqual((above.target, above.trace), (s.target, s.trace))
            self.assertTrue(above.start < s.end and s.start < above.end)

    def test_both_ends_of_a_unix_socket(self):
        """No context, no sequence numbers: the kernel says which socket is the other end."""
        path = os.path.join(self.place.dir, "app.sock")
        process, _, _ = python(self.place, listen=path)
        agent = self.agent("-p", str(process.pid), "-p", str(os.getpid()))
        wires = [Wire(path) for _ in range(3)]
        for i in range(30):
            wires[i % 3].get(f"/s/200?{i // 3}")  # the same request on each, at the same place of its stream
        self.check_unix_ends(agent.stop(), path, 30, 30)

    def test_both_ends_of_a_unix_socket_that_was_there(self):
        """Where the streams stand is known from when both ends are at rest: from the second request on. On one of them the
        first was under way when the agent came."""
        path = os.path.join(self.place.dir, "app.sock")
        process, _, _ = node(self.place, listen=path)
        wires = [Wire(path) for _ in range(3)]
        for number, wire in enumerate(wires):
            for i in range(number):  # no two have said as much before
                wire.get(f"/s/200?{'before' * i}")
        wires[0].send("GET /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\na")
        agent = self.agent("-p", str(process.pid), "-p", str(os.getpid()))
        wires[0].send("b")
        wires[0].response()
        for i in range(10):
            for wire in wires:
                wire.get(f"/s/200?{i}")
        spans = [s for s in agent.stop() if s.target.startswith("/s/")]
        self.check_unix_ends(spans, path, 30, 26)

    def test_connect_is_told_once(self):
        nginx = Nginx(self.place)
        agent = self.agent("--port", str(nginx.port))
        client = self.place.spawn([sys.executable, "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', "
                                   f"{nginx.port})\nfor i in range(3): c.request('GET', f'/s/200?{{i}}'); "
                                   "c.getresponse().read()"])
        self.assertEqual(client.wait(60 * SLOW), 0)
        told = {s.target: [e["name"] for e in s.raw["events"]].count("tcp.connect") for s in agent.stop()
                if s.kind == CLIENT and s.pid == client.pid}
        self.assertEqual(told, {"/s/200?0": 1, "/s/200?1": 0, "/s/200?2": 0})

    def test_sdk_is_left_alone(self):
        """A process that publishes an OTEL_CTX makes its own spans; told to keep them, its resource is used."""
        for sdk, want in (("skip", []), ("keep", ["published"])):
            process = self.place.spawn([sys.executable, os.path.join(SERVERS, "otel_ctx.py")], stdout=subprocess.PIPE)
            port = int(process.stdout.readline())
            agent = self.agent("--port", str(port), "--sdk", sdk, name=f"agent-{sdk}")
            Wire(("127.0.0.1", port)).get("/x")
            self.assertEqual([s.service for s in agent.stop() if s.kind == SERVER], want)
