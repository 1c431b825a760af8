#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What capturing costs a real nginx and wrk: capture.py [--pairs N] [--slice MS]. Root, two CPUs.

nginx (one worker, 1 KB file, keep-alive, 16 connections) and wrk share CPU 0, the agent runs on CPU 1 and writes
its spans to a file. Slices with the agent and without alternate in one run of wrk; each pair of neighbours gives
one difference, the medians of the differences are shown. CPU time comes from /proc/PID/task/*/schedstat, the
number of requests from nginx itself (stub_status). Both capture backends take turns, so that what else the
machine does meets both alike. Requests/s lost is what the clock says, and means little while other work shares the
CPUs; "by CPU time" is what the CPU time says of a CPU that server and client have for themselves.
"""
import argparse
import json
import os
import resource
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "live"))
from harness import RINGSPAN, Place, can_trace, children, free_port, stop, wait_until  # noqa: E402

BACKENDS = ("socket", "syscall")

NGINX = """daemon off; master_process on; worker_processes 1; user root; pid DIR/pid; error_log DIR/error.log warn;
events { worker_connections 12000; } worker_rlimit_nofile 30000;
http { access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; sendfile off; default_type text/plain;
client_body_temp_path DIR/t1; proxy_temp_path DIR/t2; fastcgi_temp_path DIR/t3; uwsgi_temp_path DIR/t4; scgi_temp_path DIR/t5;
server { listen 127.0.0.1:PORT backlog=4096; root DIR; location /stat { stub_status; } } }
"""


def cpu_seconds(pids):
    """CPU time of all threads of some processes, by the scheduler's own clock."""
    total = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            total += int(open(f"/proc/{pid}/task/{task}/schedstat").read().split()[0])
    return total / 1e9


def kernel_share(pid):
    """(user, kernel) seconds of a process."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    tick = os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / tick, int(fields[12]) / tick


def rss_mb(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


class Nginx:
    def __init__(self, place):
        self.dir, self.port = place.path("nginx"), free_port()
        os.makedirs(self.dir)
        with open(self.dir + "/1k.txt", "wb") as f:
            f.write(b"0123456789abcde\n" * 64)
        with open(self.dir + "/conf", "w") as f:
            f.write(NGINX.replace("DIR", self.dir).replace("PORT", str(self.port)))
        self.master = place.spawn(["nginx", "-e", self.dir + "/error.log", "-p", self.dir, "-c", self.dir + "/conf"])
        wait_until("nginx", lambda: self.connects() and children(self.master.pid))
        self.worker = children(self.master.pid).pop()
        self.sock = socket.create_connection(("127.0.0.1", self.port))

    def connects(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def requests(self):
        """All requests so far, by nginx's own count."""
        self.sock.sendall(b"GET /stat HTTP/1.1\r\nHost: a\r\n\r\n")
        text = b""
        while b"Reading" not in text:
            text += self.sock.recv(4096)
        return int(text.split(b"requests\n")[1].split()[2])


class Agent:
    """`ringspan trace` pinned to a CPU; start() returns after the line that says it captures."""

    def __init__(self, place, backend, cpu):
        self.out, self.path = place.path("spans.json"), place.path("bench.sock")
        begin = time.monotonic()
        self.process = subprocess.Popen(
            [RINGSPAN, "trace", "--format", "json", "-o", self.out, "--socket", self.path, "--capture", backend],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
        place.processes.append(self.process)
        text = b""
        while b"capturing" not in text:
            if not select.select([self.process.stderr], [], [], 30)[0]:
                sys.exit("the agent does not start: " + text.decode())
            data = os.read(self.process.stderr.fileno(), 4096)
            if not data:
                sys.exit("the agent does not start: " + text.decode())
            text += data
        self.start_seconds = time.monotonic() - begin

    def status(self):
        done = subprocess.run([RINGSPAN, "status", "--json", "--socket", self.path], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)

    def stop(self):
        stop(self.process, signal.SIGTERM)
        self.process.stderr.close()


def lost(status):
    return sum(row["value"] for row in status["ledger"] if row["stage"] == "kernel" and row["kind"] == "dropped")


class Slice:
    """One measurement; all are per second or per request of it."""

    def __init__(self, nginx, wrk, agent, seconds):
        def read():
            n = nginx.requests()
            return (n, time.monotonic(), cpu_seconds([nginx.worker]), cpu_seconds([wrk.pid]),
                    cpu_seconds([agent.process.pid]) if agent else 0)
        a = read()
        time.sleep(seconds)
        b = read()
        n = max(1, b[0] - a[0])
        self.requests = n
        self.rate = n / (b[1] - a[1])
        self.server, self.client, self.agent = ((b[i] - a[i]) / n * 1e6 for i in (2, 3, 4))


def quartiles(values):
    values = sorted(values)
    return values[len(values) // 4], statistics.median(values), values[len(values) * 3 // 4]


def compare(place, args):
    nginx = Nginx(place)
    wrk = place.spawn(["wrk", "-t1", "-c16", f"-d{args.pairs * 8 + 60}s", f"http://127.0.0.1:{nginx.port}/1k.txt"],
                      stdout=subprocess.DEVNULL)
    for pid in (nginx.worker, wrk.pid, *map(int, os.listdir(f"/proc/{wrk.pid}/task"))):
        os.sched_setaffinity(pid, {0})
    time.sleep(1)
    rows = {b: [] for b in BACKENDS}
    base, starts, losses, split = [], {b: [] for b in BACKENDS}, dict.fromkeys(BACKENDS, 0), {b: [0, 0] for b in BACKENDS}
    bpf = {b: [] for b in BACKENDS}
    for _ in range(args.pairs):
        for backend in BACKENDS:
            without = Slice(nginx, wrk, None, args.slice)
            agent = Agent(place, backend, 1)
            time.sleep(0.15)
            user0, kernel0 = kernel_share(agent.process.pid)
            with_ = Slice(nginx, wrk, agent, args.slice)
            user1, kernel1 = kernel_share(agent.process.pid)
            after = Slice(nginx, wrk, agent, 0.05)
            del after
            status = agent.status()
            agent.stop()
            again = Slice(nginx, wrk, None, args.slice)
            split[backend][0] += user1 - user0
            split[backend][1] += kernel1 - kernel0
            losses[backend] += lost(status)
            starts[backend].append(agent.start_seconds)
            bpf[backend].append(status["usage"]["map_bytes"])
            # The mean of the slices before and after: what drifts slowly falls out.
            mean = {k: (getattr(without, k) + getattr(again, k)) / 2 for k in ("server", "client", "rate")}
            base.append(mean)
            rows[backend].append((with_.server - mean["server"], with_.client - mean["client"], with_.agent,
                                  (1 - with_.rate / mean["rate"]) * 100,
                                  (1 - (mean["server"] + mean["client"]) / (with_.server + with_.client)) * 100))
    wrk.send_signal(signal.SIGINT)
    wrk.wait()
    print(f"nginx 1 KB keep-alive, wrk 16 connections, {args.pairs} pairs a backend of {args.slice * 1000:.0f} ms slices; "
          f"load average {os.getloadavg()[0]:.1f}")
    print(f"without the agent: {statistics.median(b['rate'] for b in base):.0f} requests/s, "
          f"server {statistics.median(b['server'] for b in base):.2f} µs, "
          f"client {statistics.median(b['client'] for b in base):.2f} µs CPU per request")
    print(f"{'median [quartiles], µs CPU per request':42}{'server +':>22}{'client +':>22}{'agent':>22}{'requests/s lost':>26}{'lost, by CPU time':>24}")
    for backend in BACKENDS:
        cells = []
        for i in range(5):
            low, mid, high = quartiles([r[i] for r in rows[backend]])
            unit = " %" if i >= 3 else ""
            cells.append(f"{mid:.2f}{unit} [{low:.2f} {high:.2f}]")
        user, kernel = split[backend]
        part = f"(agent: {user / max(user + kernel, 1e-9) * 100:.0f} % user, {kernel / max(user + kernel, 1e-9) * 100:.0f} % kernel)"
        print(f"{backend + ' ' + part:42}{cells[0]:>22}{cells[1]:>22}{cells[2]:>22}{cells[3]:>26}{cells[4]:>24}")
        print(f"{'':8}lost records {losses[backend]}, start to capturing {statistics.median(starts[backend]) * 1000:.0f} ms "
              f"(worst {max(starts[backend]) * 1000:.0f})")


def memory(place, backend, connections):
    """RSS and map memory, idle and with many open connections that each had a request."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(30000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    nginx = Nginx(place)
    agent = Agent(place, backend, 1)
    time.sleep(0.5)
    idle = rss_mb(agent.process.pid), agent.status()["usage"]["map_bytes"] / 2**20
    socks = []
    for i in range(connections):
        s = socket.create_connection(("127.0.0.1", nginx.port))
        s.sendall(b"GET /1k.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        while len(s.recv(4096)) == 4096:
            pass
        socks.append(s)
    time.sleep(1)
    busy = rss_mb(agent.process.pid), agent.status()["usage"]["map_bytes"] / 2**20
    print(f"memory, {backend}: idle RSS {idle[0]:.1f} MB, maps {idle[1]:.1f} MB; "
          f"with {connections} open connections (both ends traced) RSS {busy[0]:.1f} MB, maps {busy[1]:.1f} MB")
    for s in socks:
        s.close()
    agent.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--slice", type=lambda ms: int(ms) / 1000, default=0.2, metavar="MS")
    parser.add_argument("--connections", type=int, default=10000)
    parser.add_argument("--only", choices=("cost", "memory"))
    args = parser.parse_args()
    reason = can_trace()
    if reason or os.cpu_count() < 2:
        sys.exit(f"bench-capture needs root, BPF and two CPUs: {reason}")
    missing = [n for n in ("nginx", "wrk") if not shutil.which(n)]
    if missing:
        sys.exit(f"bench-capture needs {' and '.join(missing)}: `make deps-test` installs what is missing")
    for part in ("cost", "memory"):
        if args.only not in (None, part):
            continue
        place = Place("bench-" + part)
        try:
            if part == "cost":
                compare(place, args)
            else:
                memory(place, "socket", args.connections)
        finally:
            place.close(keep=False)


if __name__ == "__main__":
    main()
