# SPDX-License-Identifier: Apache-2.0
"""Events: what the kernel saw of a request is on its span, and on no other."""
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

from harness import CLIENT, SERVER, SERVERS, Failure, LiveTest, Wire, free_port, python, wait_until

TROUBLE = ("tcp.rto", "tcp.retransmit", "tcp.zero_window", "tcp.reset", "process.signal", "process.oom_kill",
           "process.exit")


def troubles(span):
    return {n for n in span.event_names if n in TROUBLE}


class Namespace:
    """A network namespace with loopback and nft: packets that arrive can be dropped."""

    def __init__(self, name):
        self.name = f"{name}{os.getpid()}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        self.run("ip", "link", "set", "lo", "up")

    def argv(self, *argv):
        return ["ip", "netns", "exec", self.name, *argv]

    def run(self, *argv, **kw):
        return subprocess.run(self.argv(*argv), check=True, **kw)

    def drop(self, what):
        """what: an nft expression, such as `tcp dport 80`; None: nothing is dropped any more."""
        if what is None:
            self.run("nft", "flush", "ruleset")
        else:
            rules = f"table inet t {{\nchain p {{ type filter hook prerouting priority -300;\n{what} drop\n}}\n}}\n"
            self.run("nft", "-f", "-", input=rules.encode())

    def close(self):
        subprocess.run(["ip", "netns", "del", self.name], check=True)


def no_namespace():
    for tool in ("ip", "nft"):
        if not shutil.which(tool):
            return f"no {tool} here"
    try:
        ns = Namespace("rst")
    except subprocess.CalledProcessError:
        return "network namespaces cannot be made here"
    try:
        ns.drop("tcp dport 1 numgen inc mod 2 == 0")
    except subprocess.CalledProcessError:
        return "nft cannot drop packets here"
    finally:
        ns.close()
    return ""


# A server of one thread that shares its CPU with a program that never rests. What it is asked for tells where it waits
# for that CPU: in the request, or behind its answer, before it reads the next one.
WAITS = """
import os, socket, subprocess, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
subprocess.Popen([sys.executable, "-c", "import os\\np = os.getppid()\\nwhile os.getppid() == p: pass"])
def wait():
    waited = lambda: int(open("/proc/self/schedstat").read().split()[1])
    end = waited() + 20_000_000
    while waited() < end:
        pass
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listens", flush=True)
conn = s.accept()[0]
while data := conn.recv(4096):
    if b"/within" in data:
        wait()
    conn.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
    if b"/behind" in data:
        wait()
"""


# Answers in one write or, when another request has come meanwhile, in two; or ends with the request open.
ANSWERS = """
import os, socket, sys, threading
go = threading.Event()
def serve(conn):
    while data := conn.recv(4096):
        if b"/exit" in data:
            os._exit(7)
        conn.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\n\\r\\n" + (b"" if b"/two" in data else b"body"))
        if b"/two" in data:
            go.wait()
            conn.sendall(b"body")
        if b"/go" in data:
            go.set()
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listens", flush=True)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],)).start()
"""


