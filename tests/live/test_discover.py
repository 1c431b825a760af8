# SPDX-License-Identifier: Apache-2.0
"""Which processes are traced, by rules; the config file read again; what peers are called."""
import json
import os
import shutil
import subprocess
import sys
import unittest

from harness import CLIENT, RINGSPAN, SERVER, SERVERS, SLOW, LiveTest, Nginx, Wire, free_port, node, python, stop, wait_until

# Listens, answers ten requests and is gone: a job of a container that lives for less than a second.
SHORT = """
let left = 10;
const server = require('http').createServer((req, res) => {
	res.end('x', () => { if (!--left) process.exit(0); });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
"""


def cgroup_top():
    """Where cgroups can be made: version 2's mount, or version 1's named hierarchy or first one."""
    mounts = [line.split() for line in open("/proc/mounts")]
    two = [m[1] for m in mounts if m[2] == "cgroup2"]
    one = [m[1] for m in mounts if m[2] == "cgroup" and "cpu" in m[3].split(",")]
    return (two + one + ["/sys/fs/cgroup"])[0]


def ten_requests(place):
    process = place.spawn(["node", "-e", SHORT], stdout=subprocess.PIPE)
    wire = Wire(("127.0.0.1", int(process.stdout.readline())))
    for i in range(10):
        wire.get(f"/short/{i}")
    process.wait(20 * SLOW)
    return process.pid


