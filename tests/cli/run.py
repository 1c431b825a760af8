#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: bad input, missing rights, full disks, signals: run.py [NAME…].

Each case runs build/ringspan and looks at exit code, standard output and error. Errors are one line that
says what, which, why and what to do. Cases that need root or a BPF-capable kernel are skipped without.
"""
import fcntl
import http.client
import http.server
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tarfile
import tempfile
import termios
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.append(os.path.dirname(HERE))
import suite  # noqa: E402
from suite import Failure, expect, wait_until  # noqa: E402

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


# -- words -----------------------------------------------------------------------------------------------------------

def test_help():
    for command in COMMANDS:
        done = ringspan(command, "--help")
        expect(done.returncode == 0 and not done.stderr, f"{command} --help: {done}")
        expect(done.stdout.startswith(f"usage: ringspan {command} "), f"{command} --help: {done.stdout[:80]!r}")
        expect(ringspan("help", command).stdout == done.stdout, f"help {command} says something else")
        expect(all(len(line) <= 80 for line in done.stdout.splitlines()), f"{command} --help is wider than 80")
    done = ringspan("help")
    expect(all(f"\n  {c} " in done.stdout for c in COMMANDS), "help does not list all commands")


def test_no_argument_is_status():
    done = ringspan(env={"RINGSPAN_SOCKET": "/nonexistent/sock"})
    fails(done, 1, "no agent is running on /nonexistent/sock", "ringspan run")


def test_unknown_words():
    fails(ringspan("trac"), 2, "unknown command 'trac'", "did you mean 'trace'?")
    fails(ringspan("trace", "--ring-sise", "1m"), 2, "'--ring-sise'", "did you mean '--ring-size'?")
    fails(ringspan("trace", "--capture", "sokcet"), 2, "--capture", "'sokcet'", "did you mean 'socket'?")
    fails(ringspan("trace", "--ring-size", "much"), 2, "--ring-size: 'much' is not a size")
    fails(ringspan("trace", "--duration", "-1"), 2, "--duration: '-1' is not a time")
    fails(ringspan("trace", "--pid"), 2, "--pid: needs a value")
    fails(ringspan("trace", "-Z"), 2, "'-Z'")
    fails(ringspan("status", "extra"), 2, "unexpected argument 'extra'")
    fails(ringspan("status", "--", "ls"), 2, "ringspan trace -- CMD")
    fails(ringspan("status", "--json", "--dump"), 2, "exclude each other")
    fails(ringspan("run", "--exporter", "fiel"), 2, "unknown exporter 'fiel'", "'file'")
    fails(ringspan("run", "--exporter", "file"), 2, "--file FILE")
    fails(ringspan("record"), 2, "-o FILE")
    fails(ringspan("check", env={"RINGSPAN_CAPTURE": "x"}), 2, "RINGSPAN_CAPTURE", "'x'")


def test_unknown_format():
    with Dir() as d:
        script, out = d("s.jsonl", SCRIPT), d("out", "precious")
        fails(ringspan("replay", script, "--format", "jsn", "-o", out), 2, "'jsn'", "json")
        with open(out, encoding="utf-8") as f:
            expect(f.read() == "precious", "a wrong word emptied a file")


def test_docs():
    """The manual page and the completion know every option and every value."""
    man = ringspan("help", "man").stdout
    bash = ringspan("help", "bash").stdout
    for command in COMMANDS:
        for option in re.findall(r"--([a-z0-9-]+)", ringspan(command, "--help").stdout.split("options:")[1]):
            expect("\\-\\-" + option.replace("-", "\\-") in man, f"the manual page has no --{option}")
            expect(f"--{option}" in bash, f"the completion has no --{option}")
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-Kutf8", "-ww"], input=man, capture_output=True, text=True,
                              check=False)
        expect(not done.stderr, done.stderr)
    script = bash + """
        complete_() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ringspan; echo "${COMPREPLY[*]}"; }
        complete_ ringspan st; complete_ ringspan trace --capt; complete_ ringspan trace --capture s
        complete_ ringspan run --exporter otlp-g; complete_ ringspan trace --format te; complete_ ringspan encode --to zip
        complete_ ringspan config ''; complete_ ringspan help sta"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    expect(done.stdout.splitlines() == ["status", "--capture --capture-request-header --capture-response-header",
                                        "socket syscall", "otlp-grpc", "text", "zipkin", "check", "status"], done)


def test_install():
    with Dir() as d:
        def install():
            done = subprocess.run(["make", "-s", "-C", TOP, "install", f"DESTDIR={d.path}", "PREFIX=/usr"], check=False,
                                  capture_output=True, text=True, timeout=600)
            expect(done.returncode == 0, done.stderr)

        install()
        for name in ("bin/ringspan", "share/man/man1/ringspan.1", "share/bash-completion/completions/ringspan"):
            expect(os.path.getsize(f"{d.path}/usr/{name}") > 1000, f"{name} is not there")
        config = f"{d.path}/usr/share/doc/ringspan/ringspan.yaml"
        fails(ringspan("status", "-c", config, "--socket", "/nonexistent/s"), 1, "no agent")
        # The unit's configuration: there, and never overwritten.
        own = f"{d.path}/etc/ringspan.yaml"
        with open(config, encoding="utf-8") as a, open(own, encoding="utf-8") as b:
            expect(a.read() == b.read(), "not the sample")
        with open(own, "w", encoding="utf-8") as f:
            f.write("# mine\n")
        install()
        with open(own, encoding="utf-8") as f:
            expect(f.read() == "# mine\n", "overwritten")


def test_version():
    done = ringspan("version")
    expect(done.returncode == 0 and re.match(r"ringspan \d+\.\d+\.\d+\n", done.stdout), done)
    keys = json.loads(ringspan("version", "--json").stdout)
    expect({"version", "libbpf", "arch"} <= keys.keys(), keys)
    expect(ringspan("--version").stdout == done.stdout, "--version says something else")


# -- files -----------------------------------------------------------------------------------------------------------

def test_config_file():
    with Dir() as d:
        for text, parts in (
                ("ring-size: 1m\ncapture: sokcet\n", (":2:10: capture: unknown value 'sokcet'", "'socket'")),
                ("ring-size: 1m\nrign-size: 2m\n", (":2:1: unknown key 'rign-size'", "'ring-size'")),
                ("port: [80, x]\n", (":1:12: port: 'x'",)),
                ("format: [a\n", (":1:9: format takes one value",)),
                ("format: b: c\n", (":1:10: mapping values are not allowed",)),
                ("\udcff\udcfe\x00\n", ("c.yaml",)),
                ("- a\n", (":1:1: expected `key: value` lines",))):
            path = d("c.yaml", text)
            fails(ringspan("trace", "-c", path, "--", "true"), 2, *parts)
        fails(ringspan("run", "-c", d("none.yaml")), 2, "none.yaml", "No such file")
        fails(ringspan("run", "-c", d.path), 2, "Is a directory")
        # A flag is stronger, so what the file says of it does not matter; the rest of the file does.
        fails(ringspan("status", "-c", d("d.yaml", "socket: /nonexistent/from-file\n")), 1, "/nonexistent/from-file")
        fails(ringspan("status", "-c", d("d.yaml"), env={"RINGSPAN_SOCKET": "/nonexistent/from-env"}), 1, "from-env")
        fails(ringspan("status", "-c", d("d.yaml"), "--socket", "/nonexistent/from-flag"), 1, "from-flag")


