# SPDX-License-Identifier: Apache-2.0
"""Containers (runc, a rootfs of the host's files) and pods (their cgroups, a stand-in for the API server)."""
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

from harness import CLIENT, SERVER, SLOW, TOP, Failure, LiveTest, Wire, free_port, python, wait_until

sys.path.insert(0, os.path.join(TOP, "tests", "k8s"))
import fakeapi  # noqa: E402

# Answers ten requests, then ends: its whole life is shorter than a second.
TEN = """
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    left = 10
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
        H.left -= 1
        self.close_connection = H.left == 0
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), H)
print("listens", flush=True)
while H.left:
    server.handle_request()
"""
POD = "0b8f6f0e-52a8-4d5c-9c55-{:012x}"


class Runc:
    """A container in the host's network, below cgroups of its own."""

    def __init__(self, place, ident, group, argv, copies=()):
        self.ident = ident
        self.group = group
        self.dir = place.path("bundle-" + ident[-8:])
        self.runc = ["runc", "--root", place.path("runc")]  # another run of this test has containers of the same names
        root = os.path.join(self.dir, "rootfs")
        mounts = [{"destination": "/proc", "type": "proc", "source": "proc"},
                  {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
                  {"destination": "/tmp", "type": "bind", "source": "/tmp", "options": ["rbind"]}]
        for d in ("proc", "dev", "tmp"):
            os.makedirs(os.path.join(root, d))
        for d in () if copies else ("usr", "bin", "lib", "lib64", "etc"):
            if os.path.isdir("/" + d):
                os.makedirs(os.path.join(root, d))
                mounts.append({"destination": "/" + d, "type": "bind", "source": "/" + d, "options": ["rbind", "ro"]})
        for path in copies:
            os.makedirs(root + os.path.dirname(path), exist_ok=True)
            shutil.copy(path, root + path)
        with open(os.path.join(self.dir, "config.json"), "w") as f:
            json.dump({"ociVersion": "1.0.2",
                       "process": {"user": {"uid": 0, "gid": 0}, "args": argv, "env": ["PATH=/usr/bin:/bin"], "cwd": "/"},
                       "root": {"path": "rootfs", "readonly": True}, "mounts": mounts,
                       "linux": {"cgroupsPath": f"{group}/{ident}", "namespaces": [{"type": "pid"}, {"type": "mount"}]}}, f)
        self.process = place.spawn([*self.runc, "run", "--no-pivot", "-b", self.dir, ident], stdout=subprocess.PIPE,
                                   stderr=open(place.path("runc.err"), "a"))

    def ready(self):
        if not self.process.stdout.readline():
            raise Failure(self.said())
        return self

    def said(self):
        with open(os.path.join(os.path.dirname(self.dir), "runc.err"), encoding="utf-8") as f:
            return f"runc: {f.read().strip()[-300:]}"

    def clean(self):
        subprocess.run([*self.runc, "delete", "-f", self.ident], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        top = self.group.strip("/").split("/")[0]
        for base, _, _ in list(os.walk("/sys/fs/cgroup", topdown=False)):
            if f"/{top}/" in base + "/":
                try:
                    os.rmdir(base)
                except OSError:
                    pass


class Base(LiveTest):
    refusal = None  # why no container runs on this machine: known after the first test's try

    def setUp(self):
        super().setUp()
        self.group = f"/rs-test-{os.getpid()}"
        self.containers = []
        self.port = free_port()
        if Base.refusal is None:
            Base.refusal = self.try_one() if shutil.which("runc") else "runc is not there"
        if Base.refusal:
            self.place.close(keep=False)
            self.skipTest(Base.refusal)

    def try_one(self):
        c = Runc(self.place, f"{0:064x}", self.group, ["/usr/bin/true"])
        failed = c.process.wait(30 * SLOW)
        c.clean()
        return "no container runs here: " + c.said() if failed else ""

    def tearDown(self):
        for c in self.containers:
            c.clean()
        super().tearDown()

    def run_in(self, argv, n=1, group=None, **more):
        c = Runc(self.place, f"{n:064x}", group or self.group, argv, **more)
        self.containers.append(c)
        return c

    def ten(self, n=1, group=None):
        """A container that serves ten requests and ends; all of that within a second."""
        port = self.port
        c = self.run_in([sys.executable if sys.executable.startswith("/usr/bin") else "/usr/bin/python3", "-c", TEN,
                         str(port)], n, group).ready()
        wire = Wire(("127.0.0.1", port))
        for i in range(10):
            self.assertEqual(wire.get(f"/{n}/{i}"), 200)
        c.process.wait(10 * SLOW)
        return c


class Containers(Base):
    def test_ten_requests_and_gone(self):
        agent = self.agent("--port", str(self.port))
        c = self.ten(group=f"{self.group}/docker")
        spans = agent.stop().where(SERVER, prefix="/1/")
        self.assertEqual(sorted(s.target for s in spans), [f"/1/{i}" for i in range(10)])
        self.assertEqual({s.raw["resource"].get("container.id") for s in spans}, {c.ident})
        self.assertEqual({s.raw["resource"].get("container.runtime.name") for s in spans}, {"docker"})
        self.assertEqual({s.service for s in spans}, {os.path.basename(os.path.realpath("/usr/bin/python3"))})

    def test_chosen_by_name(self):
        """A rule about the runtime's name of a container, from the runtime's own file; of another and of none there are no spans."""
        root = self.place.path("host")
        for n, name in ((1, "web-1"), (2, "db-1")):
            d = os.path.join(root, "var/lib/docker/containers", f"{n:064x}")
            os.makedirs(d)
            with open(os.path.join(d, "config.v2.json"), "w") as f:
                json.dump({"Name": "/" + name, "Config": {"Image": f"shop/{name}:7"}}, f)
        _, outside, _ = python(self.place)
        agent = self.agent("--host-root", root, "--include", "container=web-*,service=chosen")
        chosen = self.ten(1, f"{self.group}/docker")
        self.ten(2, f"{self.group}/docker")
        Wire(("127.0.0.1", int(outside))).get("/s/200?outside")
        spans = agent.stop().where(SERVER)
        self.assertEqual(sorted(s.target for s in spans), [f"/1/{i}" for i in range(10)])
        got = {tuple(s.raw["resource"].get(k) for k in ("container.id", "container.name", "container.image.name", "service.name"))
               for s in spans}
        self.assertEqual(got, {(chosen.ident, "web-1", "shop/web-1", "chosen")})

    def test_clients_that_end_at_once(self):
        """One request each, and container and cgroup are gone."""
        _, port, _ = python(self.place)
        agent = self.agent("--port", port)
        for n in range(1, 9):
            self.run_in(["/usr/bin/curl", "-s", "-o", "/dev/null", f"http://127.0.0.1:{port}/s/200?{n}"], n).process.wait(20 * SLOW)
        spans = agent.stop().where(CLIENT, test=lambda s: "/s/200?" in s.target)
        self.assertEqual({s.target[7:]: s.raw["resource"].get("container.id") for s in spans},
                         {str(n): f"{n:064x}" for n in range(1, 9)})

    def test_outside_there_is_none(self):
        process, port, _ = python(self.place)
        agent = self.agent("--port", port)
        Wire(("127.0.0.1", int(port))).get("/s/200?x")
        span, = agent.stop().where(SERVER, {process.pid})
        if "docker" not in open("/proc/self/cgroup").read():
            self.assertNotIn("container.id", span.raw["resource"])

    def test_tls_library_of_its_own(self):
        """A container with its own copy of OpenSSL: another file than the host's."""
        curl = shutil.which("curl")
        libs = [w for w in subprocess.run(["ldd", curl], stdout=subprocess.PIPE, text=True).stdout.split() if w.startswith("/")]
        if not any("libssl" in lib for lib in libs):
            self.skipTest("curl does not use OpenSSL here")
        key, crt = self.place.path("key.pem"), self.place.path("crt.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", crt, "-days", "2",
                        "-subj", "/CN=localhost"], check=True, stderr=subprocess.DEVNULL)
        port = self.port
        self.place.spawn(["openssl", "s_server", "-accept", str(port), "-key", key, "-cert", crt, "-WWW", "-quiet"],
                         cwd=self.place.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        agent = self.agent("--port", str(port))
        # A file that nobody has run before is looked into when its first TLS is seen: some request after that is the first seen.
        c = self.run_in([curl, "-sk", "--rate", "600/m", "-o", "/dev/null", f"https://127.0.0.1:{port}/crt.pem?own[1-100000]"],
                        copies=[curl, *libs])
        agent.wait_for("the container's requests", lambda s: s.kind == CLIENT and "crt.pem?own" in s.target, 3)
        spans = agent.stop().where(CLIENT, test=lambda s: "crt.pem?own" in s.target)
        self.assertEqual({s.raw["resource"].get("container.id") for s in spans}, {c.ident})

    def test_datadog_headers(self):
        """A message has the spans of one container, and its headers name that."""
        got = []

        class Intake(http.server.BaseHTTPRequestHandler):
            def reply(self, status):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if "traces" in self.path:
                    got.append((self.headers.get("Datadog-Container-ID"), self.headers.get("Datadog-Entity-ID"), body))
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def do_GET(self):
                self.reply(404)

            def do_PUT(self):
                self.reply(200)

            do_POST = do_PUT

            def log_message(self, *args):
                pass

        intake = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Intake)
        threading.Thread(target=intake.serve_forever, daemon=True).start()
        agent = self.agent("--port", str(self.port), "--exporter", f"file,datadog=http://127.0.0.1:{intake.server_address[1]}",
                           "--batch-age", "3s", command="run")
        ids = [self.ten(n).ident for n in (1, 2)]
        wait_until("the messages", lambda: {c for c, _, _ in got} >= set(ids))
        agent.stop()
        intake.shutdown()
        intake.server_close()
        for container, entity, body in got:
            if container:
                self.assertEqual(entity, "ci-" + container)
            for ident in ids:
                self.assertEqual(ident.encode() in body, ident == container)


class Pods(Base):
    def setUp(self):
        super().setUp()
        self.keys = tempfile.TemporaryDirectory(prefix="rs-k8s-")
        self.api = fakeapi.Api(fakeapi.certificate(self.keys.name))
        self.token = os.path.join(self.keys.name, "token")
        with open(self.token, "w") as f:
            f.write("token-1")

    def tearDown(self):
        self.api.stop()
        self.keys.cleanup()
        super().tearDown()

    def pod(self, n):
        return {"metadata": {"name": f"web-5d-{n}", "namespace": "shop", "uid": POD.format(n),
                             "labels": {"app": "web", "pod-template-hash": "5d"},
                             "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d", "uid": "r", "controller": True}]},
                "spec": {"containers": [{"name": "srv", "image": "shop/web:3"}], "nodeName": "testnode"},
                "status": {"phase": "Running", "podIP": f"10.9.9.{n}"}}

    def follow(self, *args):
        agent = self.agent("--port", str(self.port), "--k8s-source", "api", "--k8s-api", self.api.url(), "--k8s-ca", self.api.ca, "--k8s-token",
                           self.token, "--k8s-node", "testnode", *args)
        wait_until("the pods", lambda: agent.status()["kubernetes"]["synced"])
        return agent

    def ledger(self, agent):
        return {row["name"]: row["value"] for row in agent.status()["ledger"] if row["stage"] == "k8s"}

    def serve(self, n):
        return self.ten(n, f"{self.group}/pod{POD.format(n)}")

    def resources(self, agent, n):
        spans = agent.stop().where(SERVER, prefix=f"/{n}/")
        self.assertEqual(len(spans), 10)
        return [s.raw["resource"] for s in spans]

    def test_known_before(self):
        self.api.emit("ADDED", self.pod(1))
        agent = self.follow()
        c = self.serve(1)
        for r in self.resources(agent, 1):
            self.assertEqual({k: r.get(k) for k in
                              ("k8s.pod.name", "k8s.namespace.name", "k8s.deployment.name", "k8s.container.name",
                               "k8s.node.name", "service.name", "service.version", "service.instance.id", "container.id")},
                             {"k8s.pod.name": "web-5d-1", "k8s.namespace.name": "shop", "k8s.deployment.name": "web",
                              "k8s.container.name": "srv", "k8s.node.name": "testnode", "service.name": "web",
                              "service.version": "3", "service.instance.id": "shop.web-5d-1.srv", "container.id": c.ident})

    def test_peer_by_address(self):
        """A client's span names the pod at the address it talks to."""
        pod = self.pod(1)
        pod["status"]["podIP"] = "127.0.0.9"
        self.api.emit("ADDED", pod)
        server = http.server.ThreadingHTTPServer(("127.0.0.9", self.port), http.server.SimpleHTTPRequestHandler)
        server.RequestHandlerClass.log_message = lambda *args: None
        threading.Thread(target=server.serve_forever, daemon=True).start()
        agent = self.follow("--comm", "curl")
        for host in ("127.0.0.9", "[::ffff:127.0.0.9]"):
            subprocess.run(["curl", "-s", "-o", "/dev/null", f"http://{host}:{self.port}/nothing?peer"], check=True)
        spans = agent.stop().where(CLIENT, test=lambda s: "?peer" in s.target)
        server.shutdown()
        server.server_close()
        self.assertEqual([s.attributes.get("service.peer.name") for s in spans], ["web", "web"])

    def test_known_a_little_later(self):
        """The spans wait, and then say all; the process is gone by then."""
        agent = self.follow("--k8s-wait", "60s")
        self.serve(2)
        wait_until("the spans to wait", lambda: self.ledger(agent)["waited"] == 10)
        self.api.emit("ADDED", self.pod(2))
        agent.wait_for("the spans", lambda s: s.kind == SERVER and s.target.startswith("/2/"), 10)
        for r in self.resources(agent, 2):
            self.assertEqual((r.get("service.name"), r.get("k8s.pod.name")), ("web", "web-5d-2"))
            self.assertIn("process.executable.path", r)

    def test_rules_by_label(self):
        """Whether a process is traced hangs on its pod, which is known a little later: nothing is lost meanwhile."""
        agent = self.follow("--k8s-wait", "60s", "--include", "label=app=web,namespace=shop,service=chosen")
        other = self.pod(5)
        other["metadata"]["labels"]["app"] = "other"
        self.serve(4)
        self.serve(5)
        self.api.emit("ADDED", self.pod(4))
        self.api.emit("ADDED", other)
        agent.wait_for("the spans", lambda s: s.kind == SERVER, 10)
        spans = agent.stop().where(SERVER)
        self.assertEqual(sorted({s.target.split("/")[1] for s in spans}), ["4"])
        self.assertEqual([s.service for s in spans], ["chosen"] * 10)

    def left_out(self, agent):
        """Does status say that the container's process is not traced?"""
        return [p["why_not"] for p in agent.status()["processes"] if p["pod"] == "shop/web-5d-6" and "rule" in p["why_not"]]

    def test_labels_change(self):
        """A process that was left out is traced when its pod gets the label."""
        pod = self.pod(6)
        pod["metadata"]["labels"]["app"] = "no"
        self.api.emit("ADDED", pod)
        agent = self.follow("--include", "label=app=web")
        server = self.run_in(["/usr/bin/python3", "-c", TEN, str(self.port)], 6, f"{self.group}/pod{POD.format(6)}").ready()
        Wire(("127.0.0.1", self.port)).get("/6/before")
        wait_until("the decision", lambda: self.left_out(agent))
        pod["metadata"]["labels"]["app"] = "web"
        self.api.emit("MODIFIED", pod)
        wait_until("the decision", lambda: not self.left_out(agent))
        for i in range(3):
            Wire(("127.0.0.1", self.port)).get(f"/6/after{i}")
        spans = agent.stop().where(SERVER, prefix="/6/")
        self.assertEqual(sorted(s.target for s in spans), ["/6/after0", "/6/after1", "/6/after2"])
        self.assertTrue(server)

    def test_never_known(self):
        """Sent all the same, when the time is over, and counted."""
        agent = self.follow("--k8s-wait", "500ms")
        self.serve(3)
        wait_until("the spans", lambda: self.ledger(agent)["without"] == 10)
        for r in self.resources(agent, 3):
            self.assertEqual(r.get("k8s.pod.uid"), POD.format(3))
            self.assertNotIn("k8s.pod.name", r)

