# SPDX-License-Identifier: Apache-2.0
"""Go programs: goroutines' contexts, crypto/tls, stripped programs, stacks that move under probes."""
import collections
import concurrent.futures
import os
import shutil
import subprocess

from harness import CLIENT, RINGSPAN, SERVER, SERVERS, TOP, LiveTest, Wire, at_once, free_port, layered, stop, wait_until

BUILDS = {  # name -> further arguments of go build
    "plain": [],
    "stripped": ["-ldflags=-s -w"],
    "pie": ["-buildmode=pie", "-ldflags=-s -w"],  # builds the whole library anew: check-go
}


# make check-go: releases of Go that the go command fetches
RELEASES = os.environ.get("RS_GO_RELEASES", "").split()


def build(how, release=""):
    """The test's server, built so and by that release of Go (else by the one that is installed)."""
    source = os.path.join(SERVERS, "web.go")
    home = os.path.join(TOP, "build", "live", "web" + release)
    out = os.path.join(home, how)
    if not os.path.exists(out) or os.path.getmtime(out) < os.path.getmtime(source):
        os.makedirs(home, exist_ok=True)
        with open(os.path.join(home, "go.mod"), "w") as f:
            f.write("module web\n\ngo 1.18\n")
        shutil.copy(source, home)
        env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "go" + release if release else "local"}
        subprocess.run(["go", "build", "-o", out] + BUILDS[how] + ["web.go"], check=True, cwd=home, env=env)
    return out


