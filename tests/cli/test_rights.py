# SPDX-License-Identifier: Apache-2.0
"""Missing rights and kernel features; what is left of them once the agent runs."""
import http.server
import json
import os
import re
import shutil
import ssl
import subprocess
import threading
import time
import unittest

from common import (Agent, ask, certificate, Collector, Dir, fails, mask, needs_capture, needs_root, rights_of, RINGSPAN,
                    ringspan, Server, status, WAIT)
from suite import expect, free_port


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


def test_sandbox():
    """What is left of root's rights, by the kernel's own account, and everything works without the rest: TLS to a name
    that is looked up, files that are rotated in another user's directory, a spool, the socket, the page."""
    needs_capture()
    later = ["BPF", "PERFMON"] + ([] if b"BPF_TRACE_UPROBE_MULTI" in open("/sys/kernel/btf/vmlinux", "rb").read()
                                  else ["SYS_ADMIN"])
    page = free_port()
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
