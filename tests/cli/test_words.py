# SPDX-License-Identifier: Apache-2.0
"""Commands, options, help, the manual page, what is installed."""
import json
import os
import re
import shutil
import subprocess

from common import COMMANDS, Dir, fails, ringspan, SCRIPT, TOP
from suite import expect


def test_help():
    for command in COMMANDS:
        done = ringspan(command, "--help")
        expect(done.returncode == 0 and not done.stderr, f"{command} --help: {done}")
        expect(done.stdout.startswith(f"usage: ringspan {command} "), f"{command} --help: {done.stdout[:80]!r}")
        expect(ringspan("help", command).stdout == done.stdout, f"help {command} says something else")
        expect(all(len(line) <= 80 for line in done.stdout.splitlines()), f"{command} --help is wider than 80")
        ragged = [x for x in done.stdout.splitlines() if x.startswith("  ") and len(x) > 28 and (x[27] != " " or x[28] == " ")
                  and not re.fullmatch(r" {6}--\S+( \S+)?", x)]  # its text is on the next line
        expect(not ragged, f"{command} --help: {ragged}")
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