class Go(LiveTest):
    def setUp(self):
        if not shutil.which("go"):
            self.skipTest("the go command is not installed")
        super().setUp()

    release = ""

    def web(self, how, *args):
        port = free_port()
        return self.place.spawn_server([build(how, self.release), str(port), *args]), port

    def pair(self, how, *args):
        scheme = "https" if "tls" in args else "http"
        back, back_port = self.web(how, *args)
        front, port = self.web(how, *args, f"{scheme}://127.0.0.1:{back_port}")
        return front, back, port

    def drive(self, port, way, count, threads):
        def one(number):
            wire = Wire(("127.0.0.1", port))
            for i in range(count // threads):
                self.assertEqual(wire.get(f"/{way}/{way[0]}{number}x{i}"), 200)
            wire.close()
        at_once(one, range(threads))

    def curl(self, port, way, count, *options):
        """Over TLS, many at a time: with HTTP/2 as streams of one connection."""
        done = subprocess.run(["curl", "-sSk", "-Z", "--parallel-max", "16", *options, "-o", "/dev/null", "-w", "%{http_code} %{http_version}\n",
                               f"https://127.0.0.1:{port}/{way}/[1-{count}]"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=True)
        return collections.Counter(done.stdout.split("\n")[:-1])

    def check(self, spans, front, back, way, requests, calls):
        """Every request and call once, each call under the request with its number, the other end under the call."""
        by_id = {s.id: s for s in spans}
        got, ends = collections.Counter(), collections.Counter()
        for s in spans:
            above = by_id.get(s.parent)
            if s.pid == front.pid and s.kind == SERVER and s.target.startswith(f"/{way}/"):
                got["requests"] += 1
            elif s.pid == front.pid and s.kind == CLIENT:
                right = above and above.pid == front.pid and above.target == "/" + way + "/" + s.target.split("/")[2]
                got["calls, " + ("right" if right else "wrong" if above else "none")] += 1
            elif s.pid == back.pid and s.kind == SERVER:
                got["answers"] += 1
                joined = above and above.kind == CLIENT and above.pid == front.pid and above.target == s.target
                ends["right" if joined else "wrong" if above else "none"] += 1
        self.measured(f"{way}: {dict(got)}; both ends: {dict(ends)}")
        self.assertEqual(ends["wrong"], 0)
        self.assertEqual(got, {"requests": requests, "calls, right": requests * calls, "answers": requests * calls})

    def chain(self, how, way, calls, *args, count=400, threads=16, name="agent"):
        front, back, port = self.pair(how, *args)
        agent = self.agent("-p", str(front.pid), "-p", str(back.pid), name=name)
        self.drive(port, way, count, threads)
        self.check(agent.stop(), front, back, way, count, calls)

    def test_calls_in_turn(self):
        self.chain("plain", "turn", 2)

    def test_goroutines_of_a_handler(self):
        self.chain("plain", "both", 2)

    def over_tls(self, *args, way="turn", version="2", options=(), count=200, later=False):
        agent = self.agent("--comm", "stripped") if later else None
        front, back, port = self.pair("stripped", "tls", *args)
        if later:  # before it has done anything with a socket; on a busy machine that takes its time
            wait_until("the program to be recognised", lambda: any(
                row["name"] == "go_programs" and row["value"] for row in agent.status()["ledger"]))
        agent = agent or self.agent("-p", str(front.pid), "-p", str(back.pid))
        answers = self.curl(port, way, count, *options)
        self.assertEqual(answers, {f"200 {version}": count})
        spans = agent.stop()
        self.check(spans, front, back, way, count, 2)
        for s in spans:
            self.assertEqual((s.attributes.get("network.protocol.version"), s.status), (version, 200), s)

    def test_rule_by_port(self):
        """Of a program that no rule wants but for a port, its other connections are none whose place was not found."""
        front, back, port = self.pair("stripped", "tls", "h1")
        agent = self.agent("--tls", "always", "--include", f"port={port}")
        self.curl(port, "turn", 40)
        wait_until("the port's requests", lambda: agent.ledger()["trace", "spans"] >= 160)
        self.assertEqual(agent.ledger()["kernel", "go_unplaced"], 0)
        spans = agent.stop()
        self.assertEqual(collections.Counter((s.pid == front.pid, s.kind) for s in spans),
                         {(False, CLIENT): 40, (True, SERVER): 40, (True, CLIENT): 80})

    def test_tls(self):
        self.over_tls("h1", version="1.1")

    def test_http2(self):
        self.over_tls()

    def test_started_after_the_agent(self):
        """Recognised when it is executed: without the first bytes HTTP/2's header fields would have no names."""
        self.over_tls(later=True)

    def test_http2_goroutines_of_a_handler(self):
        self.over_tls(way="both")

    def test_containers_of_one_image(self):
        """The same executable in two layered mounts is one file to the kernel: its probes are there once."""
        homes = layered(self.place, [build("stripped", self.release)])
        if not homes:
            self.skipTest("no overlay mounts here")
        ports = [free_port() for _ in homes]
        servers = [self.place.spawn_server([f"{home}/stripped", str(port), "tls", "h1"]) for home, port in zip(homes, ports)]
        agent = self.agent(*sum((["-p", str(s.pid)] for s in servers), []))
        for port in ports:
            self.curl(port, "leaf", 40)
        spans = agent.stop()
        for server in servers:
            self.assert_same(spans.where(SERVER, {server.pid}).triples(),
                             collections.Counter(("GET", f"/leaf/{i}", 200) for i in range(1, 41)), "a container's requests")

    def test_written_anew(self):
        """What is written into a program's file is another program, however soon after the first has ended it is started."""
        path = self.place.path("web")
        shutil.copy(build("plain", self.release), path)
        agent = self.agent()

        def programs():
            return sum(r["value"] for r in agent.status()["ledger"] if r["name"] == "go_programs")

        before = programs()
        for n in (1, 2):
            server = self.place.spawn_server([path, str(free_port())])
            wait_until("the program to be recognised", lambda n=n: programs() >= before + n)
            stop(server)
            with open(path, "r+b") as f:  # the same bytes: probes that are still there do no harm
                data = f.read()
                f.seek(0)
                f.write(data)
        agent.stop(settle=False)

    def test_no_probe_in_another_program(self):
        """Probes stay a while after a program's end: what is written into its file meanwhile has none of them in it."""
        path, pipe = self.place.path("web"), self.place.path("pipe")
        shutil.copy(build("plain", self.release), path)
        agent = self.agent()
        server = self.place.spawn_server([path, str(free_port())])
        wait_until("the program to be recognised", lambda: any(
            row["name"] == "go_programs" and row["value"] for row in agent.status()["ledger"]))
        stop(server)
        with open(RINGSPAN, "rb") as source, open(path, "r+b") as f:
            f.write(source.read())
            f.truncate()
        os.mkfifo(pipe)
        other = self.place.spawn([path, "replay", pipe])
        where, _, offset = wait_until("its text", lambda: [line.split()[:3] for line in open(f"/proc/{other.pid}/maps")
                                                                if line.rstrip().endswith(path) and " r-xp " in line])[0]
        begin, end = (int(x, 16) for x in where.split("-"))
        with open(path, "rb") as f, open(f"/proc/{other.pid}/mem", "rb") as mem:
            f.seek(int(offset, 16))
            mem.seek(begin)
            want, has = f.read(end - begin), mem.read(end - begin)
        self.assertEqual([hex(i) for i in range(len(want)) if want[i] != has[i]], [], "its instructions are not those of its file")
        agent.stop(settle=False)

    def test_stripped(self):
        self.chain("stripped", "both", 2)

    def test_stacks_move_while_probes_come_and_go(self):
        """Stacks grow under calls that are probed; the program must not notice, nor its answers change."""
        front, back, port = self.pair("plain")

        def come_and_go():
            for n in range(100 if RELEASES else 3):
                agent = self.agent("-p", str(front.pid), "-p", str(back.pid), name=f"agent{n}")
                stop(agent.process)
        rounds = 0
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            other = pool.submit(come_and_go)
            while not other.done():
                self.drive(port, "deep", 64, 8)
                rounds += 1
        other.result()
        self.measured(f"{rounds * 64} requests")
        self.assertIsNone(front.poll())
        self.assertIsNone(back.poll())
        wire = Wire(("127.0.0.1", port))
        wire.send("GET /count HTTP/1.1\r\nHost: x\r\n\r\n")
        wire.head()
        self.assertEqual((wire.rest or wire.more()), b"0")

    def test_releases(self):
        """Every release, with its debug information, without, and position-independent."""
        if not RELEASES:
            self.skipTest("make check-go: fetches releases of Go")
        for self.release in RELEASES:
            for how in BUILDS:
                with self.subTest(self.release + " " + how):
                    self.chain(how, "both", 2, count=64, name=f"agent-{self.release}-{how}")