def test_config_check():
    with Dir() as d:
        good = d("good.yaml", "export:\n  file: /nowhere\n  queue: {spans: 9}\ndiscovery:\n  include:\n"
                 "    - {exe: node, label: {app: shop}, service: shop}\nport: 80\n")
        for command in (("config", "check", good), ("run", "--check-config", "-c", good)):
            done = ringspan(*command)
            expect(done.returncode == 0 and done.stdout == f"{good}: ok\n" and not done.stderr, done)
        expect(ringspan("run", "--check-config").returncode == 0, "flags and environment alone")
        for text, parts in (
                ("export:\n  queue:\n    spams: 9\n", (":3:5: unknown key 'spams'", "'spans'")),
                ("export:\n  spans: 9\n", (":2:3:", "there is export.queue.spans")),
                ("export: 9\n", (":1:9: export is a section",)),
                ("export:\n  exporter: zipkn\n", ("unknown exporter 'zipkn'", "zipkin")),
                ("spans:\n  drop-attribute: no.such.key\n", ("no.such.key",)),
                ("spans:\n  capture-request-header: 'a b'\n", ("'a b' is no",)),
                ("listen: 99999\n", ("'99999' is not PORT",)),
                ("sampling: {sampler-arg: 7}\n", (":1:25: sampler-arg: '7'",)),
                ("discovery:\n  include:\n    - exe: '['\n", (":3:12: exe: '[' is no glob",)),
                ("export:\n\tfile: x\n", (":2:1: there is a tab",)),
                ("base: &b {file: x}\nexport: *b\n", (":1:7: anchors and aliases",)),
                ("export:\n  <<: *b\n", (":2:7: anchors and aliases",)),
                ("export:\n  queue: {spans: 0}\n", (":2:18: spans: '0' is out of range",)),
                ("discovery:\n  exclude:\n    - {comm: a, colour: red}\n", (":3:17: a rule has no key 'colour'",)),
                ("discovery:\n  exclude:\n    - {}\n", (":3:7: the rule has no condition",))):
            path = d("bad.yaml", text)
            fails(ringspan("config", "check", path), 2, path, *parts)
            fails(ringspan("run", "--check-config", "-c", path), 2, path, *parts)
        fails(ringspan("config", "check", d("none.yaml")), 2, "none.yaml", "No such file")
        os.mkfifo(d.path + "/fifo")
        for name in (d.path + "/fifo", "/dev/zero", "/dev/tty"):
            if os.path.exists(name):
                fails(ringspan("config", "check", name), 2, name, "config file: ")
        fails(ringspan("run", "-c", d.path + "/fifo"), 2, "no regular file")
        path = d("user.yaml", "include:\n  - user: [root, nosuchuser]\n")
        for command in (("config", "check", path), ("run", "--check-config", "-c", path)):
            done = ringspan(*command)
            expect(done.returncode == 0 and done.stderr.count("user.yaml:2:18: user: there is no user 'nosuchuser'") == 1, done)
        done = ringspan("run", "--check-config", "--exclude", "user=nosuchuser")
        expect(done.returncode == 0 and "--exclude: user: there is no user" in done.stderr, done)
        fails(ringspan("config"), 2, "config check FILE")
        fails(ringspan("config", "show"), 2, "config check FILE")


def test_config_meaning():
    """What only the users of a value know to be wrong says where it stands too, whichever way it came."""
    with Dir() as d:
        for text, why in (
                ("export:\n  exporter: otpl-http\n", "2:13: exporter: unknown exporter 'otpl-http'; did you mean 'otlp-http'?"),
                ("exporter: file=x,file=y\n", "1:11: exporter: exporter file is given twice"),
                ("endpoint: 'ht!tp:/ x'\n", "1:11: endpoint: exporter otlp-http: the endpoint is no URL"),
                ("export:\n  otlp:\n    endpoint: ftp://x\n", "3:15: endpoint: exporter otlp-http: the endpoint"),
                ("exporter: zipkin=ftp://x\n", "1:11: exporter: exporter zipkin: the endpoint"),
                ("exporter: sentry\nsentry-dsn: http://x\n", "2:13: dsn: exporter sentry: the DSN is not of the form"),
                ("otlp-headers: secret\n", "1:15: headers: it is written KEY=VALUE"),
                ("resource-attributes: a=b,=c\n", "1:22: resource-attributes: it is written KEY=VALUE"),
                ("propagators: tracecontxt\n", "1:14: propagators: 'tracecontxt' is no propagator"),
                ("redact-query: a\ndrop-attribute: b.c\n", "2:17: drop-attribute: redaction: 'b.c'"),
                ("listen: '1.2.3.4.5:80'\n", "1:9: listen: '1.2.3.4.5:80' is not PORT")):
            d("c.yaml", text)
            done = ringspan("config", "check", d("c.yaml"))
            fails(done, 2, f"c.yaml:{why}")
            expect("secret" not in done.stderr, done.stderr)
        fails(ringspan("run", "--exporter", "zipkim", "--check-config"), 2, "--exporter: unknown exporter 'zipkim'")
        fails(ringspan("run", "--check-config", env={"RINGSPAN_LISTEN": "x"}), 2, "RINGSPAN_LISTEN: 'x' is not PORT")
        # Many programs read these: what is wrong in them stops none.
        done = ringspan("run", "--check-config", env={"OTEL_PROPAGATORS": "x", "OTEL_RESOURCE_ATTRIBUTES": "x"})
        expect(done.returncode == 0, done.stderr)
        done = ringspan("run", "--check-config", env={"RINGSPAN_QUEUE_SPAN": "5", "RINGSPAN_SERVICE_HOST": "10.0.0.1",
                                                      "RINGSPAN_PORT_4318_TCP": "tcp://10.0.0.1:4318"})
        expect(done.returncode == 0 and re.fullmatch(r".*warning: RINGSPAN_QUEUE_SPAN: .*'RINGSPAN_QUEUE_SPANS'.*\n", done.stderr),
               done.stderr)


