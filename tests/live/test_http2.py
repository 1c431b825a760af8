# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 and gRPC: spans against what servers, clients and load generators themselves say."""
import collections
import os
import re
import shutil
import socket
import subprocess
import sys

from harness import CLIENT, ROOM, SERVER, SERVERS, SLOW, TOP, Failure, LiveTest, Log, Nginx, children, ends_well, free_port, stop, wait_until

STREAMS = (1, 8, 32, 100)
GRPC = "v1.71.0"


def listens(port):

    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class Http2Nginx:
    """nginx that speaks HTTP/2: in plain text (prior knowledge), or in TLS when it is given a key."""

    def __init__(self, place, key=None, cert=None):
        self.dir = place.path("nginx2")
        os.makedirs(self.dir + "/www")
        for name, size in (("small", 16), ("big", 300000)):
            with open(f"{self.dir}/www/{name}", "wb") as f:
                f.write(b"0123456789abcdef" * (size // 16))
        self.port = free_port()
        temp = " ".join(f"{x}_temp_path {self.dir}/{x};" for x in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        tls = f"ssl_certificate {cert}; ssl_certificate_key {key};" if key else ""
        with open(self.dir + "/nginx.conf", "w") as f:
            f.write(f"daemon off; worker_processes 2; pid {self.dir}/pid; events {{ }}\n"
                    f"http {{ {temp} log_format t '$request_method\\t$request_uri\\t$status\\t$body_bytes_sent';\n"
                    f"access_log {self.dir}/access.log t; keepalive_requests 1000000; sendfile on;\n"
                    f"server {{ listen 127.0.0.1:{self.port} http2 {'ssl' if key else ''}; root {self.dir}/www; {tls}\n"
                    "location /hello { return 200 hello; } location /no { return 404; } } }\n")
        self.process = place.spawn(["nginx", "-e", self.dir + "/error.log", "-c", self.dir + "/nginx.conf"],
                                   stderr=open(place.path("nginx2.err"), "w"))
        wait_until("nginx to listen", lambda: listens(self.port))
        wait_until("nginx's workers", lambda: len(children(self.process.pid)) == 2)
        self.pids = {self.process.pid, *children(self.process.pid)}
        self.log = Log(self.dir + "/access.log")


def h2load(place, url, count, clients, streams, paths=("/hello",)):
    """Responses by class as h2load counts them, and its pid."""
    for tool in ("h2load",):
        if not shutil.which(tool):
            raise Failure("h2load is not installed")
    names = place.path("uris")
    with open(names, "w") as f:
        f.writelines(f"{url}{p}\n" for p in paths)
    process = place.spawn(["h2load", "-n", str(count), "-c", str(clients), "-m", str(streams), "-i", names],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    text, _ = process.communicate(timeout=60 * SLOW)
    found = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", text)
    if process.returncode or not found:
        raise Failure(f"h2load failed: {text[-500:]}")
    return [int(n) for n in found.groups()], process.pid


def python_with_grpc():
    """An interpreter that has grpcio, made once below build/."""
    home = os.path.join(TOP, "build", "live", "grpc-venv")
    python = os.path.join(home, "bin", "python")
    if subprocess.run([python, "-c", "import grpc"], stderr=subprocess.DEVNULL).returncode if os.path.exists(python) else True:
        made = subprocess.run([sys.executable, "-m", "venv", home], stdout=subprocess.DEVNULL)
        if made.returncode or not ends_well([python, "-m", "pip", "install", "-q", "grpcio"]):
            return None
    return python


def go_calls():
    """The Go program of gRPC calls, built once below build/; None: it cannot be."""
    home = os.path.join(TOP, "build", "live", "grpc-go")
    source, out = os.path.join(SERVERS, "grpc_calls.go"), os.path.join(home, "calls")
    if not os.path.exists(out) or os.path.getmtime(out) < os.path.getmtime(source):
        os.makedirs(home, exist_ok=True)
        shutil.copy(source, home)
        with open(os.path.join(home, "go.mod"), "w") as f:
            f.write(f"module calls\n\ngo 1.22\n\nrequire google.golang.org/grpc {GRPC}\n")
        for argv in (["go", "mod", "tidy"], ["go", "build", "-o", "calls", "."]):
            if not ends_well(argv, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
                return None
    return out


class Http2(LiveTest):
    def check_nginx(self, *agent_args, pair=(), count=3000):
        nginx, scheme = Http2Nginx(self.place, *pair), "https" if pair else "http"
        agent = self.agent("--port", str(nginx.port), *ROOM, *agent_args)
        pids, totals = set(), [0, 0, 0, 0]
        for streams in STREAMS:
            found, pid = h2load(self.place, f"{scheme}://127.0.0.1:{nginx.port}", count, 2, streams,
                                ("/hello", "/small", "/no", "/hello?a=b") + (("/big",) if streams == 8 else ()))
            totals = [a + b for a, b in zip(totals, found)]
            pids.add(pid)
        agent.settle()
        self.assert_nothing_lost(agent)
        spans = agent.stop()
        self.assertEqual(sum(totals), count * len(STREAMS))
        servers, clients = spans.where(SERVER, nginx.pids), spans.where(CLIENT, pids)
        self.measured(f"{sum(totals)} requests in up to {max(STREAMS)} streams, {len(servers)} and {len(clients)} spans")
        self.assert_same(servers.triples(), nginx.log.triples(), "server spans")
        self.assert_same(clients.triples(), nginx.log.triples(), "client spans")
        self.assertEqual([s for s in servers + clients if s.attributes.get("ringspan.incomplete")], [])
        sizes = collections.Counter((r[1], int(r[3])) for r in nginx.log.rows() if int(r[3]))
        self.assert_same(collections.Counter((s.target, s.attributes.get("http.response.body.size")) for s in servers
                                             if s.attributes.get("http.response.body.size")), sizes, "sizes")
        return spans

    def test_nginx_h2load(self):
        for s in self.check_nginx()[:10]:
            self.assertEqual(s.attributes["network.protocol.version"], "2")

    def test_nginx_h2load_syscall(self):
        self.check_nginx("--capture", "syscall", count=1000)

    def certificate(self):
        key, cert = self.place.path("key.pem"), self.place.path("cert.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                        "-keyout", key, "-out", cert], check=True, stderr=subprocess.DEVNULL)
        return key, cert

    def test_nginx_h2load_tls(self):
        for s in self.check_nginx(pair=self.certificate())[:10]:
            self.assertEqual(s.attributes["network.protocol.version"], "2")

    def test_nghttpd_and_push(self):
        """nghttp2's own server and client, with a resource pushed before it is asked for."""
        if not shutil.which("nghttpd"):
            self.skipTest("nghttpd is not installed")
        root = self.place.path("www")
        os.makedirs(root)
        for name in ("page", "style"):
            with open(os.path.join(root, name), "w") as f:
                f.write(name * 10)
        port = free_port()
        server = self.place.spawn(["nghttpd", "--no-tls", "-a", "127.0.0.1", "-d", root, "-p", "/page=/style", str(port)])
        wait_until("nghttpd to listen", lambda: listens(port))
        agent = self.agent("--port", str(port))
        pids = set()
        for argv in ([f"http://127.0.0.1:{port}/page"],
                     ["-d", os.path.join(root, "page"), f"http://127.0.0.1:{port}/style", f"http://127.0.0.1:{port}/none"]):
            client = self.place.spawn(["nghttp", "-n"] + argv, stdout=subprocess.DEVNULL)
            self.assertEqual(client.wait(20 * SLOW), 0)
            pids.add(client.pid)
        spans = agent.stop()
        want = collections.Counter({("GET", "/page", 200): 1, ("GET", "/style", 200): 1, ("POST", "/style", 200): 1,
                                    ("POST", "/none", 404): 1})
        self.assert_same(spans.where(SERVER, {server.pid}).triples(), want, "server spans")
        self.assert_same(spans.where(CLIENT, pids).triples(), want, "client spans")

    def test_upgrade(self):
        """HTTP/1.1's request that asks for h2c is answered as stream 1; the rest are streams of that connection."""
        if not shutil.which("nghttpx"):
            self.skipTest("nghttpx is not installed")
        nginx, port = Nginx(self.place), free_port()
        server = self.place.spawn(["nghttpx", f"-f127.0.0.1,{port};no-tls", f"-b127.0.0.1,{nginx.port}", "-n1", "--no-ocsp",
                                   "--conf=/dev/null", "--errorlog-file=" + self.place.path("nghttpx.log")], stderr=subprocess.DEVNULL)
        wait_until("nghttpx to listen", lambda: listens(port))
        agent = self.agent("--port", str(port))
        clients = set()
        for turn in range(4):
            client = self.place.spawn(["curl", "-s", "--http2", *sum((["-o", "/dev/null", f"http://127.0.0.1:{port}/f/1k.txt?{turn}.{i}"]
                                                                      for i in range(5)), [])])
            self.assertEqual(client.wait(20 * SLOW), 0)
            clients.add(client.pid)
        spans = agent.stop()
        want = collections.Counter(("GET", f"/f/1k.txt?{turn}.{i}", 200) for turn in range(4) for i in range(5))
        self.assert_same(spans.where(CLIENT, clients).triples(), want, "client spans")
        servers = spans.where(SERVER, {server.pid, *children(server.pid)})
        self.assert_same(servers.triples(), want, "server spans")
        for s in servers:
            self.assertEqual(s.attributes["network.protocol.version"], "2", s)

    def node(self, *args):
        log = self.place.path("node2.log")
        port = free_port()
        process = self.place.spawn_server(["node", os.path.join(SERVERS, "http2.js"), "server", str(port), log, *args])
        return process, port, Log(log)

    def node_client(self, url, *args):
        log = self.place.path("node2-client.log")
        process = self.place.spawn_server(["node", os.path.join(SERVERS, "http2.js"), "client", url, log, *args])
        return process, Log(log)

    def check_node(self, scheme="http", *args):
        server, port, log = self.node(*args)
        agent = self.agent("--port", str(port))
        client, client_log = self.node_client(f"{scheme}://127.0.0.1:{port}", "600", "50")
        client.wait(30 * SLOW)
        agent.settle()
        self.assert_nothing_lost(agent)
        spans = agent.stop()
        self.assert_same(spans.where(SERVER, {server.pid}).triples(), log.triples(), "server spans")
        self.assert_same(spans.where(CLIENT, {client.pid}).triples(), client_log.triples(), "client spans")
        self.assertEqual(sum(log.triples().values()), 600)
        for s in spans.where(SERVER, {server.pid}, "/slow"):
            self.assertGreaterEqual(s.ms, 19)

    def test_node(self):
        self.check_node()

    def test_node_tls(self):
        self.check_node("https", *self.certificate())

    def test_streams_that_end_otherwise(self):
        """Events of a server, a stream that is reset, a client that does not wait."""
        server, port, _ = self.node()
        agent = self.agent("--port", str(port))
        url = f"http://127.0.0.1:{port}"
        subprocess.run(["curl", "-s", "--http2-prior-knowledge", url + "/sse"], stdout=subprocess.DEVNULL)
        subprocess.run(["curl", "-s", "--http2-prior-knowledge", url + "/reset"], stdout=subprocess.DEVNULL)
        subprocess.run(["curl", "-s", "--http2-prior-knowledge", "-m", "0.3", url + "/slow/5000"], stdout=subprocess.DEVNULL)
        spans = agent.stop()
        for kind in (SERVER, CLIENT):
            sse, = spans.where(kind, prefix="/sse")
            self.assertEqual((sse.status, sse.error, sse.attributes.get("ringspan.stream")), (200, None, "sse"))
            self.assertGreaterEqual(sse.ms, 80)
            reset, = spans.where(kind, prefix="/reset")
            self.assertEqual((reset.status, reset.error, reset.failed), (None, "INTERNAL_ERROR", True))
            slow, = spans.where(kind, prefix="/slow")
            self.assertEqual(slow.status, None)
            self.assertLess(slow.ms, 4000)

    def test_attached_in_the_middle(self):
        """Requests whose connection is older than the agent: what was indexed before is left out, nothing is wrong."""
        server, port, log = self.node()
        client, client_log = self.node_client(f"http://127.0.0.1:{port}", "5000", "1", "20")
        wait_until("requests", lambda: client_log.count() > 20)
        agent = self.agent("--port", str(port))
        before = client_log.count()
        wait_until("more requests", lambda: client_log.count() > before + 80, 30)
        stop(client)
        spans = agent.stop()
        for kind, pid, told in ((SERVER, server.pid, log), (CLIENT, client.pid, client_log)):
            some = spans.where(kind, {pid})
            truth = told.triples()
            self.measured(f"{kind}: {len(some)} spans, {sum(1 for s in some if s.attributes.get('ringspan.incomplete'))} incomplete")
            self.assertGreater(len(some), 20)
            paths = {(path, status) for _, path, status in truth}
            for s in some:
                if s.status is None:
                    continue  # the client was stopped
                if not s.attributes.get("ringspan.incomplete"):
                    self.assertIn(s.triple(), truth)
                elif s.target != "/":
                    self.assertIn((s.target, s.status), paths)
            self.assertGreater(sum((some.triples() & truth).values()), len(some) // 2, "the tables are known again")

    def check_grpc(self, server_argv, client_argv, streams=8, pair=()):
        port = free_port()
        server = self.place.spawn_server(server_argv + ["server", str(port), *pair])
        agent = self.agent("--port", str(port))
        log = self.place.path("calls.log")
        client = self.place.spawn(client_argv + ["client", f"127.0.0.1:{port}", log, "3", str(streams), *pair[1:]])
        self.assertEqual(client.wait(60 * SLOW), 0)
        agent.settle()
        self.assert_nothing_lost(agent)
        spans = agent.stop()
        rows = [tuple(r) for r in Log(log).rows()]
        self.measured(f"{len(rows)} calls in up to {streams} streams")
        self.assertEqual(len(rows), 3 * streams * 9)

        def seen(s, row=None):
            a = dict(s.attributes)
            # When the time is up the client says just that it does not want the answer any more.
            if a["rpc.method"].endswith("Slow") and a["rpc.status_code"] == "CANCELLED":
                a["rpc.status_code"] = "DEADLINE_EXCEEDED"
            method = a.get("rpc.method_original", a.get("rpc.method"))
            sent, got = (str(a.get(f"ringspan.rpc.{x}.messages", "?")) for x in ("request", "response"))
            if method.endswith(("Slow", "Forever")):
                sent = got = "-"
            return (method, a.get("rpc.status_code"), "-" if method.endswith("None") else sent, got)

        for kind, pid in ((CLIENT, client.pid), (SERVER, server.pid)):
            some = spans.where(kind, {pid})
            self.assert_same(collections.Counter(map(seen, some)), collections.Counter(rows), f"{kind} calls")
            for s in some:
                code = s.attributes["rpc.status_code"]
                # A server is not to blame for what the client did wrong.
                bad = code in ("INTERNAL", "UNIMPLEMENTED", "DEADLINE_EXCEEDED") if kind == SERVER else code != "OK"
                self.assertEqual((s.failed, s.error), (bad, code if bad else None), s.attributes)
                self.assertNotIn("http.request.method", s.attributes)
                if s.attributes["rpc.method"] != "_OTHER":
                    self.assertEqual(s.raw["name"], s.attributes["rpc.method"])

    def grpc_python(self):
        python = python_with_grpc()
        if not python:
            self.skipTest("grpcio cannot be installed (no network?)")
        return [python, os.path.join(SERVERS, "grpc_calls.py")]

    def grpc_go(self):
        calls = go_calls() if shutil.which("go") else None
        if not calls:
            self.skipTest("the Go program cannot be built (Go 1.22, network)")
        return [calls]

    def test_grpc_python(self):
        self.check_grpc(self.grpc_python(), self.grpc_python())

    def test_grpc_go(self):
        self.check_grpc(self.grpc_go(), self.grpc_go(), streams=50)

    def test_grpc_go_tls(self):
        self.check_grpc(self.grpc_go(), self.grpc_go(), pair=self.certificate())

    def test_grpc_go_and_python(self):
        self.check_grpc(self.grpc_go(), self.grpc_python())
