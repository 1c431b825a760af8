# SPDX-License-Identifier: Apache-2.0
"""Plain text of TLS libraries: programs × libraries × directions, where the library is found, and no harm done."""
import collections
import glob
import mmap
import os
import shutil
import signal
import subprocess
import sys
import unittest

from harness import CLIENT, RINGSPAN, SERVER, SERVERS, SLOW, LiveTest, Failure, free_port, layered, stop, wait_until

COUNT = 24
TURNS = int(os.environ.get("RS_TLS_TURNS", "4"))  # make check-tls: 100
LIBSSL = "/usr/lib/*/libssl.so.3"

NGINX = """daemon off; worker_processes 2; user root; pid @DIR@/nginx.pid; error_log @DIR@/error.log warn;
events { worker_connections 512; }
http {
	log_format truth '$request_method\\t$request_uri\\t$status';
	access_log @DIR@/access.log truth;
	keepalive_requests 1000000;
	server {
		listen 127.0.0.1:@PORT@ ssl; ssl_protocols TLSv1.2 TLSv1.3;
		ssl_certificate @DIR@/cert.pem; ssl_certificate_key @DIR@/key.pem;
		location / { return 200 "hello\\n"; }
	}
}
"""


def can(*tools):
    missing = [t for t in tools if not shutil.which(t)]
    return unittest.skipIf(missing, f"not installed: {' '.join(missing)}")


def wants(prefix, count=COUNT):
    return collections.Counter(("GET", f"/{prefix}{i}", 200) for i in range(count))


class TlsTest(LiveTest):
    """A certificate, servers and clients."""

    def setUp(self):
        super().setUp()
        self.cert, self.key = self.place.path("cert.pem"), self.place.path("key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                        self.key, "-out", self.cert, "-days", "2", "-subj", "/CN=localhost"], check=True,
                       stderr=subprocess.DEVNULL)

    # -- servers: (port, name) --

    def nginx(self):
        port = free_port()
        conf = self.place.path("nginx.conf")
        with open(conf, "w") as f:
            f.write(NGINX.replace("@DIR@", self.place.dir).replace("@PORT@", str(port)))
        process = self.place.spawn(["nginx", "-e", self.place.path("error.log"), "-p", self.place.dir, "-c", conf],
                                   stderr=subprocess.DEVNULL)
        self.wait_for(port, process)
        return port

    def wait_for(self, port, process):
        def up():
            if process.poll() is not None:
                raise Failure(f"{process.args[0]} ended: {process.returncode}")
            return subprocess.run(["curl", "-sko", "/dev/null", f"https://127.0.0.1:{port}/up"]).returncode == 0
        wait_until(f"{process.args[0]} to listen", up, 20)

    def script(self, how):
        port = free_port()
        argv = ["node", SERVERS + "/tls.js", "serve"] if how == "node" else [sys.executable, SERVERS + "/tls.py", how]
        self.place.spawn_server(argv + [str(port), self.key, self.cert])
        return port

    # -- clients --

    def get(self, how, port, prefix, count=COUNT, parallel=3, env=None):
        url = f"https://127.0.0.1:{port}/{prefix}"
        argv = {"curl": ["curl", "-sk", *sum((["-o", "/dev/null", f"{url}{i}"] for i in range(count)), [])],
                "node": ["node", SERVERS + "/tls.js", "get", str(port), str(count), prefix, str(parallel)],
                "python": [sys.executable, SERVERS + "/tls.py", "get", str(port), str(count), prefix, "1"],
                "asyncio": [sys.executable, SERVERS + "/tls.py", "get-aio", str(port), str(count), prefix, str(parallel)]}[how]
        process = self.place.spawn(argv, env)
        self.assertEqual(process.wait(60 * SLOW), 0, f"{how} failed")
        return process.pid

    def own(self, mode, port, prefix, count=COUNT, binary=None, env=None, check=True):
        """tests/live/servers/tlsclient.c"""
        process = self.place.spawn([binary or self.client(), mode, str(port), str(count), prefix], env)
        code = process.wait(60 * SLOW)
        if check:
            self.assertEqual(code, 0, f"the program was disturbed in mode {mode}")
        return process.pid

    def client(self, *flags, name="tlsclient"):
        out = self.place.path(name)
        if not os.path.exists(out):
            done = subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-rdynamic", SERVERS + "/tlsclient.c", "-o", out,
                                   *(flags or ("-lssl", "-lcrypto"))], stderr=subprocess.PIPE, text=True)
            if done.returncode:
                self.skipTest("OpenSSL's development files are not installed: " + done.stderr.strip().split("\n")[-1][:100])
        return out

    @staticmethod
    def ledger(agent):
        return agent.ledger()

    def fates(self, agent, count):
        """What became of TLS connections, when so many have ended; else None."""
        tls = {name: n for (stage, name), n in self.ledger(agent).items() if stage == "tls"}
        return tls if tls["connections"] - tls["open"] >= count else None

    def both(self, spans, port, pid, prefix, count=COUNT, server=True):
        """Every request once at either end."""
        self.assert_same(spans.where(CLIENT, {pid}, "/" + prefix).triples(), wants(prefix, count), f"{prefix}: client spans")
        if server:
            at = spans.where(SERVER, None, "/" + prefix, lambda s: s.attributes.get("network.local.port") == port)
            self.assert_same(at.triples(), wants(prefix, count), f"{prefix}: server spans")