class Discover(LiveTest):
    def why_not(self, agent, pid):
        rows = [p for p in agent.status()["processes"] if p["pid"] == pid]
        return rows[0]["why_not"] if rows else None

    def reload(self, agent):
        done = subprocess.run([RINGSPAN, "reload", "--json", "--socket", agent.socket], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=20 * SLOW)
        return done.returncode, json.loads(done.stdout)

    def test_short_lived(self):
        """Each from its first instruction, though no rule knew of them before."""
        agent = self.agent("--include", "exe=node,service=job")
        pids = [ten_requests(self.place) for _ in range(3)]
        spans = agent.stop()
        self.assertEqual({s.service for s in spans}, {"job"}, "only what the rule fits is traced")
        for pid in pids:
            got = sorted(s.target for s in spans.where(SERVER, {pid}))
            self.assertEqual(got, [f"/short/{i}" for i in range(10)])

    def test_exclude(self):
        nginx = Nginx(self.place)
        process, port, _ = node(self.place)
        quiet, quiet_port, _ = python(self.place)
        other, other_port, _ = python(self.place)
        agent = self.agent("-p", str(os.getpid()), "--exclude", "exe=node", "--include", f"port={quiet_port},depth=none", "--include",
                           f"port={other_port},protocols=http2", "--others", "trace")
        for i in range(3):
            Wire(("127.0.0.1", nginx.port)).get(f"/s/200?in{i}")
            Wire(("127.0.0.1", int(port))).get(f"/s/200?out{i}")
            Wire(("127.0.0.1", int(quiet_port))).get(f"/s/200?none{i}")
            Wire(("127.0.0.1", int(other_port))).get(f"/s/200?other{i}")
        wait_until("the exclusion", lambda: self.why_not(agent, process.pid) == "excluded by --exclude")
        wait_until("the depth", lambda: self.why_not(agent, quiet.pid) == "its rule says depth: none")
        spans = agent.stop()
        self.assertEqual([s.target for s in spans.where(SERVER, nginx.pids)], [f"/s/200?in{i}" for i in range(3)])
        self.assertEqual(spans.where(SERVER, {process.pid, quiet.pid, other.pid}), [])

    def test_port(self):
        """A process is found by the port it listens on, or by one that a connection of it has."""
        old, old_port, _ = python(self.place)
        out, out_port, _ = python(self.place)
        wire = Wire(("127.0.0.1", int(old_port)))
        wire.get("/s/200?before")
        new_port = free_port()
        agent = self.agent("--include", f"port={old_port},port={new_port},service=by-port", "--exclude",
                           f"comm={open('/proc/self/comm').read().strip()},exe={sys.executable},port=1")
        wire.get("/s/200?open")
        new, _, _ = node(self.place, listen=str(new_port))
        for i in range(3):
            Wire(("127.0.0.1", int(out_port))).get(f"/s/200?out{i}")
            Wire(("127.0.0.1", new_port)).get(f"/s/200?new{i}")
        spans = agent.stop()
        self.assertEqual([s.target for s in spans.where(SERVER, {old.pid})], ["/s/200?open"])
        self.assertEqual([s.target for s in spans.where(SERVER, {new.pid})], [f"/s/200?new{i}" for i in range(3)])
        self.assertEqual(spans.where(SERVER, {out.pid}), [])

    def test_service_of_port(self):
        """A port's rule chooses both ends of its connections, and names the one that listens."""
        _, port, _ = python(self.place)
        agent = self.agent("--include", f"port={port},service=shop")
        for i in range(3):
            subprocess.run(["curl", "-so", "/dev/null", f"http://127.0.0.1:{port}/s/200?c{i}"], check=True)
        spans = agent.stop()
        for kind, named in ((SERVER, True), (CLIENT, False)):
            names = [s.raw["resource"].get("service.name") for s in spans.where(kind)]
            self.assertEqual([n == "shop" for n in names], [named] * 3, names)

    def test_cgroup_and_user(self):
        top = cgroup_top()
        group = os.path.join(top, f"rs-live-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError as e:
            raise unittest.SkipTest(f"no cgroup can be made: {e}") from None
        try:
            agent = self.agent("--include", f"cgroup=/{os.path.basename(group)},user=root,service=grouped")
            inside = self.place.spawn(["sh", "-c", f"echo $$ > {group}/cgroup.procs; exec node -e \"$0\"", SHORT],
                                      stdout=subprocess.PIPE)
            wire = Wire(("127.0.0.1", int(inside.stdout.readline())))
            for i in range(10):
                wire.get(f"/in/{i}")
            inside.wait(20 * SLOW)
            outside = ten_requests(self.place)
            spans = agent.stop()
        finally:
            os.rmdir(group)
        self.assertEqual(len(spans.where(SERVER, {inside.pid})), 10)
        self.assertEqual({s.service for s in spans}, {"grouped"})
        self.assertEqual(spans.where(pids={outside}), [])

    def test_reload(self):
        one, one_port, _ = python(self.place)
        two, two_port, _ = node(self.place)
        wires = [Wire(("127.0.0.1", int(port))) for port in (one_port, two_port)]
        path = self.place.path("ringspan.yaml")

        def config(text):
            with open(path, "w") as f:
                f.write(text)

        config(f"discovery:\n  include:\n    - {{port: {one_port}, service: first}}\n")
        agent = self.agent("-c", path, command="run")
        for wire in wires:
            wire.get("/s/200?a")
        config(f"discovery:\n  include:\n    - {{port: {one_port}, service: second}}\n    - {{exe: node, service: other}}\n"
               "kernel: {ring-size: 4m}\n")
        self.assertEqual(self.reload(agent), (0, {"file": path, "error": "", "applied": ["include"],
                                                  "restart": ["ring-size"]}))
        for wire in wires:
            wire.get("/s/200?b")
        # What is wrong changes nothing, and all who ask are told.
        config("discovery:\n  include:\n    - {usr: a}\n")
        code, answer = self.reload(agent)
        wrong = f"{path}:3:8: a rule has no key 'usr'; did you mean 'user'?"
        self.assertEqual((code, answer["error"]), (1, wrong))
        self.assertEqual(agent.status()["config"]["error"], wrong)
        self.assertIn(f"reload: {wrong}", agent.stderr())
        # Nor does what is no file to be read, which must not stop the agent either.
        for make, word in ((lambda: None, "No such file"), (lambda: os.mkfifo(path), "no regular file"),
                           (lambda: os.mkdir(path), "Is a directory"), (lambda: os.symlink("/dev/zero", path), "no regular file"),
                           (lambda: config("#" * 300000), "larger than")):
            os.rmdir(path) if os.path.isdir(path) else os.remove(path) if os.path.lexists(path) else None
            make()
            code, answer = self.reload(agent)
            self.assertEqual(code, 1)
            self.assertIn(word, answer["error"])
        for wire in wires:
            wire.get("/s/200?c")
        config("discovery: {include: [{exe: node, sample: 0}]}\n")
        os.kill(agent.process.pid, 1)
        wait_until("SIGHUP to be heard", lambda: agent.status()["config"]["error"] == "")
        for wire in wires:
            wire.get("/s/200?d")
        wait_until("a request that is not sampled", lambda: [r for r in agent.status()["ledger"]
                                                             if r["name"] == "sampled_out" and r["value"]])
        spans = agent.stop()
        self.assertEqual([(s.service, s.target[-1]) for s in spans.where(SERVER, {one.pid})],
                         [("first", "a"), ("second", "b"), ("second", "c")])
        self.assertEqual([(s.service, s.target[-1]) for s in spans.where(SERVER, {two.pid})],
                         [("other", "b"), ("other", "c")])


def is_ours(span):
    return span.attributes.get("network.peer.address") == "127.0.0.9"


class Names(LiveTest):
    """A network namespace with a name server of its own."""

    def setUp(self):
        super().setUp()
        self.ns = f"rslive{os.getpid()}"
        if subprocess.run(["ip", "netns", "add", self.ns], stderr=subprocess.DEVNULL, check=False).returncode:
            raise unittest.SkipTest("network namespaces cannot be made here")
        os.makedirs(f"/etc/netns/{self.ns}")
        with open(f"/etc/netns/{self.ns}/resolv.conf", "w") as f:
            f.write("nameserver 127.0.0.1\n")
        subprocess.run(["ip", "-n", self.ns, "link", "set", "lo", "up"], check=True)
        self.inside = ["ip", "netns", "exec", self.ns]

    def tearDown(self):
        for process in self.place.processes:
            stop(process)
        subprocess.run(["ip", "netns", "del", self.ns], check=False)
        shutil.rmtree(f"/etc/netns/{self.ns}", ignore_errors=True)
        super().tearDown()

    def test_peers(self):
        self.place.spawn_server([*self.inside, sys.executable, os.path.join(SERVERS, "names.py"), "127.0.0.9"])
        server = os.path.join(SERVERS, "server.js")
        self.place.spawn_server([*self.inside, "node", server, "127.0.0.9:8080", self.place.path("log")])
        # Of a server that is not traced, what it was asked for by; of one that is, its service.
        asked = [self.agent("--include", "comm=curl", "--capture", b, name=b) for b in ("socket", "syscall")]
        both = self.agent("--include", "comm=curl", "--include", "port=8080,service=shop", name="both")
        for url in ("http://Shop.example.com:8080/s/200", "http://bare.example.com:8080/s/200"):
            bare = ["-0", "-H", "Host:"] if "bare" in url else []
            subprocess.run([*self.inside, "curl", "-s", *bare, url], check=True, stdout=subprocess.DEVNULL)
        # There may be others' curl on this machine; nobody else has this address.
        spans = both.stop().where(CLIENT, test=is_ours)
        self.assertEqual([s.attributes.get("service.peer.name") for s in spans], ["shop", "shop"])
        for agent in asked:
            spans = agent.stop().where(CLIENT, test=is_ours)
            self.assertEqual([(s.attributes["server.address"], s.attributes["service.peer.name"]) for s in spans],
                             [("Shop.example.com", "shop.example.com"), ("bare.example.com", "bare.example.com")])
