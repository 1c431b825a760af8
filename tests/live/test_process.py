# SPDX-License-Identifier: Apache-2.0
"""Which processes are seen, and what is said of them."""
import os
import subprocess
import sys

from harness import CLIENT, RINGSPAN, SERVER, LiveTest, Nginx, Spans, Wire, node, python


class Process(LiveTest):
    def names(self, env, expect, make=python):
        process, port, _ = make(self.place, env=env)
        agent = self.agent(name="agent-" + expect, everybody=True)
        Wire(("127.0.0.1", int(port))).get("/s/200?named")
        spans = agent.stop().where(SERVER, {process.pid})
        self.assertEqual([s.service for s in spans], [expect])
        return spans[0]

    def test_service_name_from_otel(self):
        span = self.names({"OTEL_SERVICE_NAME": "shop", "DD_SERVICE": "other",
                           "OTEL_RESOURCE_ATTRIBUTES": "service.name=third,deployment.environment.name=test"}, "shop")
        self.assertEqual(span.raw["resource"].get("deployment.environment.name"), "test")

    def test_service_name_from_resource_attributes(self):
        self.names({"OTEL_RESOURCE_ATTRIBUTES": "a=b,service.name=third"}, "third")

    def test_service_name_from_datadog(self):
        self.names({"DD_SERVICE": "dog"}, "dog")

    def test_service_name_of_the_executable(self):
        span = self.names({}, "node", node)
        self.assertEqual(span.raw["resource"].get("process.executable.name"), "node")

    def test_filter_by_pid(self):
        nginx = Nginx(self.place)
        process, port, _ = node(self.place)
        agent = self.agent("-p", str(process.pid))
        Wire(("127.0.0.1", int(port))).get("/s/200?in")
        Wire(("127.0.0.1", nginx.port)).get("/s/200?out")
        spans = agent.stop()
        self.assertEqual({s.pid for s in spans}, {process.pid})
        self.assertEqual([s.target for s in spans], ["/s/200?in"])

    def test_filter_by_pid_takes_children(self):
        """nginx's workers are children of the master, older than the agent."""
        nginx = Nginx(self.place)
        agent = self.agent("-p", str(nginx.process.pid))
        Wire(("127.0.0.1", nginx.port)).get("/s/200?in")
        spans = agent.stop()
        self.assertEqual([s.target for s in spans], ["/s/200?in"])

    def test_filter_by_comm(self):
        nginx = Nginx(self.place)
        process, port, _ = node(self.place)
        agent = self.agent("--comm", "nginx")
        Wire(("127.0.0.1", int(port))).get("/s/200?out")
        Wire(("127.0.0.1", nginx.port)).get("/s/200?in")
        spans = agent.stop().where(test=lambda s: "?in" in s.target or "?out" in s.target)
        self.assertEqual([s.target for s in spans], ["/s/200?in"])

    def trace_command(self, *argv):
        out = self.place.path("command.json")
        done = subprocess.run([RINGSPAN, "trace", "--format", "json", "-o", out, "--socket", self.place.path("c.sock"),
                               "--", *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=60)
        return done, Spans.load(out)

    def test_trace_command_passes_its_status_on(self):
        for code in (0, 7):
            done, spans = self.trace_command("sh", "-c", f"exit {code}")
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(spans, [])
        done, _ = self.trace_command("sh", "-c", "kill -TERM $$")
        self.assertEqual(done.returncode, 128 + 15, done.stderr)

    def test_trace_command_that_does_not_exist(self):
        done, _ = self.trace_command("/nonexistent/program")
        self.assertIn(done.returncode, (1, 126, 127))
        self.assertIn("/nonexistent/program", done.stderr)

    def test_trace_command_sees_its_first_request_and_children(self):
        nginx = Nginx(self.place)
        url = f"http://127.0.0.1:{nginx.port}/s/404?first"
        done, spans = self.trace_command("sh", "-c", f"curl -s -o /dev/null '{url}'; curl -s -o /dev/null '{url}2'; echo said")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("said", done.stdout)
        clients = spans.where(CLIENT)
        self.assertEqual(sorted(s.target for s in clients), ["/s/404?first", "/s/404?first2"])
        self.assertEqual(len(spans), 2, "nginx is not the command's child")
        self.assertEqual({s.status for s in clients}, {404})
        self.assertTrue(all(s.failed for s in clients), "404 is an error for a client")

    def test_fork_after_accept(self):
        """A connection accepted by one process and served by its child."""
        code = ("import os,socket,sys\ns=socket.create_server(('127.0.0.1',0));print(s.getsockname()[1],flush=True)\n"
                "while 1:\n c,_=s.accept()\n if os.fork()==0:\n  c.recv(4096);c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok')"
                ";c.recv(10);os._exit(0)\n c.close()\n")
        process = self.place.spawn([sys.executable, "-c", code], stdout=subprocess.PIPE)
        port = int(process.stdout.readline())
        agent = self.agent()
        for i in range(10):
            wire = Wire(("127.0.0.1", port))
            self.assertEqual(wire.get(f"/forked/{i}"), 200)
            wire.close()
        spans = agent.stop()
        servers = spans.where(SERVER, prefix="/forked/")
        self.assertEqual(len(servers), 10)
        self.assertEqual(len({s.pid for s in servers}), 10, "each child handled one")
        self.assertEqual(len(spans.where(CLIENT, {os.getpid()}, "/forked/")), 10)

    def test_every_way_to_read_and_write(self):
        """read/write, send/recv, sendmsg/recvmsg, readv/writev, sendfile, splice on both ends."""
        import socket
        import threading
        ways = {
            "write": (lambda s, d: os.write(s.fileno(), d), lambda s: os.read(s.fileno(), 4096)),
            "send": (lambda s, d: s.send(d), lambda s: s.recv(4096)),
            "sendmsg": (lambda s, d: s.sendmsg([d[:5], d[5:20], d[20:]]), lambda s: s.recvmsg(4096)[0]),
            "writev": (lambda s, d: os.writev(s.fileno(), [d[:3], b"", d[3:]]), self.readv),
            "recv_into": (lambda s, d: s.send(d), self.recvmsg_into),
        }
        listener = socket.create_server(("127.0.0.1", 0))
        agent = self.agent()

        def serve():
            for _ in range(len(ways) ** 2 * 2):
                conn, _ = listener.accept()
                try:
                    how = ways[conn.recv(4096, socket.MSG_PEEK).decode().split("/")[2]]
                    how[1](conn)
                    how[0](conn, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
                finally:
                    conn.close()
        thread = threading.Thread(target=serve)
        thread.start()
        want = set()
        for server_way in ways:
            for client_way in ways:
                for i in range(2):
                    target = f"/way/{server_way}/{client_way}{i}"
                    want.add(target)
                    with socket.create_connection(listener.getsockname()) as s:
                        ways[client_way][0](s, f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                        self.assertIn(b"hello", ways[client_way][1](s))
        thread.join()
        listener.close()
        spans = agent.stop().where(pids={os.getpid()}, prefix="/way/")
        for kind in (SERVER, CLIENT):
            found = spans.where(kind)
            self.assertEqual({s.target for s in found}, want, kind)
            self.assertEqual(len(found), len(want))
            self.assertEqual({s.status for s in found}, {200})

    @staticmethod
    def readv(s):
        buffers = [bytearray(7), bytearray(30), bytearray(4096)]
        got = os.readv(s.fileno(), buffers)
        return b"".join(buffers)[:got]

    @staticmethod
    def recvmsg_into(s):
        buffers = [bytearray(9), bytearray(4096)]
        got = s.recvmsg_into(buffers)[0]
        return b"".join(buffers)[:got]