class Tls(TlsTest):
    def test_programs(self):
        servers = {"nginx": self.nginx(), "python": self.script("serve"), "asyncio": self.script("serve-aio")}
        clients = ["curl", "python", "asyncio"]
        if shutil.which("node"):
            servers["node"] = self.script("node")
            clients.append("node")
        agent = self.agent(*sum((["--port", str(p)] for p in servers.values()), []))
        pids = {}
        for server, port in servers.items():
            for client in clients:
                pids[server, client] = self.get(client, port, f"{server}-{client}-")
        losses = agent.losses()
        spans = agent.stop()
        for (server, client), pid in pids.items():
            self.both(spans, servers[server], pid, f"{server}-{client}-")
        log = collections.Counter(tuple(line.rstrip("\n").split("\t")) for line in open(self.place.path("access.log")))
        seen = spans.where(SERVER, None, "/nginx-").triples()
        self.assert_same(collections.Counter({(m, t, str(s)): n for (m, t, s), n in seen.items()}),
                         collections.Counter({k: n for k, n in log.items() if k[1] != "/up"}), "nginx's access log")
        self.assertEqual(losses, {}, "the agent lost records or spans")
        # What TLS says of itself, at both ends, and how long its handshakes took.
        one = spans.where(CLIENT, {pids["nginx", "curl"]})
        self.assertEqual(sum("tls.handshake" in s.event_names for s in one), 1)
        for s in one:
            self.assertEqual(s.attributes["tls.protocol.version"], "1.3")
            self.assertTrue(s.attributes["tls.cipher"].startswith("TLS_"))
            self.assertIs(s.attributes["tls.resumed"], False)
        # Both ends of one request are one trace, joined by the records' sequence numbers. (The first one may come in one
        # read with the end of the handshake: then its number is not known.)
        by_id = {s.id: s for s in spans}
        above = {s.target: by_id[s.parent].target for s in spans.where(SERVER, None, "/nginx-curl-") if s.parent in by_id}
        self.assertEqual({t: a for t, a in above.items() if t != a}, {})
        self.assert_most(len(above), COUNT - 1, "joined")

    @can("gnutls-serv", "gnutls-cli")
    def test_gnutls(self):
        port, web = free_port(), self.nginx()
        server = self.place.spawn(["gnutls-serv", "--http", "-p", str(port), "--x509certfile", self.cert, "--x509keyfile", self.key,
                                   "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for(port, server)
        agent = self.agent("--port", str(port), "--port", str(web))
        for i in range(6):
            subprocess.run(["curl", "-sko", "/dev/null", f"https://127.0.0.1:{port}/serv{i}"], check=True)
            subprocess.run(["gnutls-cli", "--no-ca-verification", "-p", str(web), "127.0.0.1"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, input=b"GET /cli%d HTTP/1.0\r\n\r\n" % i, timeout=20 * SLOW)
        spans = agent.stop()
        self.assert_same(spans.where(SERVER, {server.pid}, "/serv").triples(), wants("serv", 6), "gnutls-serv")
        self.assert_same(spans.where(CLIENT, None, "/cli").triples(), wants("cli", 6), "gnutls-cli")

    @can("gnutls-serv", "gnutls-cli")
    def test_gnutls_load(self):
        """A server with eight connections at once, each with its handshake; sixteen clients at once."""
        port, web, many = free_port(), self.nginx(), 100
        server = self.place.spawn(["gnutls-serv", "--http", "-p", str(port), "--x509certfile", self.cert, "--x509keyfile", self.key,
                                   "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for(port, server)
        agent = self.agent("--port", str(port), "--port", str(web))
        load = self.place.spawn(["curl", "-skZ", "--parallel-max", "8", "-o", "/dev/null", f"https://127.0.0.1:{port}/load[0-{many - 1}]"],
                                stderr=subprocess.DEVNULL)
        clients = [subprocess.Popen(["gnutls-cli", "--no-ca-verification", "-p", str(web), "127.0.0.1"], stdin=subprocess.PIPE,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(16)]
        for i, client in enumerate(clients):
            client.communicate(b"GET /cli%d HTTP/1.0\r\n\r\n" % i, timeout=30 * SLOW)
        self.assertEqual(load.wait(60 * SLOW), 0)
        spans = agent.stop()
        self.assert_same(spans.where(SERVER, {server.pid}, "/load").triples(), wants("load", many), "gnutls-serv")
        self.assert_same(spans.where(CLIENT, {load.pid}, "/load").triples(), wants("load", many), "curl")
        self.assert_same(spans.where(CLIENT, None, "/cli").triples(), wants("cli", 16), "gnutls-cli")

    def small(self, name, *flags):
        """mbedTLS or wolfSSL at both ends: a program of ours with each, and nginx and curl."""
        out, port, web = self.place.path(name), free_port(), self.nginx()
        done = subprocess.run(["cc", "-O2", SERVERS + "/tls_small.c", "-o", out, *flags], stderr=subprocess.PIPE, text=True)
        if done.returncode:
            self.skipTest(f"{name}'s development files are not installed, or others: " + done.stderr.strip().split("\n")[-1][:100])
        server = self.place.spawn_server([out, "serve", str(port), self.key, self.cert])
        agent = self.agent("--port", str(port), "--port", str(web))
        self.get("curl", port, "curl")
        pid = self.own("get", web, "own", binary=out)
        spans = agent.stop()
        self.assert_same(spans.where(SERVER, {server.pid}, "/curl").triples(), wants("curl"), f"{name} as server")
        self.both(spans, web, pid, "own")

    def test_mbedtls(self):
        self.small("mbedtls", "-DWITH_MBEDTLS", "-lmbedtls", "-lmbedx509", "-lmbedcrypto")

    def test_wolfssl(self):
        self.small("wolfssl", "-lwolfssl")

    def test_bio(self):
        """Reads through BIO_f_ssl, which calls neither SSL_read nor SSL_read_ex."""
        port = free_port()
        for i in range(6):
            with open(self.place.path(f"w{i}"), "w") as f:
                f.write("text\n")
        server = self.place.spawn(["openssl", "s_server", "-WWW", "-port", str(port), "-cert", self.cert, "-key", self.key, "-quiet"],
                                  cwd=self.place.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for(port, server)
        agent = self.agent("--port", str(port))
        for i in range(6):
            subprocess.run(["curl", "-sko", "/dev/null", f"https://127.0.0.1:{port}/w{i}"], check=True)
        self.assert_same(agent.stop().where(SERVER, {server.pid}, "/w").triples(), wants("w", 6), "s_server -WWW")

    def test_static(self):
        """A program with OpenSSL in it that nobody has seen before: found when it is executed; what it said before its
        probes were there is counted."""
        port = self.nginx()
        binary = self.client("-Wl,-Bstatic", "-lssl", "-lcrypto", "-Wl,-Bdynamic", name="static")
        agent = self.agent("--port", str(port))
        runs = []

        def found():
            runs.append(self.own("plain", port, "first", binary=binary))
            return agent.saw(lambda s: s.kind == CLIENT and s.target.startswith("/first") and s.status)
        wait_until("its probes", found)
        pid = self.own("plain", port, "then", binary=binary)
        late = wait_until("both connections to have ended", lambda: self.fates(agent, 2 * len(runs) + 2))["late"]
        spans = agent.stop()
        seen = len(spans.where(CLIENT, {runs[0]}))
        self.measured(f"{seen} of {COUNT} requests of a program's first run")
        self.assertTrue(seen == COUNT or late, "missed and not counted")
        self.both(spans, port, pid, "then")

    @can("strip")
    def test_stripped(self):
        """A program whose OpenSSL has no names: what it said is counted as not read, what nobody said is not."""
        port = self.nginx()
        binary = self.client("-Wl,--no-export-dynamic", "-Wl,-Bstatic", "-lssl", "-lcrypto", "-Wl,-Bdynamic", name="stripped")
        subprocess.run(["strip", binary], check=True)
        agent = self.agent("--port", str(port))
        pid = self.own("plain", port, "none", binary=binary)
        subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        fates = wait_until("both connections to have ended", lambda: self.fates(agent, 4))
        spans = agent.stop()
        self.assertEqual(spans.where(CLIENT, {pid}), [])
        self.assert_same(spans.where(SERVER, None, "/none").triples(), wants("none"), "the server's side of them")
        self.assertEqual(fates["read"], 1, fates)
        self.assertGreaterEqual(fates["silent"], 1, fates)
        # It, and s_client, may have ended before they were looked into.
        self.assertGreaterEqual(fates["no_library"] + fates["late"], 1, fates)

    def test_why_not(self):
        """Who asks why a server has no spans reads it in status: its library has no names, also where it has another one that has."""
        for more, there in ((["-Wl,--as-needed"], False), (["-Wl,--no-as-needed", "-lssl"], True)):
            out, port = self.place.path(f"nameless{there}"), free_port()
            done = subprocess.run(["cc", "-O2", "-s", "-DWITH_MBEDTLS", SERVERS + "/tls_small.c", "-o", out, "-Wl,-Bstatic", "-lmbedtls",
                                   "-lmbedx509", "-lmbedcrypto", "-Wl,-Bdynamic", *more], stderr=subprocess.PIPE, text=True)
            if done.returncode:
                self.skipTest("mbedTLS's development files are not installed")
            server = self.place.spawn_server([out, "serve", str(port), self.key, self.cert])
            agent = self.agent("--port", str(port), name=f"agent{there}")

            def says(what, agent=agent, server=server):
                return [p[what] for p in agent.status()["processes"] if p["pid"] == server.pid and "no symbols" in p[what]]
            client = self.place.spawn(["openssl", "s_client", "-quiet", "-connect", f"127.0.0.1:{port}"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            client.stdin.write(b"GET /open HTTP/1.1\r\nHost: x\r\n\r\n")
            client.stdin.flush()
            while client.stdout.readline() != b"hello\n":  # it has been answered
                self.assertIsNone(client.poll())
            wait_until("the reason of an open connection", lambda says=says: says("why_not"))
            client.kill()
            client.wait()
            reason = wait_until("the reason of one that has ended", lambda says=says: says("tls"))[0]
            self.assertIn("1 connections: by a library", reason)
            self.assertEqual("hooked" in reason, there, reason)
            self.assertEqual(self.ledger(agent)["tls", "no_library"], 1)
            agent.stop()

    def test_excluding_others(self):
        """With --tls-exclude libraries are attached to each process: what comes too late for that is counted."""
        port = self.nginx()
        self.client()
        agent = self.agent("--port", str(port), "--tls-exclude", "curl")
        pids = [self.own("plain", port, f"run{i}-") for i in range(4)]
        self.get("curl", port, "curl", 2)
        fates = wait_until("all connections to have ended", lambda: self.fates(agent, 10))
        spans = agent.stop()
        whole = [pid for i, pid in enumerate(pids) if spans.where(CLIENT, {pid}).triples() == wants(f"run{i}-")]
        self.measured(f"{len(whole)} of {len(pids)} short programs seen whole; connections: {fates}")
        # curl's is one of those left alone, or had ended before that was known.
        missed = len(pids) - len(whole) + 1
        self.assertLessEqual(missed, fates["late"] + fates["left_alone"], f"missed and not counted: {fates}")
        self.assertLessEqual(fates["left_alone"], 1)
        self.assertEqual(spans.where(CLIENT, None, "/curl"), [])
        self.assert_same(spans.where(SERVER, None, "/curl").triples(), wants("curl", 2), "the server's side of them")

    def test_no_harm(self):
        """seccomp's strict mode, stacks that are looked at, stacks that are switched in the library's reads."""
        port = self.nginx()
        self.client()
        agent = self.agent("--port", str(port))
        pids = {mode: self.own(mode, port, mode) for mode in ("seccomp", "unwind")}
        fibers = self.own("fibers", port, "fiber")
        spans = agent.stop()
        for mode, pid in pids.items():
            self.both(spans, port, pid, mode)
        for which in "ab":
            self.both(spans, port, fibers, "fiber" + which)

    def test_mount_namespace(self):
        """A library that only the program's own mount namespace has; and one that was deleted since."""
        port, libs = self.nginx(), glob.glob(LIBSSL)[:1]
        if not libs:
            self.skipTest("no libssl.so.3")
        libs.append(libs[0].replace("libssl", "libcrypto"))
        box, gone = self.place.path("box"), self.place.path("gone")
        os.mkdir(box)
        os.mkdir(gone)
        for lib in libs:
            shutil.copy(lib, gone)
        idle = self.place.spawn_server([sys.executable, SERVERS + "/tls.py", "serve", str(free_port()), self.key, self.cert],
                                       {"LD_LIBRARY_PATH": gone})
        idle_port = int(idle.args[3])
        shutil.rmtree(gone)
        agent = self.agent("--port", str(port), "--port", str(idle_port))
        # The first programs find it, perhaps too late for their own first requests; the last one has it from the start.
        found = self.place.path("found")
        script = (f"mount -t tmpfs none {box} && cp {' '.join(libs)} {box} && export LD_LIBRARY_PATH={box} && "
                  f"until test -e {found}; do \"$@\" {port} {COUNT} first 1 || exit; done; exec \"$@\" {port} {COUNT} box 1")
        process = self.place.spawn(["unshare", "-m", "sh", "-c", script, "sh", sys.executable, SERVERS + "/tls.py", "get"])
        wait_until("the library to be found", lambda: process.poll() is not None or agent.saw(
            lambda s: s.kind == CLIENT and s.target.startswith("/first") and s.status))
        open(found, "w").close()
        if process.wait(60 * SLOW):
            self.skipTest("no mount namespaces here")
        self.get("curl", idle_port, "gone")
        spans = agent.stop()
        self.both(spans, port, process.pid, "box")
        self.assert_same(spans.where(SERVER, {idle.pid}, "/gone").triples(), wants("gone"), "a deleted library")

    def test_containers_of_one_image(self):
        """A library in two layered mounts is one file to the kernel: its probes are there once, and run once."""
        port, found = self.nginx(), glob.glob(LIBSSL)
        if not found:
            self.skipTest("no libssl.so.3")
        homes = layered(self.place, [found[0], found[0].replace("libssl", "libcrypto")])
        if not homes:
            self.skipTest("no overlay mounts here")
        binary = self.client()
        for home in homes:  # these have it, so that it is found at the start
            self.place.spawn_server([sys.executable, SERVERS + "/tls.py", "serve", str(free_port()), self.key, self.cert],
                                    {"LD_LIBRARY_PATH": home})
        agent = self.agent("--port", str(port))
        before = self.ledger(agent)
        pids = [self.own("plain", port, f"layer{i}-", binary=binary, env={"LD_LIBRARY_PATH": home}) for i, home in enumerate(homes)]
        after = self.ledger(agent)
        spans = agent.stop()
        for i, pid in enumerate(pids):
            self.both(spans, port, pid, f"layer{i}-")
        # A call that begins twice would be counted; of these there are more than others on the machine give.
        twice = after["kernel", "tls_no_return"] - before["kernel", "tls_no_return"]
        self.assertLess(twice, COUNT, "probes ran twice")

    @staticmethod
    def breakpoints(path):
        """Where what is executed from a file is not what is in it. (The kernel puts probes into any such mapping.)"""
        with open(path, "rb") as f:
            want = f.read()
            with mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC) as text:
                return [hex(i) for i in range(len(want)) if want[i] != text[i]] if text[:] != want else []

    def test_no_probe_in_another_file(self):
        """Probes stay a while after the last process: what is written into its program or library meanwhile has none in it."""
        port, libs = self.nginx(), glob.glob(LIBSSL)[:1]
        if not libs:
            self.skipTest("no libssl.so.3")
        box = self.place.path("box")
        os.mkdir(box)
        for lib in (libs[0], libs[0].replace("libssl", "libcrypto")):
            shutil.copy(lib, box)
        program = self.client("-Wl,-Bstatic", "-lssl", "-lcrypto", "-Wl,-Bdynamic", name="static")
        library, dynamic = os.path.join(box, os.path.basename(libs[0])), self.client(name="dynamic")
        agent = self.agent("--port", str(port))
        for path, run, env in ((program, program, {}), (library, dynamic, {"LD_LIBRARY_PATH": box})):
            def probed(path=path, run=run, env=env):
                self.own("plain", port, "x", binary=run, env=env)
                return self.breakpoints(path)
            wait_until("its probes", probed)
            with open(RINGSPAN, "rb") as source, open(path, "r+b") as f:  # waits until they are gone
                f.write(source.read())
                f.truncate()
            self.assertEqual(self.breakpoints(path), [], f"{path}: probes of what it was before")
        agent.stop(settle=False)

    def test_unplaced(self):
        """Plain text without a connection is a loss only where all connections are followed from their beginning."""
        port = self.nginx()
        for args, young, lost in ((["--include", "exe=python*"], True, True), (["--include", "exe=python*"], False, False),
                                  (["--port", str(port)], True, False)):
            argv = [sys.executable, SERVERS + "/tls_memory.py", str(port), self.key, self.cert]
            process = None if young else self.place.spawn(argv)
            agent = self.agent(*args, name=f"unplaced{young}{lost}")
            process = process or self.place.spawn(argv)

            def count(name):
                return sum(r["value"] for r in agent.status()["ledger"] if r["stage"] == "kernel" and r["name"] == name)
            wait_until("plain text of nowhere", lambda: count("tls_unplaced" if lost else "tls_elsewhere"), 20)
            self.assertEqual(count("tls_elsewhere" if lost else "tls_unplaced"), 0)
            process.kill()
            process.wait()
            agent.stop()

    def test_left_alone(self):
        """--tls never and --tls-exclude: no probe, and the reason in status."""
        port = self.script("serve")
        for args, why in ((["--tls", "never"], "never"), (["--tls-exclude", "python*"], "exclude")):
            agent = self.agent("--port", str(port), *args, name=why)
            import ssl
            import http.client
            c = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context())
            c.request("GET", "/x")
            c.getresponse().read()
            wait_until("the reason in status", lambda: any(why in p["why_not"] for p in agent.status()["processes"]))
            c.close()
            self.assertEqual(len(agent.stop()), 0)

    def test_left_out(self):
        """Connections that no --port is about, on the same thread: their text is not taken for another's."""
        web, port = self.nginx(), self.script("serve")
        agent = self.agent("--port", str(web))
        for how in ("turns", "turns-aio"):
            client = self.place.spawn([sys.executable, SERVERS + "/tls.py", how, f"{web},{port}", str(COUNT), how + "."])
            self.assertEqual(client.wait(60 * SLOW), 0)
        spans = agent.stop()
        for how in ("turns.", "turns-aio."):
            want = {k: n for k, n in wants(how).items() if int(k[1].split(".")[1]) % 2 == 0}
            self.assert_same(spans.where(CLIENT, None, "/" + how).triples(), collections.Counter(want), how)

    def test_behind(self):
        """TLS that begins behind something else is not followed, and not taken for another connection's either."""
        web = self.nginx()
        agent = self.agent()
        client = self.place.spawn([sys.executable, SERVERS + "/tls.py", "behind", str(web), str(COUNT), "behind", self.key, self.cert])
        self.assertEqual(client.wait(60 * SLOW), 0)
        losses = agent.losses()
        self.both(agent.stop(), web, client.pid, "behind")
        self.assertEqual(losses, {}, "the agent lost records or spans")

    def test_rule(self):
        """A rule's own word on TLS, for both ends of a port's connections."""
        read, left = self.script("serve"), self.script("serve")
        agent = self.agent("--tls", "always", "--include", f"port={left},tls=never", "--include", f"port={read}")
        for port, prefix in ((left, "left"), (read, "read")):
            pid = self.get("python", port, prefix)
        wait_until("both ends' spans", lambda: agent.status()["ledger"] and self.ledger(agent)["trace", "spans"] >= 2 * COUNT)
        spans = agent.stop()
        self.both(spans, read, pid, "read")
        self.assertEqual(len(spans), 2 * COUNT, "what the rule leaves alone was read")

    def test_comes_and_goes(self):
        """Probes attached and detached during load: every answer arrives, every request is seen while they are there."""
        port = self.nginx()
        load = self.place.spawn(["wrk", "-t1", "-c2", "-d3600s", "--timeout", "60s", f"https://127.0.0.1:{port}/load"], stdout=subprocess.PIPE,
                                text=True)
        turns = 0
        while load.poll() is None and turns < TURNS:
            agent = self.agent("--port", str(port), name=f"turn{turns}")
            wait_until("spans", lambda: os.path.exists(agent.out) and os.path.getsize(agent.out))
            self.assertEqual(stop(agent.process), 0)
            os.unlink(agent.out)
            turns += 1
        load.send_signal(signal.SIGINT)
        text = load.communicate(timeout=(TURNS + 60) * SLOW)[0]
        self.assertEqual(load.returncode, 0)
        self.assertNotIn("Non-2xx", text)
        self.assertNotIn("Socket errors", text)
        self.get("curl", port, "after")
        self.measured(f"{turns} turns: " + text.strip().split("\n")[-2].strip())


if __name__ == "__main__":
    unittest.main()
