# SPDX-License-Identifier: Apache-2.0
"""Configuration, variables, and files that are read and written."""
import http.server
import json
import os
import re
import signal
import threading

from common import Dir, fails, needs_capture, Quiet, ringspan, SCRIPT
from suite import expect


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


def test_pipe_without_reader():
    """Said at once: a wait for a reader could not be ended by a signal."""
    needs_capture()
    with Dir() as d:
        os.mkfifo(d("pipe"))
        for command in (("trace", "-o", d("pipe")), ("record", "-o", d("pipe")), ("run", "--exporter", "file=" + d("pipe"))):
            fails(ringspan(*command, "--socket", d("s")), 1, d("pipe"), "Broken pipe")


def test_closed_stdout():
    with Dir() as d:
        script = d("s.jsonl", SCRIPT)
        reader, writer = os.pipe()
        os.close(reader)
        done = ringspan("replay", script, stdout=writer)
        os.close(writer)
        expect(done.returncode in (0, -signal.SIGPIPE) and not done.stderr, f"a closed pipe is no error: {done}")