class Events(LiveTest):
    def in_namespace(self, code, *args):
        """Run Python in the namespace; its output."""
        done = subprocess.run(self.ns.argv(sys.executable, "-c", code, *args), stdout=subprocess.PIPE, text=True,
                              timeout=60, cwd=os.path.dirname(__file__))
        self.assertEqual(done.returncode, 0)
        return done.stdout

    def on(self, spans, target, kind):
        found = [s for s in spans if s.target == target and s.kind == kind]
        self.assertEqual(len(found), 1, f"{kind} {target}: {spans}")
        return found[0]

    def check_only(self, spans, wanted):
        """wanted: (target, kind) -> events that must be there; spans not named have none."""
        for s in spans:
            want = wanted.get((s.target, s.kind), set())
            self.assertEqual(troubles(s) & want, want, s)
            if not want:
                self.assertEqual(troubles(s), set(), s)

    def test_rto_and_loss(self):
        why = no_namespace()
        if why:
            self.skipTest(why)
        self.ns = Namespace("rse")
        try:
            port = str(free_port())
            log = self.place.path("log")
            self.place.spawn_server(self.ns.argv(sys.executable, os.path.join(SERVERS, "server.py"), port, log))
            agent = self.agent("--port", port)
            self.in_namespace("""
import socket, sys, subprocess, threading, time
from harness import Wire
port = sys.argv[1]
def nft(rules): subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)
DROP = "table inet t {\\nchain p { type filter hook prerouting priority -300;\\n%s drop\\n}\\n}\\n"
def hole(rule):  # packets are lost until the client's timer has run out (tcpi_retransmits): a probe before it is no timeout
    nft(DROP % rule)
    def end():
        while not hit.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[2]: time.sleep(0.01)
        nft("flush ruleset")
    threading.Thread(target=end).start()
calm, hit = Wire(("127.0.0.1", int(port))), Wire(("127.0.0.1", int(port)))
calm.get("/s/200?before"); hit.get("/s/200?before2")
slow = threading.Thread(target=lambda: calm.get("/slow/700?meanwhile")); slow.start()
time.sleep(0.05)
hole(f"tcp sport {hit.sock.getsockname()[1]}")
hit.get("/s/200?request")
slow.join()
hole(f"tcp dport {hit.sock.getsockname()[1]}")
hit.get("/s/200?answer")
calm.get("/s/200?after")
""", port)
            spans = agent.stop()
        finally:
            self.ns.close()
        # The server's answer was written, and its span has ended, before its timer ran out; the client did not get
        # its acknowledgement either, and sent again.
        self.check_only(spans, {("/s/200?request", CLIENT): {"tcp.rto"}, ("/s/200?answer", CLIENT): {"tcp.rto"}})
        self.on(spans, "/slow/700?meanwhile", CLIENT)
        late = self.on(spans, "/s/200?request", CLIENT)
        self.assertGreater(late.ms, 190)

    def test_zero_window(self):
        """The client does not read: the server's answer waits for room, and says so."""
        process, port, _ = python(self.place)
        agent = self.agent("--port", port)
        wire, other = Wire(("127.0.0.1", int(port)), 30), Wire(("127.0.0.1", int(port)))
        wire.send("GET /big/16 HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until("the server to find no room", lambda: wire.peer_state()[1] == 4)
        other.get("/s/200?meanwhile")
        wire.response()
        spans = agent.stop()
        self.check_only([s for s in spans if s.target != "/big/16"], {})
        self.assertIn("tcp.zero_window", self.on(spans, "/big/16", SERVER).event_names)
        self.assertNotIn("tcp.zero_window", self.on(spans, "/big/16", CLIENT).event_names)

    def test_reset_by_peer(self):
        process, port, _ = python(self.place)
        agent = self.agent("--port", port)
        wire, other = Wire(("127.0.0.1", int(port))), Wire(("127.0.0.1", int(port)))
        target = "/slow/100000?reset"
        done = threading.Thread(target=lambda: other.get("/slow/300?meanwhile"))
        done.start()
        wire.send(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n")
        wire.wait_read()
        wire.reset()
        done.join()
        agent.wait_for("the server's span", lambda s: s.kind == SERVER and s.target == target)
        spans = agent.stop()
        self.check_only(spans, {(target, SERVER): {"tcp.reset"},
                                (target, CLIENT): {"tcp.reset"} if "tcp.reset" in self.on(
                                    spans, target, CLIENT).event_names else set()})
        reset, = [e for e in self.on(spans, target, SERVER).raw["events"] if e["name"] == "tcp.reset"]
        self.assertEqual(reset["attributes"], {"network.io.direction": "receive"})

    def test_segv(self):
        process, port, _ = python(self.place)
        _, calm, _ = python(self.place)
        agent = self.agent("--port", port, "--port", calm)
        other = Wire(("127.0.0.1", int(calm)))
        done = threading.Thread(target=lambda: other.get("/slow/300?meanwhile"))
        done.start()
        with self.assertRaises((Failure, OSError)):
            Wire(("127.0.0.1", int(port))).get("/segv")
        done.join()
        spans = agent.stop()
        self.check_only([s for s in spans if s.target != "/segv"], {})
        event, = [e for e in self.on(spans, "/segv", SERVER).raw["events"] if e["name"] == "process.signal"]
        self.assertEqual(event["attributes"], {"ringspan.signal": signal.SIGSEGV})

    def test_exit(self):
        """A process that ends by itself: told of the request that was open, and with how it ended, by nothing else."""
        port = free_port()
        server = self.place.spawn_server([sys.executable, "-c", ANSWERS, str(port)])
        agent = self.agent("-p", str(server.pid), "-p", str(os.getpid()))
        wire, other = Wire(("127.0.0.1", port)), Wire(("127.0.0.1", port))
        other.get("/one?before")
        with self.assertRaises((Failure, OSError)):
            wire.get("/exit")
        self.assertEqual(server.wait(), 7)
        agent.wait_for("the spans", lambda s: s.target == "/exit", 2)
        spans = agent.stop()
        self.check_only([s for s in spans if s.target != "/exit"], {})
        span = self.on(spans, "/exit", SERVER)
        event, = [e for e in span.raw["events"] if e["name"] in TROUBLE]
        self.assertEqual((event["name"], event["attributes"]), ("process.exit", {"process.exit.code": 7}))
        self.assertEqual((span.status, span.error), (None, "process_exited"))
        self.assertNotIn("process.exit", self.on(spans, "/exit", CLIENT).event_names)

    def test_first_byte(self):
        """Where an answer goes on for long after its first byte, the span says when that was; in one write there is no after."""
        port = free_port()
        server = self.place.spawn_server([sys.executable, "-c", ANSWERS, str(port)])
        agent = self.agent("-p", str(server.pid), "-p", str(os.getpid()))
        wire, other = Wire(("127.0.0.1", port)), Wire(("127.0.0.1", port))
        wire.get("/one")
        wire.send("GET /two HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wire.head()
        time.sleep(0.005)
        other.get("/go")
        while len(wire.rest) < 4:
            wire.more()
        agent.wait_for("the spans", lambda s: True, 6)
        spans = agent.stop()
        self.assertNotIn("response.first_byte", self.on(spans, "/one", SERVER).event_names)
        for kind in (SERVER, CLIENT):
            span = self.on(spans, "/two", kind)
            event, = [e for e in span.raw["events"] if e["name"] == "response.first_byte"]
            self.assertLessEqual(span.start, event["time_unix_nano"])
            self.assertGreaterEqual(span.end - event["time_unix_nano"], 1_000_000)

    def memory_cgroup(self):
        """A cgroup with 64 MB of memory: its directory, or None."""
        name = f"rs-oom-{os.getpid()}"
        for base, limits in (("/sys/fs/cgroup", ("memory.max", "memory.swap.max")),
                             ("/sys/fs/cgroup/memory", ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"))):
            path = os.path.join(base, name)
            try:
                os.mkdir(path)
            except OSError:
                continue
            if not os.path.exists(os.path.join(path, limits[0])):  # not this hierarchy's, or no hierarchy at all
                os.rmdir(path)
                continue
            with open(os.path.join(path, limits[0]), "w") as f:
                f.write(str(64 << 20))
            try:
                with open(os.path.join(path, limits[1]), "w") as f:
                    f.write("0" if limits[1].endswith("max") else str(64 << 20))
            except OSError:
                pass  # no swap accounting: there is none here
            return path
        return None

    def test_oom_kill(self):
        path = self.memory_cgroup()
        if not path:
            self.skipTest("no cgroup with a memory controller can be made here")
        try:
            process, port, _ = python(self.place)
            _, calm, _ = python(self.place)
            with open(os.path.join(path, "cgroup.procs"), "w") as f:
                f.write(str(process.pid))
            agent = self.agent("--port", port, "--port", calm)
            other = Wire(("127.0.0.1", int(calm)))
            done = threading.Thread(target=lambda: other.get("/slow/400?meanwhile"))
            done.start()
            with self.assertRaises((Failure, OSError)):
                Wire(("127.0.0.1", int(port))).get("/hog/512")
            process.wait()
            done.join()
            spans = agent.stop()
        finally:
            wait_until("the cgroup to be empty", lambda: not open(os.path.join(path, "cgroup.procs")).read())
            os.rmdir(path)
        self.check_only([s for s in spans if s.target != "/hog/512"], {})
        self.assertIn("process.oom_kill", self.on(spans, "/hog/512", SERVER).event_names)
        self.assertNotIn("process.oom_kill", self.on(spans, "/hog/512", CLIENT).event_names)

    def test_run_queue_wait(self):
        """A wait for a CPU is told of the request that waited; behind an answer nobody waits, and nothing is sent."""
        port = free_port()
        server = self.place.spawn_server([sys.executable, "-c", WAITS, str(port)])
        agent = self.agent("-p", str(server.pid), "--run-queue-wait", "15ms")
        wire = Wire(("127.0.0.1", port), 60)
        for i in range(3):
            wire.get(f"/within?{i}")
            wire.get(f"/behind?{i}")
        agent.wait_for("the spans", lambda s: True, 6)
        idle = agent.counter("conn", "facts_idle")
        spans = agent.stop()
        for i in range(3):
            self.assertIn("thread.run_queue_wait", self.on(spans, f"/within?{i}", SERVER).event_names)
        self.assertEqual(idle, 0)