def test_config_sample():
    """It is right as it is, and with every default in it taken for a setting; no option is missing."""
    with Dir() as d:
        sample = ringspan("config", "--sample").stdout
        expect(max(map(len, sample.split("\n"))) <= 130, "long lines")
        expect(ringspan("config", "check", d("a.yaml", sample)).returncode == 0, "not right as it is")
        options = set(re.findall(r"^  (?:-., |    )--([a-z0-9-]+)", ringspan("run", "--help").stdout, re.M))
        named = set(re.findall(r"\(--([a-z0-9-]+),", sample))
        expect(named == options - {"help", "config", "check-config"}, named ^ options)
        lines = re.sub(r"(?m)^( *)# ([a-z0-9-]+: (?!'?[A-Z\[]+[^ ]*'?$)(?:\[\]|'[^']*'|[^ ]+))$", r"\1\2", sample)
        expect(lines.count("#") < sample.count("#") - 40, "nothing was a setting")
        done = ringspan("config", "check", d("b.yaml", lines))
        expect(done.returncode == 0, done.stderr)


def test_variables():
    done = ringspan("run", "--check-config", env={"RINGSPAN_INCLUDE": "comm=a;comm=b,service=x", "RINGSPAN_PORT": "80,81"})
    expect(done.returncode == 0, done.stderr)
    fails(ringspan("run", "--check-config", env={"RINGSPAN_QUEUE_SPANS": "many"}), 2, "RINGSPAN_QUEUE_SPANS", "'many'")
    fails(ringspan("run", "--check-config", env={"RINGSPAN_EXCLUDE": "color=red"}), 2, "RINGSPAN_EXCLUDE", "color=red")
    fails(ringspan("run", "--include", "exe"), 2, "--include", "'exe' is not KEY=VALUE")
    fails(ringspan("run", "--exclude", "comm=a,service=b"), 2, "--exclude", "says how to trace")


def test_reload_without_agent():
    fails(ringspan("reload", "--socket", "/nonexistent/s"), 1, "no agent is running on /nonexistent/s")


def test_script():
    with Dir() as d:
        done = ringspan("replay", d("bad.jsonl", SCRIPT + "{oops\n"), "--format", "json")
        fails(done, 1, "bad.jsonl", "4")
        expect(json.loads(done.stdout)["attributes"]["url.path"] == "/one", "what came before the bad line is lost")
        fails(ringspan("replay", d("none.jsonl")), 1, "none.jsonl", "No such file")
        fails(ringspan("replay"), 2, "FILE")
        fails(ringspan("replay", "/tmp"), 1, "/tmp", "Is a directory")
        fails(ringspan("replay", d("cut.tev", "RINGSPAN")), 1, "cut.tev")


def test_nothing_in_it():
    """A file without spans is no mistake; that it is the wrong file should not stay unsaid."""
    with Dir() as d:
        for command in (("replay", d("empty", "")), ("encode", "--to", "zipkin", d("other.json", '{"a": 1}\n{"b": []}\n'))):
            done = ringspan(*command)
            expect(done.returncode == 0 and not done.stdout and command[-1] in done.stderr, done)


def test_replay_text():
    with Dir() as d:
        done = ringspan("replay", d("s.jsonl", SCRIPT))
        expect(done.returncode == 0 and re.search(r"3\.00µs +← web +GET /one +204", done.stdout), done)
        expect("\x1b" not in done.stdout, "colours in a pipe")
        expect("\x1b[" in ringspan("replay", d("s.jsonl"), "--color", "always").stdout, "no colours")


def test_replay_to_none():
    with Dir() as d:
        script = d("s.jsonl", SCRIPT)
        for names in ("none", ",", "none,none"):
            done = ringspan("replay", script, "--exporter", names)
            expect(done.returncode == 0 and not done.stdout and not done.stderr, f"{names}: {done}")


def test_otel_variables():
    """What is wrong in OTEL_* variables is ignored with a warning; a flag's is wrong usage."""
    with Dir() as d:
        script = d("s.jsonl", SCRIPT)
        done = ringspan("replay", script, env={"OTEL_TRACES_SAMPLER": "allways_on"})
        expect(done.returncode == 0 and "GET /one" in done.stdout, done)
        expect(done.stderr.startswith("ringspan: warning: OTEL_TRACES_SAMPLER: unknown value 'allways_on'"), done)
        fails(ringspan("replay", script, "--sampler", "allways_on"), 2, "--sampler: unknown value 'allways_on'")


def test_otlp_headers():
    """One that cannot be sent is left out and told of, by number; the others and the spans arrive."""
    seen = []

    class Receiver(Quiet):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(self.headers)
            self.do_GET()

    with http.server.HTTPServer(("127.0.0.1", 0), Receiver) as server, Dir() as d:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = ringspan("replay", d("s.jsonl", SCRIPT), "--exporter", f"otlp-http=http://127.0.0.1:{server.server_port}",
                        "--otlp-headers", "good=a%20b,bad=my-secret%0d%0aX-Other: 1,Bearer my-secret")
        server.shutdown()
        expect(done.returncode == 0 and "OTLP header 2 cannot be sent" in done.stderr, done)
        expect("my-secret" not in done.stderr, f"a secret is shown: {done}")
        expect(len(seen) == 1 and seen[0]["good"] == "a b", f"{[h.items() for h in seen]}")
        expect(not seen[0]["bad"] and not seen[0]["X-Other"], f"{seen[0].items()}")


def test_otel_exporter_names():
    """A name in OTEL_TRACES_EXPORTER that is unknown is ignored; elsewhere it is wrong usage."""
    needs_capture()
    with Dir() as d:
        run = ("run", "--duration", "50ms", "--socket", d("s"))
        for names in ("jaeger", "jaeger,console"):
            done = ringspan(*run, env={"OTEL_TRACES_EXPORTER": names})
            expect(done.returncode == 0 and "warning: OTEL_TRACES_EXPORTER: unknown exporter 'jaeger'" in done.stderr,
                   f"{names}: {done}")
        fails(ringspan(*run, env={"RINGSPAN_EXPORTER": "jaeger"}), 2, "unknown exporter 'jaeger'")
        fails(ringspan(*run, "--exporter", "jaeger"), 2, "unknown exporter 'jaeger'")


def test_full_disk():
    with Dir() as d, open("/dev/full", "w", encoding="utf-8") as full:
        script = d("s.jsonl", SCRIPT)
        for form in ("text", "json", "otlp-json"):
            fails(ringspan("replay", script, "--format", form, "-o", "/dev/full"), 1, "No space left on device")
            fails(ringspan("replay", script, "--format", form, stdout=full), 1, "No space left on device")
        expect(ringspan("version", stdout=full).returncode == 1, "version: a full disk is no success")


def test_closed_stdout():
    with Dir() as d:
        script = d("s.jsonl", SCRIPT)
        reader, writer = os.pipe()
        os.close(reader)
        done = ringspan("replay", script, stdout=writer)
        os.close(writer)
        expect(done.returncode in (0, -signal.SIGPIPE) and not done.stderr, f"a closed pipe is no error: {done}")


# -- rights ----------------------------------------------------------------------------------------------------------

