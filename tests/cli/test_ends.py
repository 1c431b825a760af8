# SPDX-License-Identifier: Apache-2.0
"""How agents end, and commands that are traced from their first instruction."""
import json
import os
import signal
import socket
import subprocess
import time

from common import Agent, ask, Dir, fails, needs_capture, RINGSPAN, ringspan, Server, status, WAIT
from suite import expect, free_port, wait_until


def test_stopping():
    """While exporters still send, the agent says that it does not capture any more; a second signal ends that."""
    needs_capture()
    page = free_port()
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
