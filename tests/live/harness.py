# SPDX-License-Identifier: Apache-2.0
"""What the live tests share: the agent, real servers, load, and spans as plain tuples.

Everything runs on the loopback addresses, on ports that nobody has, in a directory of its own below
build/live, and is ended by process id by the one who started it.
"""
import collections
import concurrent.futures
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(TOP, "tests"))
import suite  # noqa: E402
from suite import Failure, free_port  # noqa: E402

SERVERS = os.path.join(TOP, "tests", "live", "servers")
RINGSPAN = os.environ.get("RINGSPAN", os.path.join(TOP, "build", "ringspan"))
# All limits are multiplied by this. They are there so that a hung test ends, and judge nothing: patience costs nothing.
SLOW = float(os.environ.get("RS_TEST_PATIENCE", "5"))

# For tests of load that want nothing lost: on a busy machine the agent may have to wait for a CPU longer than the default
# ring lasts.
ROOM = ("--ring-size", "64m")

SERVER, CLIENT = "server", "client"

# Rows of the ledger that are dropped, but no loss of what is traced: other protocols on this machine, connections
# that were cut off or older than the agent. What matters of them shows in the comparison of the spans.
NO_LOSS = {("stream", name) for name in ("unknown_protocol", "out_of_step", "unfinished", "late", "not_captured", "not_copied")}
# Another agent on this machine sends its reports: left out on purpose.
NO_LOSS |= {("trace", "own_reports"), ("trace", "probes"), ("trace", "excluded"), ("conn", "excluded")}
# Runs that the kernel left out, such as the end of one connection while another's is noted on the same CPU. One that
# matters, a read or a write, shows in the comparison of the spans.
NO_LOSS.add(("kernel", "missed"))
# What became of TLS connections, those of other programs on this machine too: the comparison of the spans shows it.
NO_LOSS |= {("tls", name) for name in ("late", "left_alone", "no_library", "too_dear", "not_probed")}
NO_LOSS |= {("proto", "invalid"), ("kernel", "head_cut"), ("kernel", "read_fault")}
NO_LOSS |= {("kernel", f"nodata_{why}") for why in ("sendfile", "uring", "compat", "other")}


def wait_until(what, probe, seconds=10):
    """The first true result of probe()."""
    return suite.wait_until(what, probe, seconds * SLOW)


def ends_well(argv, **more):
    """Does a package manager or a compiler succeed? One that waits for a network is given up."""
    try:
        return subprocess.run(argv, timeout=150, **more).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def stop(process, sig=signal.SIGTERM, seconds=10):
    """End a process this harness started; its exit status."""
    if process.poll() is None:
        process.send_signal(sig)
        try:
            process.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Failure(f"{process.args[0]} did not end within {seconds * SLOW:.0f} s of signal {sig}")
    return process.returncode


class Place:
    """A temporary directory and the processes that run in it; removed when all went well."""

    def __init__(self, name):
        base = os.path.join(TOP, "build", "live")
        os.makedirs(base, exist_ok=True)
        # Short: Unix socket paths end at 107 bytes.
        self.dir = tempfile.mkdtemp(prefix="rs-", dir="/tmp")
        self.keep = os.path.join(base, name)
        self.processes = []
        self.mounts = []

    def path(self, name):
        return os.path.join(self.dir, name)

    def spawn(self, argv, env=None, **more):
        process = subprocess.Popen(argv, env={**os.environ, **(env or {})}, **{"stdin": subprocess.DEVNULL, **more})
        self.processes.append(process)
        return process

    def spawn_server(self, argv, env=None, **more):
        """A server that prints a line when it listens."""
        process = self.spawn(argv, env, stdout=subprocess.PIPE, stderr=open(self.path("server.err"), "a"), **more)
        if not select.select([process.stdout], [], [], 20 * SLOW)[0] or not process.stdout.readline():
            raise Failure(f"{argv[0]} did not start: {open(self.path('server.err')).read()[-500:]}")
        return process

    def close(self, keep):
        for process in reversed(self.processes):
            try:
                stop(process)
            except Failure:
                pass
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()
        for where in reversed(self.mounts):
            subprocess.run(["umount", "-l", where], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.keep, ignore_errors=True)
        if keep:
            shutil.copytree(self.dir, self.keep, ignore=lambda d, n: [x for x in n if big_or_socket(os.path.join(d, x))])
        shutil.rmtree(self.dir, ignore_errors=True)


