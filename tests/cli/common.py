# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: running ringspan, agents in the background, servers for them to trace."""
import http.client
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from suite import expect, Failure

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
RINGSPAN = os.environ.get("RINGSPAN", os.path.join(TOP, "build", "ringspan"))
COMMANDS = "trace run reload config status debug bugreport check record replay encode version".split()
WAIT = 120  # seconds until something that should have happened is taken for never happening


def ringspan(*args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=None, prefix=()):
    return subprocess.run([*prefix, RINGSPAN, *args], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, text=True,
                          timeout=WAIT, env={**os.environ, **(env or {})})


def fails(done, code, *parts):
    """The run ended with `code` and one line of error that has all parts."""
    line = done.stderr.rstrip("\n")
    expect(done.returncode == code, f"exit code {done.returncode}, not {code}: {line!r}")
    expect(line.startswith("ringspan: error: ") and "\n" not in line, f"not one line of error: {line!r}")
    for part in parts:
        expect(part in line, f"no {part!r} in {line!r}")


def needs_root():
    if os.geteuid():
        raise unittest.SkipTest("needs root")


_can_capture = None


def can_capture():
    global _can_capture
    if _can_capture is None:
        _can_capture = os.geteuid() == 0 and ringspan("check").returncode == 0
    return _can_capture


def needs_capture():
    if not can_capture():
        raise unittest.SkipTest("BPF programs can not be loaded here")


class Dir:
    """A directory that everybody may enter, gone afterwards."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="rs-cli-")
        os.chmod(self.path, 0o755)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def __call__(self, name, text=None):
        path = os.path.join(self.path, name)
        if text is not None:
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
                f.write(text)
        return path


class Agent:
    """`ringspan run` or another capturing command in the background, capturing when this returns."""

    def __init__(self, *args, stdout=subprocess.DEVNULL):
        self.process = subprocess.Popen([RINGSPAN, *args], stdin=subprocess.DEVNULL, stdout=stdout,
                                        stderr=subprocess.PIPE, text=True)
        self.said = []
        for line in self.process.stderr:
            self.said.append(line)
            if "capturing" in line:
                return
        self.process.wait()
        raise Failure(f"did not start: {''.join(self.said)!r}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        if self.process.stdout:
            self.process.stdout.close()

    def end(self, signo=signal.SIGTERM):
        """Sends a signal; exit code, all that was said, and how long it took."""
        start = time.monotonic()
        self.process.send_signal(signo)
        rest = self.process.stderr.read()
        self.process.wait(WAIT)
        expect("sandbox refused" not in rest, f"user/sandbox/syscalls.def lacks something: {rest}")
        return self.process.returncode, "".join(self.said) + rest, time.monotonic() - start


class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


class Server:
    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def get(self):
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(b"GET /x HTTP/1.0\r\n\r\n")
            while s.recv(4096):
                pass

    def keep_asking(self, process):
        end = time.monotonic() + WAIT
        while process.poll() is None and time.monotonic() < end:
            self.get()
            time.sleep(0.02)


def status(path, *args):
    """What the agent at this socket says of itself."""
    return json.loads(ringspan("status", "--json", "--socket", path, *args).stdout)


SCRIPT = "\n".join(json.dumps(r) for r in (
    {"t": 1000, "type": "open", "conn": 1, "pid": 7, "tid": 7, "comm": "web", "role": "server", "family": "inet",
     "local": "10.0.0.1:80", "peer": "10.0.0.2:4000"},
    {"t": 2000, "type": "data", "conn": 1, "pid": 7, "tid": 7, "dir": "in", "text": "GET /one HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"t": 5000, "type": "data", "conn": 1, "pid": 7, "tid": 7, "dir": "out",
     "text": "HTTP/1.1 204 No Content\r\n\r\n"})) + "\n"


def certificate(d):
    """(certificate, key) of localhost, signed by itself."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", d("key"),
                    "-out", d("cert")], check=True, capture_output=True)
    return d("cert"), d("key")


class Collector(http.server.BaseHTTPRequestHandler):
    """Counts what is posted to it."""
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts += 1
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def ask(port, path, method="GET"):
    """Status, content type and text of the agent's own HTTP server."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    try:
        c.request(method, path)
        r = c.getresponse()
        return r.status, r.getheader("Content-Type"), r.read().decode()
    finally:
        c.close()


def rights_of(pid):
    """What /proc says of a process's privilege."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return {key: value.strip() for key, _, value in (line.partition(":") for line in f)}


CAPS = {"DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "KILL": 5, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "PERFMON": 38, "BPF": 39,
        "CHECKPOINT_RESTORE": 40}


def mask(*names):
    return f"{sum(1 << CAPS[n] for n in names):016x}"
