# SPDX-License-Identifier: Apache-2.0
"""The running agent: its socket, its pages, dumps and bug reports."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import tarfile
import termios
import threading
import time

from common import Agent, ask, Dir, fails, needs_capture, RINGSPAN, ringspan, Server, status, WAIT
from suite import expect, free_port


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
            "SIGTERM": lambda _, pid: os.kill(pid, signal.SIGTERM), "^\\": lambda fd, _: os.write(fd, b"\x1c")}
    with Dir() as d, Agent("run", "--socket", d("s")):
        for (rows, columns), (how, act) in zip([(24, 80), (7, 30), (1, 1), (9, 40)], ends.items()):
            out, code, changed = in_terminal(rows, columns, act, "--socket", d("s"))
            expect(code == 0 and not changed, f"{how}: exit code {code}; modes of the terminal: {changed}")
            expect(out.startswith("\033[?1049h\033[?7l") and out.endswith("\033[?7h\033[?1049l"), f"{how}: {out[-60:]!r}")
            for screen in out.split("\033[H\033[J")[1:-1]:
                expect(screen.count("\n") < rows and screen.startswith("\033[1mringspan"), f"{rows} rows: {screen!r}")


def test_watch_stopped():
    """While it is stopped the terminal is the shell's: as it was, with the cursor; then it goes on."""
    needs_capture()
    found = []

    def act(fd, pid):
        os.kill(pid, signal.SIGTSTP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
        found.append(termios.tcgetattr(fd)[3] & (termios.ICANON | termios.ECHO))
        os.kill(pid, signal.SIGCONT)
        os.write(fd, b"q")

    with Dir() as d, Agent("run", "--socket", d("s")):
        out, code, changed = in_terminal(24, 80, act, "--socket", d("s"))
        expect(code == 0 and not changed, f"exit code {code}; modes of the terminal: {changed}")
        expect(found == [termios.ICANON | termios.ECHO], f"stopped, keys are not the shell's: {found}")
        expect(out.count("\033[?1049h") == out.count("\033[?1049l") == 2, f"not left and entered again: {out[-300:]!r}")


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
        port, nobody = free_port(), closed.getsockname()[1]
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
        expect("spans go to " in has["log.txt"] and "capturing" in has["log.txt"] and "CapEff" in has["machine.txt"], has)
        found = [(name, s) for name, text in has.items() for s in SECRETS if s in text]
        expect(not found, found)
        done = ringspan("bugreport", "--socket", d("nobody"), "-o", d("r2.tar.gz"))
        expect("no agent is running" in members(d("r2.tar.gz"))["status.json"], done)
        fails(ringspan("bugreport", "-o", "/nonexistent/x"), 1, "/nonexistent/x")