def big_or_socket(path):
    return not (os.path.isdir(path) or os.path.isfile(path)) or os.path.getsize(path) > 64 << 20


class Agent:
    """A running `ringspan trace` (or `run`) that writes its spans to a file."""

    def __init__(self, place, *args, command="trace", name="agent", tail=()):
        self.out = place.path(name + ".json")
        self.err = place.path(name + ".err")
        self.socket = place.path(name + ".sock")
        argv = [RINGSPAN, command]
        if command == "trace":
            argv += ["--format", "json", "-o", self.out, "--socket", self.socket]
        else:
            argv += ["--exporter", "file", "--file", self.out, "--socket", self.socket]
        self.started = time.monotonic()
        self.process = place.spawn(argv + list(args) + list(tail), stderr=open(self.err, "w"),
                                   stdout=open(place.path(name + ".stdout"), "w"))
        wait_until("the agent to capture", self.ready, 30)
        self.start_seconds = time.monotonic() - self.started

    def ready(self):
        if "capturing" in self.stderr():
            return True
        if self.process.poll() is not None:
            raise Failure(f"ringspan ended with {self.process.returncode}: {self.stderr()[-800:]}")
        return False

    def stderr(self):
        return open(self.err).read()

    def status(self):
        """The parsed answer of `ringspan status --json`."""
        done = subprocess.run([RINGSPAN, "status", "--json", "--socket", self.socket], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=10 * SLOW)
        if done.returncode != 0:
            raise Failure(f"status: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def ledger(self):
        """(stage, name) -> value."""
        return {(row["stage"], row["name"]): row["value"] for row in self.status()["ledger"]}

    def losses(self, no_loss=NO_LOSS):
        """What the ledger calls lost and is not zero: name -> count."""
        return {f"{row['stage']}.{row['name']}": row["value"] for row in self.status()["ledger"]
                if row["kind"] == "dropped" and row["value"] and (row["stage"], row["name"]) not in no_loss}

    def counter(self, stage, name):
        """One row of the ledger."""
        return next(row["value"] for row in self.status()["ledger"] if (row["stage"], row["name"]) == (stage, name))

    def settle(self, limit=6):
        """Give it time to write what the traffic so far gives; other traffic may go on for ever. No verdict may hang on it:
        stop() loses nothing, and what must have been seen before something else is done is waited for (wait_for)."""
        size, end = -1, time.monotonic() + limit
        while time.monotonic() < end:
            now = os.path.getsize(self.out) if os.path.exists(self.out) else 0
            if now == size:
                return
            size = now
            time.sleep(0.3)

    def wait_for(self, what, test, count=1):
        """Until it has written `count` spans that test() says yes to."""
        wait_until(what, lambda: len(self.saw(test)) >= count)

    def saw(self, test):
        """The spans it has written until now that test() says yes to."""
        return Spans.load(self.out, growing=True).where(test=test) if os.path.exists(self.out) else []

    def stop(self, sig=signal.SIGTERM, settle=True):
        """End the agent; its spans."""
        if settle:
            self.settle()
        begin = time.monotonic()
        code = stop(self.process, sig)
        self.stop_seconds = time.monotonic() - begin
        if code != 0:
            raise Failure(f"ringspan ended with {code}: {self.stderr()[-800:]}")
        if "sandbox refused" in self.stderr():
            raise Failure(f"user/sandbox/syscalls.def lacks something: {self.stderr()[-800:]}")
        return Spans.load(self.out)


class Span:
    """One span of the json format, with the things tests ask for."""
    __slots__ = ("raw", "attributes", "kind", "id", "parent", "trace", "start", "end")

    def __init__(self, raw):
        self.raw = raw
        self.attributes = raw["attributes"]
        self.kind = str(raw["kind"]).lower()
        self.id = raw["span_id"]
        self.parent = raw.get("parent_span_id") or ""
        self.trace = raw["trace_id"]
        self.start = raw["start_unix_nano"]
        self.end = raw["end_unix_nano"]

    @property
    def method(self):
        a = self.attributes
        return a.get("http.request.method_original", a.get("http.request.method"))

    @property
    def target(self):
        a = self.attributes
        if "url.path" in a:
            return a["url.path"] + ("?" + a["url.query"] if "url.query" in a else "")
        full = a.get("url.full", "")
        return "/" + full.split("://", 1)[-1].partition("/")[2]

    @property
    def status(self):
        return self.attributes.get("http.response.status_code")

    @property
    def error(self):
        return self.attributes.get("error.type")

    @property
    def pid(self):
        return self.raw["resource"].get("process.pid", self.attributes.get("process.pid"))

    @property
    def service(self):
        return self.raw["resource"].get("service.name")

    @property
    def failed(self):
        """Is the span's status an error?"""
        return self.raw["status"]["code"] == "error"

    @property
    def event_names(self):
        return [e["name"] for e in self.raw.get("events", [])]

    @property
    def ms(self):
        return (self.end - self.start) / 1e6

    def triple(self):
        return (self.method, self.target, self.status)

    def __repr__(self):
        return f"<{self.kind} {self.triple()} {self.ms:.3f} ms error={self.error} events={self.event_names}>"


def from_otlp(data):
    """OTLP JSON's spans in the shape of the json format."""
    def value(v):
        (kind, inner), = v.items() or (("", None),)
        if kind == "intValue":
            return int(inner)
        return [value(x) for x in inner.get("values", [])] if kind == "arrayValue" else inner

    def attributes(pairs):
        return {pair["key"]: value(pair["value"]) for pair in pairs}

    for rs in data["resourceSpans"]:
        resource = attributes(rs["resource"]["attributes"])
        for span in (span for ss in rs["scopeSpans"] for span in ss["spans"]):
            yield {"trace_id": span["traceId"], "span_id": span["spanId"], "parent_span_id": span.get("parentSpanId", ""),
                   "name": span["name"], "kind": ("unspecified", "internal", "server", "client")[span["kind"]],
                   "start_unix_nano": int(span["startTimeUnixNano"]), "end_unix_nano": int(span["endTimeUnixNano"]),
                   "status": {"code": ("unset", "ok", "error")[span.get("status", {}).get("code", 0)]},
                   "attributes": attributes(span.get("attributes", [])), "resource": resource,
                   "events": [{"name": e["name"]} for e in span.get("events", [])]}


class Spans(list):
    @classmethod
    def load(cls, path, growing=False):
        spans = cls()
        with open(path) as f:
            for number, line in enumerate(f, 1):
                if growing and not line.endswith("\n"):
                    break
                try:
                    raw = json.loads(line)
                    spans += map(Span, from_otlp(raw) if "resourceSpans" in raw else [raw])
                except (ValueError, KeyError) as e:
                    raise Failure(f"{path}:{number}: not a span: {e}: {line[:200]}") from None
        return spans

    def where(self, kind=None, pids=None, prefix=None, test=None):
        return Spans(s for s in self
                     if (kind is None or s.kind == kind) and (pids is None or s.pid in pids)
                     and (prefix is None or s.target.startswith(prefix)) and (test is None or test(s)))

    def triples(self):
        return collections.Counter(s.triple() for s in self)


class Log:
    """A server's own record of what it answered."""

    def __init__(self, path):
        self.path = path

    def rows(self):
        with open(self.path) as f:
            return [line.rstrip("\n").split("\t") for line in f]

    def triples(self):
        return collections.Counter((r[0], r[1], int(r[2])) for r in self.rows())

    def count(self):
        with open(self.path, "rb") as f:
            return sum(block.count(b"\n") for block in iter(lambda: f.read(1 << 20), b""))


class Nginx:
    def __init__(self, place, backend=None, keepalive=16):
        self.dir = place.path("nginx")
        os.makedirs(self.dir + "/www/f")
        self.port = free_port()
        for name, size in (("1k", 1 << 10), ("10k", 10 << 10), ("100m", 100 << 20)):
            with open(f"{self.dir}/www/f/{name}.txt", "wb") as f:
                f.write(b"0123456789abcde\n" * 64 if size <= 1 << 20 else b"")
                f.truncate(size)
        upstream = proxy = ""
        if backend:
            upstream = f"upstream back {{ server {backend}; keepalive {keepalive}; }}"
            proxy = "proxy_pass http://back/; proxy_http_version 1.1; proxy_set_header Connection \"\";"
        conf = open(os.path.join(SERVERS, "nginx.conf.in")).read()
        for key, value in (("DIR", self.dir), ("PORT", str(self.port)), ("UPSTREAM", upstream), ("PROXY", proxy)):
            conf = conf.replace(f"@{key}@", value)
        with open(self.dir + "/nginx.conf", "w") as f:
            f.write(conf)
        self.socket = self.dir + "/nginx.sock"
        self.process = place.spawn(["nginx", "-e", self.dir + "/error.log", "-p", self.dir, "-c", self.dir + "/nginx.conf"],
                                   stderr=open(place.path("nginx.err"), "w"))
        wait_until("nginx to listen", self.listens)
        self.log = Log(self.dir + "/access.log")
        wait_until("nginx's workers", lambda: len(children(self.process.pid)) == 2)
        self.pids = {self.process.pid, *children(self.process.pid)}

    def listens(self):
        if self.process.poll() is not None:
            raise Failure("nginx did not start")
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0


def node(place, backend=None, listen=None, env=None):
    port = listen or str(free_port())
    log = place.path(f"node-{os.path.basename(port)}.log")
    argv = ["node", os.path.join(SERVERS, "server.js"), port, log] + ([backend] if backend else [])
    process = place.spawn_server(argv, env)
    return process, port, Log(log)


def python(place, backend=None, listen=None, env=None):
    port = listen or str(free_port())
    log = place.path(f"python-{os.path.basename(port)}.log")
    argv = [sys.executable, os.path.join(SERVERS, "server.py"), port, log] + ([backend] if backend else [])
    process = place.spawn_server(argv, env)
    return process, port, Log(log)


def layered(place, files):
    """Two mounts of one layer with copies of these files, as two containers of one image have them: their directories.
    None: such mounts are not to be had here."""
    top = place.path("layers")
    os.mkdir(top)
    if subprocess.run(["mount", "-t", "tmpfs", "none", top], stderr=subprocess.DEVNULL).returncode:
        return None
    place.mounts.append(top)
    os.mkdir(f"{top}/image")
    for path in files:
        shutil.copy(path, f"{top}/image")
    for name in "ab":
        for d in (f"{top}/{name}-up", f"{top}/{name}-work", f"{top}/{name}"):
            os.mkdir(d)
        if subprocess.run(["mount", "-t", "overlay", "none", "-o", f"lowerdir={top}/image,upperdir={top}/{name}-up,"
                           f"workdir={top}/{name}-work", f"{top}/{name}"], stderr=subprocess.DEVNULL).returncode:
            return None
        place.mounts.append(f"{top}/{name}")
    return f"{top}/a", f"{top}/b"


def children(pid):
    try:
        return {int(p) for p in open(f"/proc/{pid}/task/{pid}/children").read().split()}
    except OSError:
        return set()


def wrk(place, url, seconds, connections=16, depth=1, close=False, prefix="q", base=""):
    """Run wrk with the mixed script; the number of complete responses it counted, and its pid."""
    argv = ["wrk", "-t2", f"-c{connections}", f"-d{seconds}s", "-s", os.path.join(SERVERS, "mixed.lua"), url, "--",
            str(depth), "1" if close else "0", prefix, base]
    process = place.spawn(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    text, _ = process.communicate(timeout=(seconds + 30) * SLOW)
    match = re.search(r"(\d+) requests in", text)
    if process.returncode != 0 or not match:
        raise Failure(f"wrk failed: {text[-500:]}")
    return int(match.group(1)), process.pid


class Load:
    """wrk that goes on until it is told to end."""

    def __init__(self, place, url, connections=16):
        self.process = place.spawn(["wrk", "-t1", f"-c{connections}", "-d3600s", "--timeout", "60s", "-s",
                                    os.path.join(SERVERS, "mixed.lua"), url, "--", "1", "0", "q", ""],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.pid = self.process.pid

    def end(self):
        """What it says of itself."""
        self.process.send_signal(signal.SIGINT)
        text, _ = self.process.communicate(timeout=60 * SLOW)
        if self.process.returncode != 0 or " requests in " not in text:
            raise Failure(f"wrk failed: {text[-500:]}")
        return text


def at_once(function, items):
    """function(item) of all of them, each in a thread of its own. What one raises is raised here: a thread would keep it to itself."""
    items = list(items)
    with concurrent.futures.ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(function, items))


class Wire:
    """A client connection whose every byte the test decides."""

    def __init__(self, where, timeout=10):
        if isinstance(where, str):
            self.sock = socket.socket(socket.AF_UNIX)
        else:
            self.sock = socket.socket(socket.AF_INET6 if ":" in where[0] else socket.AF_INET)
        self.sock.settimeout(timeout * SLOW)
        self.sock.connect(where)
        self.rest = b""

    def send(self, data):
        self.sock.sendall(data if isinstance(data, bytes) else data.encode())

    def get(self, target, headers=()):
        self.send(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n" + "".join(h + "\r\n" for h in headers) + "\r\n")
        return self.response()

    def peer_state(self):
        """(bytes sent that the peer's program has not read, kernel's timer of the peer's end: 4, it probes a window of zero)"""
        mine, theirs = self.sock.getsockname()[1], self.sock.getpeername()[1]
        unread = timer = 0
        with open("/proc/net/tcp") as f:
            for row in (line.split() for line in f.readlines()[1:]):
                ports = tuple(int(a.split(":")[1], 16) for a in row[1:3])
                sending, waiting = (int(n, 16) for n in row[4].split(":"))
                if ports == (mine, theirs):
                    unread += sending
                elif ports == (theirs, mine):
                    unread += waiting
                    timer = int(row[5].split(":")[0], 16)
        return unread, timer

    def wait_read(self):
        """Until the peer's program has read all that was sent."""
        wait_until("the peer to read", lambda: not self.peer_state()[0])

    def more(self):
        data = self.sock.recv(1 << 20)
        self.rest += data
        return data

    def head(self):
        while b"\r\n\r\n" not in self.rest:
            if not self.more():
                raise Failure("the connection ended in a response head")
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        return head.decode("latin-1")

    def response(self):
        """Status of the next response; its body is read (Content-Length or chunked)."""
        head = self.head()
        status = int(head.split()[1])
        length = re.search(r"(?im)^content-length: *(\d+)", head)
        if length:
            want = int(length.group(1))
            while len(self.rest) < want:
                if not self.more():
                    raise Failure("the connection ended in a body")
            self.rest = self.rest[want:]
        elif re.search(r"(?im)^transfer-encoding: *chunked", head):
            while b"0\r\n\r\n" not in self.rest:
                if not self.more():
                    raise Failure("the connection ended in a chunked body")
            self.rest = self.rest.split(b"0\r\n\r\n", 1)[1]
        return status

    def reset(self):
        """Close with a reset instead of an orderly end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()

    def close(self):
        self.sock.close()


def can_trace():
    """Why BPF programs cannot be loaded here, or an empty string."""
    if os.geteuid() != 0:
        return "not root"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "the kernel has no BTF"
    done = subprocess.run([RINGSPAN, "check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 3:
        return "ringspan check: " + (done.stdout.strip().split("\n") or ["?"])[-1]
    return ""


class LiveTest(unittest.TestCase):
    """A test with a Place; `self.agent()` starts the agent under test."""
    maxDiff = 600

    def setUp(self):
        self.place = Place(self.id().split(".", 1)[1])

    def tearDown(self):
        outcome = self._outcome.result
        failed = any(test is self for test, _ in outcome.errors + outcome.failures)
        self.place.close(keep=failed)

    def agent(self, *args, everybody=False, **kw):
        """Unless the arguments say who is traced (or everybody is): this test's processes. Others' traffic on the machine
        must not fill the ring, nor count as lost."""
        if not everybody and not {"-p", "--port", "--comm", "--include", "-c"} & set(args):
            args = ("-p", str(os.getpid()), *args)
        if "--tls" not in args:  # what a probe costs on this machine, and now, decides nothing here
            args = ("--tls", "always", *args)
        return Agent(self.place, *args, **kw)

    def measured(self, text):
        """A number for the report; no test depends on it."""
        print(f"measured: {self.id().split('.', 1)[1]}: {text}", flush=True)

    def assert_same(self, got, want, what):
        """Two multisets are equal; the message shows the first differences."""
        if got == want:
            return
        missing, extra = want - got, got - want
        self.fail(f"{what}: {sum(want.values())} wanted, {sum(got.values())} seen; "
                  f"{sum(missing.values())} missing, e.g. {list(missing.items())[:4]}; "
                  f"{sum(extra.values())} too many, e.g. {list(extra.items())[:4]}")

    def assert_none(self, counter, what):
        if counter:
            self.fail(f"{what}: {sum(counter.values())}, e.g. {list(counter.items())[:8]}")

    def assert_most(self, right, wanted, what):
        """For what ringspan gives up rather than guess wrong when an end of a connection is told of 50 ms after the other: who
        waits for a CPU so long makes one of many miss, never all."""
        self.assertGreaterEqual(right, 0.7 * wanted, f"{what}: {right} of {wanted}")

    def assert_nothing_lost(self, agent):
        self.assertEqual(agent.losses(), {}, "the agent lost records or spans")