def test_not_root():
    needs_root()
    with Dir() as d:
        binary = d("ringspan")
        shutil.copy(RINGSPAN, binary)
        os.chmod(binary, 0o755)
        for args in (["trace"], ["check"], ["record", "-o", "/dev/null"], ["trace", "--", "true"]):
            done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", binary, *args],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WAIT, check=False)
            fails(done, 3, "run as root")
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", binary, "check",
                               "--json"], capture_output=True, text=True, timeout=WAIT, check=False)
        expect(json.loads(done.stdout)["can_capture"] is False, done)


def test_root_without_capabilities():
    needs_root()
    fails(ringspan("trace", prefix=["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]), 3, "CAP_BPF")


def test_least_privilege():
    """Two capabilities are enough."""
    needs_capture()
    caps = "-all,+bpf,+perfmon"
    with Server() as web:
        done = ringspan("trace", "--format", "json", "--", "curl", "-s", f"http://127.0.0.1:{web.port}/",
                        prefix=["setpriv", f"--bounding-set={caps}", f"--inh-caps={caps}"])
        expect(done.returncode == 0 and '"kind":"client"' in done.stdout, done)


def rights_of(pid):
    """What /proc says of a process's privilege."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return {key: value.strip() for key, _, value in (line.partition(":") for line in f)}


CAPS = {"DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "KILL": 5, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "PERFMON": 38, "BPF": 39,
        "CHECKPOINT_RESTORE": 40}


def mask(*names):
    return f"{sum(1 << CAPS[n] for n in names):016x}"


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


def test_sandbox():
    """What is left of root's rights, by the kernel's own account, and everything works without the rest: TLS to a name
    that is looked up, files that are rotated in another user's directory, a spool, the socket, the page."""
    needs_capture()
    later = ["BPF", "PERFMON"] + ([] if b"BPF_TRACE_UPROBE_MULTI" in open("/sys/kernel/btf/vmlinux", "rb").read()
                                  else ["SYS_ADMIN"])
    page = suite.free_port()
    with Dir() as d, Server() as web, http.server.HTTPServer(("127.0.0.1", 0), Collector) as tls:
        tls.posts = 0
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate(d))
        tls.socket = context.wrap_socket(tls.socket, server_side=True)
        threading.Thread(target=tls.serve_forever, daemon=True).start()
        os.mkdir(d("others"), 0o755)
        os.chown(d("others"), 65534, 65534)
        file = f"{d('others')}/spans.jsonl"
        with Agent("run", "--socket", d("s"), "--listen", str(page), "--port", str(web.port), "--batch-age", "10ms",
                   "--exporter", f"file={file},otlp-http=https://localhost:{tls.server_address[1]}", "--tls-ca", d("cert"),
                   "--file-max-bytes", "2k", "--spool", d("spool")) as a:
            rights = rights_of(a.process.pid)
            kept = mask("SYS_PTRACE", "DAC_READ_SEARCH", "CHECKPOINT_RESTORE", "DAC_OVERRIDE", *later)
            none = "0" * 16
            expect([rights[k] for k in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")] == [kept] * 3 + [none] * 2,
                   {k: v for k, v in rights.items() if k.startswith("Cap")})
            expect(rights["NoNewPrivs"] == "1" and rights["Seccomp"] == "2", rights)
            end = time.monotonic() + WAIT
            while not (os.path.exists(file + ".2") and tls.posts > 1) and time.monotonic() < end:
                web.get()
                time.sleep(0.05)
            expect(os.path.exists(file + ".2"), f"no rotation: {os.listdir(d('others'))}")
            expect(tls.posts > 1, "nothing arrived over TLS")
            expect(ask(page, "/readyz")[0] == 200, "not ready")
            o = status(d("s"))
            expect(o["rights"]["refused_calls"] == 0 and o["rights"]["seccomp"], o["rights"])
            expect(all(e["state"] == "ok" for e in o["exporters"]), o["exporters"])
            code, said, _ = a.end()
            expect(code == 0 and "refused" not in said and not os.path.exists(d("s")), f"{code}: {said}")
        tls.shutdown()


def test_stopping():
    """While exporters still send, the agent says that it does not capture any more; a second signal ends that."""
    needs_capture()
    page = suite.free_port()
    with Dir() as d, Server() as web, socket.create_server(("127.0.0.1", 0)) as mute:
        with Agent("run", "--socket", d("s"), "--listen", str(page), "--pid", str(os.getpid()), "--drain-time", "1h",
                   "--exporter", f"zipkin=http://127.0.0.1:{mute.getsockname()[1]}") as a:
            expect(ask(page, "/readyz")[0] == 200, "not ready")
            web.get()
            wait_until("spans", lambda: status(d("s"))["exporters"][0]["queued"])
            a.process.send_signal(signal.SIGTERM)
            wait_until("stopping", lambda: status(d("s"))["state"] == "stopping")
            code, _, text = ask(page, "/readyz")
            expect(code == 503 and "queued" in text, (code, text))
            fails(ringspan("reload", "--socket", d("s")), 1, "the agent is ending")
            code, said, _ = a.end()
            expect(code == 0 and "not_sent_at_end" in said, f"{code}: {said}")


def test_batch_age():
    """A batch that is not full waits for its age, and no longer than the agent runs."""
    needs_capture()
    with Dir() as d, Server() as web:
        def exporter():
            return status(d("s"))["exporters"][0]

        with Agent("run", "--socket", d("s"), "--pid", str(os.getpid()), "--batch-age", "1h",
                   "--exporter", "file=" + d("spans.jsonl")) as a:
            web.get()
            wait_until("the first batch waits for nothing", lambda: exporter()["sent"])
            sent = exporter()["sent"]
            web.get()
            wait_until("the next one is kept", lambda: exporter()["queued"] >= 2)
            expect(exporter()["sent"] == sent, "sent before its time")
            code, said, _ = a.end()
            with open(d("spans.jsonl")) as f:
                expect(code == 0 and f.read().count('"spanId"') > sent, f"{code}: {said}")


class Keyed(Collector):
    """Knows by which keys it was asked."""
    def do_POST(self):
        self.server.keys.append(self.headers[self.server.key_header])
        super().do_POST()


def test_reload_moves_exporters():
    """Another endpoint, other headers: what waits goes there, nothing is lost; other exporters need a restart."""
    needs_capture()
    with (Dir() as d, Server() as web, socket.create_server(("127.0.0.1", 0)) as mute,
          http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keyed) as backend):
        backend.posts, backend.keys, backend.key_header = 0, [], "X-Key"
        threading.Thread(target=backend.serve_forever, daemon=True).start()
        there = f"http://127.0.0.1:{backend.server_address[1]}"

        def reload(text):
            d("c.yaml", text)
            done = ringspan("reload", "--json", "--socket", d("s"))
            answer = json.loads(done.stdout)
            return done.returncode, answer["error"], answer["applied"], answer["restart"]

        def exporter():
            return status(d("s"))["exporters"][0]

        def sends(n):
            for _ in range(n):
                web.get()
            wait_until("what was asked for is sent", lambda: exporter()["sent"] >= before + 2 * n and not exporter()["queued"])

        d("c.yaml", f"exporter: otlp-http\nendpoint: http://127.0.0.1:{mute.getsockname()[1]}\n")
        with Agent("run", "-c", d("c.yaml"), "--socket", d("s"), "--pid", str(os.getpid()), "--port", str(web.port),
                   "--batch-age", "10ms") as a:
            before = 0
            for _ in range(8):
                web.get()
            wait_until("16 spans wait", lambda: exporter()["queued"] == 16)
            code, error, *_ = reload("exporter: otlp-http\nendpoint: 'ftp://x'\nothers: skip\n")
            expect(code == 1 and "exporter otlp-http: the endpoint" in error, (code, error))
            expect(exporter()["queued"] == 16 and str(mute.getsockname()[1]) in exporter()["target"], exporter())
            done = reload(f"exporter: otlp-http\nendpoint: {there}\notlp-headers: X-Key=one\ncompression: gzip\n")
            expect(done == (0, "", ["endpoint", "otlp-headers", "compression"], []), done)
            sends(0)
            expect(exporter()["sent"] == 16 and exporter()["failed"] == 0, exporter())
            # Twice, so that nothing is left of the settings that were read at first.
            for key in ("two", "three"):
                before = exporter()["sent"]
                done = reload(f"exporter: otlp-http\nendpoint: {there}\notlp-headers: X-Key={key}\ncompression: gzip\n")
                expect(done == (0, "", ["otlp-headers"], []), done)
                sends(1)
            done = reload("exporter: zipkin\nendpoint: http://127.0.0.1:1/\notlp-headers: X-Key=four\nmax-events: 7\n")
            expect(done == (0, "", ["max-events"], ["exporter", "endpoint", "otlp-headers", "compression"]), done)
            for i in range(3):
                done = reload(f"exporter: zipkin\nmax-events: {i}\n")
                expect(done[2] == ["max-events"], done)
            before = exporter()["sent"]
            sends(1)
            keys = [k for i, k in enumerate(backend.keys) if not i or backend.keys[i - 1] != k]
            expect(keys == ["one", "two", "three"], keys)
            code, said, _ = a.end()
            expect(code == 0 and "nothing lost" in said, f"{code}: {said}")
        backend.shutdown()


def test_reload_moves_sentry():
    """Another DSN, beside an exporter that no reload concerns: what waits goes there, by the new key."""
    needs_capture()
    with (Dir() as d, Server() as web, socket.create_server(("127.0.0.1", 0)) as mute,
          http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keyed) as backend):
        backend.posts, backend.keys, backend.key_header = 0, [], "X-Sentry-Auth"
        threading.Thread(target=backend.serve_forever, daemon=True).start()

        def config(name, port, form, events):
            d("c.yaml", f"exporter: sentry,file={d('out')}\nsentry-dsn: http://{name}@127.0.0.1:{port}/7\n"
                        f"sentry-format: {form}\nmax-events: {events}\n")

        def exporter():
            return status(d("s"))["exporters"][0]

        config("first", mute.getsockname()[1], "spans", 5)
        with Agent("run", "-c", d("c.yaml"), "--socket", d("s"), "--pid", str(os.getpid()), "--port", str(web.port),
                   "--batch-age", "10ms") as a:
            web.get()
            wait_until("2 spans wait", lambda: exporter()["queued"] == 2)
            config("second", backend.server_address[1], "transactions", 7)
            o = json.loads(ringspan("reload", "--json", "--socket", d("s")).stdout)
            expect(sorted(o["applied"]) == ["max-events", "sentry-dsn", "sentry-format"] and not o["restart"], o)
            wait_until("they are sent", lambda: exporter()["sent"] == 2)
            web.get()
            wait_until("those that follow too", lambda: exporter()["sent"] == 4)
            expect(exporter()["protocol"] == "envelopes of transactions", exporter())
            expect(all("sentry_key=second" in k for k in backend.keys), backend.keys)
            code, said, _ = a.end()
            expect(code == 0 and "nothing lost" in said, f"{code}: {said}")
        with open(d("out")) as f:
            expect(sum(line.count('"spanId"') for line in f) == 4, "the file is not whole")
        backend.shutdown()


def test_reload_leaves_exporters():
    """Where to is told of as applied only if an exporter goes there."""
    needs_capture()
    with Dir() as d:
        d("c.yaml", f"exporter: file={d('out')}\nendpoint: http://127.0.0.1:1/1\n")
        with Agent("run", "-c", d("c.yaml"), "--socket", d("s"), "--pid", str(os.getpid())) as a:
            d("c.yaml", f"exporter: file={d('out')}\nendpoint: http://127.0.0.1:2/1\nmax-events: 7\n")
            o = json.loads(ringspan("reload", "--json", "--socket", d("s")).stdout)
            expect(o["applied"] == ["max-events"] and o["restart"] == ["endpoint"], o)
            expect(a.end()[0] == 0, a.said)


def test_certificate_files():
    """A file that cannot be used is told of at the start, by a check and by a reload, not at the first connection."""
    with Dir() as d:
        d("empty.pem", "no certificate\n")
        for option in ("tls-ca", "tls-cert", "tls-key", "k8s-ca"):
            for file, why in ((d("none.pem"), "No such file"), (d("empty.pem"), "there is no PEM in it"),
                              (os.path.dirname(d("x")), "not a regular file")):
                fails(ringspan("run", f"--{option}", file, "--check-config"), 2, f"--{option}: {file}: {why}")
                d("c.yaml", f"{option}: {file}\n")
                fails(ringspan("config", "check", d("c.yaml")), 2, f"c.yaml:1:{len(option) + 3}: {option[4:]}: {file}: {why}")
        d("c.yaml", "port: 1\n")
        if not can_capture():
            return
        fails(ringspan("run", "--tls-ca", d("none.pem"), "--socket", d("s")), 2, "none.pem: No such file")
        with Agent("run", "-c", d("c.yaml"), "--socket", d("s")) as a:
            d("c.yaml", f"port: 1\ntls-ca: {d('empty.pem')}\n")
            fails(ringspan("reload", "--socket", d("s")), 1, "there is no PEM in it")
            d("c.yaml", f"port: 1\nexporter: file={d('out')}\n")
            expect(ringspan("reload", "--socket", d("s")).returncode == 0, "the next one is refused too")
            expect(a.end()[0] == 0, a.said)


def test_sandbox_of_commands():
    """A recording without TLS looks at no process; a traced command may be sent signals, and has all its rights; off is off."""
    needs_capture()
    later = mask("BPF", "PERFMON")
    with Dir() as d:
        with Agent("record", "-o", d("r.tev"), "--port", "1", "--tls", "never") as a:
            eff = rights_of(a.process.pid)["CapEff"]
            expect(int(eff, 16) & ~int(mask("SYS_ADMIN"), 16) == int(later, 16), eff)
        with Agent("run", "--sandbox", "off", "--socket", d("s"), "--port", "1") as a:
            rights = rights_of(a.process.pid)
            expect(rights["CapEff"] == rights_of("self")["CapEff"] and rights["Seccomp"] == "0", rights)
        done = ringspan("trace", "--", "grep", "-E", "CapEff|NoNewPrivs|Seccomp:", "/proc/self/status")
        mine = rights_of("self")
        expect(re.findall(r"\t(\S+)", done.stdout) == [mine["CapEff"], mine["NoNewPrivs"], mine["Seccomp"]], done)


def test_no_btf():
    needs_capture()
    script = 'mount -t tmpfs none /sys/kernel/btf && exec "$@"'
    done = ringspan("check", prefix=["unshare", "-m", "sh", "-c", script, "sh"])
    if done.returncode == 1:
        raise unittest.SkipTest(done.stderr)
    fails(done, 3, "BTF")


def test_ring_refused():
    needs_capture()
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        top, limit = "/sys/fs/cgroup", "memory.max"
    else:
        top, limit = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
    group = f"{top}/rs-cli-{os.getpid()}"
    try:
        os.mkdir(group)
    except OSError as e:
        raise unittest.SkipTest(f"no control group: {e}") from e
    try:
        if not os.path.exists(f"{group}/{limit}"):
            raise unittest.SkipTest("no memory controller")
        with open(f"{group}/{limit}", "w", encoding="utf-8") as f:
            f.write(str(48 << 20))
        done = ringspan("trace", "--ring-size", "256m", "--duration", "1ms", "--port", "1",
                        prefix=["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"])
        if done.returncode == 0:
            raise unittest.SkipTest("this kernel does not count a ring buffer's memory")
        fails(done, 1, "--ring-size")
    finally:
        for _ in range(100):
            try:
                os.rmdir(group)
                break
            except OSError:
                time.sleep(0.05)


# -- the agent's socket ----------------------------------------------------------------------------------------------

def test_status():
    needs_capture()
    with Dir() as d, Agent("run", "--socket", d("s")) as a:
        expect(os.stat(d("s")).st_mode & 0o777 == 0o600, "the socket's mode is not 0600")
        o = status(d("s"))
        expect(o["state"] == "capturing" and o["pid"] == a.process.pid and o["capture"]["probes"], o)
        expect(any(r["kind"] == "dropped" and r["remedy"] for r in o["ledger"]), "no losses with remedies")
        text = ringspan("status", "--socket", d("s")).stdout
        expect(re.search(r"Capture +capturing", text) and "Losses" in text and "\x1b" not in text, text)
        rows = [line.split("\t") for line in ringspan("status", "--dump", "--socket", d("s")).stdout.splitlines()]
        expect(rows[0][:2] == ["agent", o["version"]] and len(rows[0]) == 8, rows[0])
        expect({"capture", "probe", "ledger", "exporter", "usage"} <= {r[0] for r in rows}, rows)


def test_status_of_some():
    """Filters by process and service, in every form; a second screen with rates."""
    needs_capture()
    with Dir() as d, Server() as web, Agent("run", "--socket", d("s"), "--port", str(web.port), "--file", d("f")):
        me = str(os.getpid())

        def some(*args):
            return status(d("s"), *args)

        end = time.monotonic() + WAIT
        while not some("--pid", me)["services"] and time.monotonic() < end:
            web.get()
        o = some("--pid", me)
        expect([p["pid"] for p in o["processes"]] == [os.getpid()], o["processes"])
        service = o["processes"][0]["service"]
        expect({r["service"] for r in o["services"]} == {service} and o["services"][0]["p99_ns"] > 0, o["services"])
        expect(some("--pid", "1")["processes"] == [] and some("--service", "no-*")["services"] == [], "not filtered")
        text = ringspan("status", "--socket", d("s"), "--service", service).stdout
        expect(f"{me} " in text and "STAGE" not in text and f"← {service}" in text, text)
        expect("no process that is known matches" in ringspan("status", "--socket", d("s"), "--pod", "x").stdout, "not said")
        rows = ringspan("status", "--socket", d("s"), "--dump", "--service", service).stdout.splitlines()
        expect(any(r.startswith(f"service\t{service}\tserver\t") for r in rows), rows)


def test_watch():
    needs_capture()
    with Dir() as d, Agent("run", "--socket", d("s")):
        with subprocess.Popen([RINGSPAN, "status", "--watch", "--socket", d("s")], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as w:
            seen = 0
            for line in w.stdout:
                seen += line.startswith("ringspan ")
                if seen == 2:
                    break
            w.send_signal(signal.SIGINT)
            w.wait(WAIT)
            expect(seen == 2, "no second screen")


def in_terminal(rows, columns, act, *args):
    """`status --watch` in a terminal of that size, left by act(fd, pid): what it wrote, its exit code, the modes it left changed."""
    fd, inner = pty.openpty()
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    before, out, acted, end = termios.tcgetattr(inner), b"", False, time.monotonic() + WAIT
    with subprocess.Popen([RINGSPAN, "status", "--watch", *args], stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
                          env={**os.environ, "TERM": "xterm"},
                          preexec_fn=lambda: fcntl.ioctl(inner, termios.TIOCSCTTY, 0)) as p:
        while p.poll() is None or select.select([fd], [], [], 0)[0]:
            if select.select([fd], [], [], 0.1)[0]:
                out += os.read(fd, 65536)
            if time.monotonic() > end:
                p.kill()
            if not acted and out.count(b"\033[H") >= 2:
                acted = True
                act(fd, p.pid)
    changed = [(a, b) for a, b in zip(before, termios.tcgetattr(inner)) if a != b]
    os.close(fd)
    os.close(inner)
    return out.decode(), p.returncode, changed


def test_watch_in_terminal():
    """A screen fits, whatever the terminal's size; q and signals end it, and the terminal is as it was."""
    needs_capture()
    ends = {"q": lambda fd, _: os.write(fd, b"xyq"), "^C": lambda fd, _: os.write(fd, b"\x03"),
            "SIGTERM": lambda _, pid: os.kill(pid, signal.SIGTERM)}
    with Dir() as d, Agent("run", "--socket", d("s")):
        for (rows, columns), (how, act) in zip([(24, 80), (7, 30), (1, 1)], ends.items()):
            out, code, changed = in_terminal(rows, columns, act, "--socket", d("s"))
            expect(code == 0 and not changed, f"{how}: exit code {code}; modes of the terminal: {changed}")
            expect(out.startswith("\033[?1049h\033[?7l") and out.endswith("\033[?7h\033[?1049l"), f"{how}: {out[-60:]!r}")
            for screen in out.split("\033[H\033[J")[1:-1]:
                expect(screen.count("\n") < rows and screen.startswith("\033[1mringspan"), f"{rows} rows: {screen!r}")


def test_second_agent():
    needs_capture()
    with Dir() as d, Agent("run", "--socket", d("s")) as a:
        fails(ringspan("run", "--socket", d("s")), 1, "another agent is running", d("s"), "--socket")
        o = status(d("s"))
        expect(o["pid"] == a.process.pid, "the first agent's socket is gone")
        done = a.end()
        expect(done[0] == 0 and not os.path.exists(d("s")), f"the socket is left behind: {done}")


def test_stale_socket():
    needs_capture()
    with Dir() as d:
        with Agent("run", "--socket", d("s")) as a:
            a.end(signal.SIGKILL)
        expect(os.path.exists(d("s")), "nothing was left behind")
        fails(ringspan("status", "--socket", d("s")), 1, "no agent is running")
        with Agent("run", "--socket", d("s")):
            expect(ringspan("status", "--socket", d("s")).returncode == 0, "no answer")


def test_socket_in_the_way():
    needs_capture()
    with Dir() as d:
        fails(ringspan("run", "--socket", d("file", "precious")), 1, "is not a socket", "--socket")
        with open(d("file"), encoding="utf-8") as f:
            expect(f.read() == "precious", "a file was removed")
        fails(ringspan("run", "--socket", "/nonexistent/dir/s"), 1, "/nonexistent/dir/s", "No such file")
        fails(ringspan("run", "--socket", "/" + "x" * 200), 1, "longer than")


def test_not_an_agent():
    with Dir() as d, socket.socket(socket.AF_UNIX) as s:
        s.bind(d("s"))
        s.listen()

        def answer():
            for text in (b"hello\n", b"", b'{"error":"no \x1b[31m"}\n'):
                c = s.accept()[0]
                c.recv(100)
                c.sendall(text)
                c.close()

        threading.Thread(target=answer, daemon=True).start()
        fails(ringspan("status", "--socket", d("s")), 1, "no ringspan agent")
        fails(ringspan("status", "--socket", d("s")), 1, "no ringspan agent")
        done = ringspan("status", "--socket", d("s"))
        fails(done, 1, "no ")
        expect("\x1b" not in done.stderr, "the terminal was given orders")


def ask(port, path, method="GET"):
    """Status, content type and text of the agent's own HTTP server."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    try:
        c.request(method, path)
        r = c.getresponse()
        return r.status, r.getheader("Content-Type"), r.read().decode()
    finally:
        c.close()


def prometheus(text):
    """{name{labels}: value} of Prometheus text, or Failure where it is none: every series after its HELP and
    TYPE, the lines of a name together, no series twice, counters called _total, values that are numbers."""
    types, series, done, name = {}, {}, set(), None
    expect(text.endswith("\n"), "no line end at the end")
    for line in text.splitlines():
        head = re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)", line)
        if head:
            if head[1] == "HELP":
                done.add(name)
                name = head[2]
                expect(name not in done, f"two places: {line}")
            expect(head[2] == name and name not in types, f"not in order: {line}")
            if head[1] == "TYPE":
                expect(head[3] in ("counter", "gauge"), line)
                expect(head[3] != "counter" or name.endswith("_total"), line)
                types[name] = head[3]
            continue
        label = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
        sample = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)((?:\{" + label + "(?:," + label + r")*\})?) (\S+)", line)
        expect(sample, f"no sample: {line!r}")
        expect(sample[1] == name and name in types, f"not under its TYPE: {line}")
        expect(sample[1] + sample[2] not in series, f"twice: {line}")
        series[sample[1] + sample[2]] = float(sample[3])
    return series


def test_listen():
    """/metrics, /healthz and /readyz while spans are sent to one file and lost on the way to a closed port."""
    needs_capture()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port, nobody = suite.free_port(), closed.getsockname()[1]
        with Dir() as d, Server() as web, Agent(
                "run", "--socket", d("s"), "--listen", str(port), "--port", str(web.port), "--exporter",
                f"file={d('spans.jsonl')},zipkin=http://me:my-secret@127.0.0.1:{nobody}/x?key=my-secret"):
            expect(ask(port, "/healthz")[::2] == (200, "ok\n"), ask(port, "/healthz"))
            expect(ask(port, "/readyz")[::2] == (200, "capturing\n"), ask(port, "/readyz"))
            expect(ask(port, "/nothing")[0] == 404, "an unknown path is found")
            expect(ask(port, "/metrics", "POST")[0] == 405, "POST is taken")
            web.get()
            end = time.monotonic() + WAIT
            sent = 'ringspan_exporter_sent_spans_total{exporter="file"}'
            while True:
                status, kind, text = ask(port, "/metrics")
                expect(status == 200 and kind.startswith("text/plain; version=0.0.4"), f"{status} {kind}")
                expect("my-secret" not in text, "a secret is shown")
                series = prometheus(text)
                if series[sent] > 0 or time.monotonic() > end:
                    break
                time.sleep(0.1)
            expect(series[sent] > 0, f"nothing sent: {text}")
            expect(series['ringspan_exporter_sent_spans_total{exporter="zipkin"}'] == 0, text)
            expect(series['ringspan_exporter_queue_spans{exporter="zipkin"}'] > 0, text)


SECRETS = ("geheim-1", "geheim-2", "geheim-3")


def test_debug_dump():
    """One process's messages, redacted, until the time is over; nobody else's; one dump at a time."""
    needs_capture()
    with Dir() as d, Server() as web, Server() as other, Agent(
            "run", "--socket", d("s"), "--file", d("f"), "--port", str(web.port), "--port", str(other.port),
            "--redact-query", "mine"):
        ask_dump = [RINGSPAN, "debug", "dump", "--socket", d("s"), "--json", "--pid"]
        with subprocess.Popen(ask_dump + [str(os.getpid()), "--seconds", "300"], stdout=subprocess.PIPE, text=True) as p:
            out = p.stdout.readline()
            expect(json.loads(out)["type"] == "begin", "no beginning")
            done = subprocess.run(ask_dump + ["1", "--seconds", "1"], capture_output=True, text=True, check=False)
            fails(done, 1, "another dump is running")
            for _ in range(3):
                with socket.create_connection(("127.0.0.1", web.port)) as s:
                    s.sendall(b"GET /x?sig=geheim-1&mine=geheim-2&a=b HTTP/1.0\r\nAuthorization: geheim-3\r\n\r\n")
                    while s.recv(4096):
                        pass
            subprocess.run(["curl", "-s", f"http://127.0.0.1:{other.port}/", "-o", "/dev/null"], check=True)
            while out.count('"type":"close"') < 6:  # both ends of three connections
                line = p.stdout.readline()
                expect(line, f"the dump has ended: {out}")
                out += line
            p.kill()  # whoever leaves early frees the place
        lines = [json.loads(line) for line in out.splitlines()]
        kinds = [o["type"] for o in lines]
        expect({"open", "data", "request", "request_end", "response", "response_end", "close"} <= set(kinds), kinds)
        heads = [o["attributes"] for o in lines if o["type"] == "request" and o["role"] == "server"]
        expect(any(a.get("url.query") == "sig=REDACTED&mine=REDACTED&a=b" for a in heads), heads)
        expect(any(o["attributes"]["http.response.status_code"] == 200 for o in lines if o["type"] == "response"), lines)
        expect(not any(secret in out for secret in SECRETS), "a secret is shown")
        expect("curl" not in {a.get("user_agent.original", "")[:4] for a in heads if a.get("server.port") == web.port}, heads)
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            done = subprocess.run(ask_dump + ["1", "--seconds", "1"], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                break
        expect(done.returncode == 0 and "nothing seen of process 1" in done.stderr, done)
    fails(ringspan("debug", "dump", "--pid", "1", "--socket", "/nonexistent/s"), 1, "no agent")
    fails(ringspan("debug", "dump"), 2, "--pid")
    fails(ringspan("debug"), 2, "debug dump")
    fails(ringspan("debug", "dump", "--pid", "1", "--seconds", "301"), 2, "--seconds")


def members(path):
    with tarfile.open(path) as tar:
        return {os.path.basename(m.name): tar.extractfile(m).read().decode() for m in tar}


def test_bugreport():
    """All of it readable, and no secret anywhere; without an agent it says so and has the rest."""
    needs_capture()
    with Dir() as d, Server() as web, Agent(
            "run", "--socket", d("s"), "--port", str(web.port), "--otlp-headers", "authorization=Bearer geheim-1",
            "--exporter", "otlp-http=http://me:geheim-2@127.0.0.1:1/x?key=geheim-3"):
        web.get()
        done = ringspan("bugreport", "--socket", d("s"), "-o", d("r.tar.gz"))
        expect(done.returncode == 0 and done.stdout.strip() == d("r.tar.gz"), done)
        expect(os.stat(d("r.tar.gz")).st_mode & 0o777 == 0o600, "others may read it")
        has = members(d("r.tar.gz"))
        expect(json.loads(has["status.json"])["state"] == "capturing" and "capturing" in has["status.txt"], has)
        expect(json.loads(has["check.json"])["features"] and json.loads(has["version.json"])["version"], has)
        expect("authorization=***" in has["config.txt"] and "otlp-http=http://***@127.0.0.1:1/x?***" in has["config.txt"],
               has["config.txt"])
        expect("capturing" in has["log.txt"] and "CapEff" in has["machine.txt"], has)
        found = [(name, s) for name, text in has.items() for s in SECRETS if s in text]
        expect(not found, found)
        done = ringspan("bugreport", "--socket", d("nobody"), "-o", d("r2.tar.gz"))
        expect("no agent is running" in members(d("r2.tar.gz"))["status.json"], done)
        fails(ringspan("bugreport", "-o", "/nonexistent/x"), 1, "/nonexistent/x")


# -- ends ------------------------------------------------------------------------------------------------------------

def test_signals_end_it():
    needs_capture()
    for command in ("run", "trace"):
        for signo in (signal.SIGTERM, signal.SIGINT):
            with Dir() as d, Agent(command, "--socket", d("s")) as a:
                code, said, took = a.end(signo)
                expect(code == 0, f"{command} {signo.name}: exit code {code}: {said}")
                expect("nothing lost" in said or "lost:" in said, f"no last line: {said}")
                print(f"measured: {command} ends {took * 1000:.0f} ms after {signo.name}")


def test_duration_and_count():
    needs_capture()
    expect(ringspan("trace", "--duration", "200ms").returncode == 0, "--duration")
    with Server() as web, Agent("trace", "--count", "3", "--port", str(web.port), "--format", "json",
                                stdout=subprocess.PIPE) as a:
        web.keep_asking(a.process)
        spans = a.process.stdout.read().splitlines()
        expect(a.process.wait(WAIT) == 0 and len(spans) == 3, f"{len(spans)} spans: {spans}")


def test_trace_into_closed_pipe():
    needs_capture()
    for form in ("text", "json"):
        with Server() as web, Agent("trace", "--port", str(web.port), "--format", form,
                                    stdout=subprocess.PIPE) as a:
            a.process.stdout.close()
            a.process.stdout = None
            web.keep_asking(a.process)
            expect(a.process.poll() == 0, f"{form}: exit code {a.process.poll()}")


def test_trace_onto_full_disk():
    needs_capture()
    with Server() as web, Agent("trace", "--port", str(web.port), "-o", "/dev/full") as a:
        web.keep_asking(a.process)
        expect(a.process.poll() == 1, f"exit code {a.process.poll()}")
        expect("No space left on device" in a.process.stderr.read(), "no reason")


# -- trace -- CMD ----------------------------------------------------------------------------------------------------

def test_command_exit_status():
    needs_capture()
    for script, code in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)):
        done = ringspan("trace", "--", "sh", "-c", script)
        expect(done.returncode == code, f"{script}: {done.returncode}, not {code}: {done.stderr}")
    with Dir() as d:
        done = ringspan("trace", "--", "/nonexistent/cmd")
        expect(done.returncode == 127 and "/nonexistent/cmd: No such file" in done.stderr, done)
        done = ringspan("trace", "--", d("not-executable", ""))
        expect(done.returncode == 126 and "Permission denied" in done.stderr, done)
    fails(ringspan("trace", "--"), 2, "--")
    fails(ringspan("trace", "ls"), 2, "unexpected argument 'ls'", "-- ")


def test_command_is_traced():
    """From its first instruction, its children too, and nobody else."""
    needs_capture()
    with Server() as web:
        url = f"http://127.0.0.1:{web.port}"
        done = ringspan("trace", "--format", "json", "--", "sh", "-c",
                        f"curl -s {url}/a >/dev/null; (curl -s {url}/b >/dev/null); echo done >&2")
        spans = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        seen = sorted((s["kind"], s["attributes"]["url.full"].rsplit("/", 1)[1]) for s in spans)
        expect(seen == [("client", "a"), ("client", "b")], f"{seen}: {done.stderr}")


def test_command_gets_signals():
    needs_capture()
    for signo in (signal.SIGTERM, signal.SIGINT):
        with Dir() as d:
            script = f"trap 'exit 42' {signo.name[3:]}; touch {d('ready')}; while :; do sleep 0.05; done"
            with subprocess.Popen([RINGSPAN, "trace", "--", "sh", "-c", script], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True) as p:
                end = time.monotonic() + WAIT
                while not os.path.exists(d("ready")) and time.monotonic() < end:
                    time.sleep(0.02)
                p.send_signal(signo)
                try:
                    p.wait(WAIT)
                except subprocess.TimeoutExpired:
                    p.kill()
                expect(p.returncode == 42, f"{signo.name}: exit code {p.returncode}")


def main():
    return suite.run([(name, case) for name, case in globals().items() if name.startswith("test_")], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
