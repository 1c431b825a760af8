#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What seeing the plain text of TLS costs: tls.py [--rounds N] [--slice S]. Root; nginx, node, wrk.

An HTTPS server on CPU 0 and wrk on CPU 1, four connections kept alive. In each round, every way once, in slices: nothing;
sockets alone (ringspan --tls never); ringspan; empty programs at ringspan's places (the kernel's own share); empty
programs in the naive way: uprobe and uretprobe on SSL_read and SSL_write. Shown is the server's CPU time per request
(/proc/PID/task/*/schedstat) over that of the same round's nothing: the medians of the rounds.
"""
import argparse
import glob
import os
import re
import statistics
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests", "live"))
sys.path.insert(0, os.path.join(TOP, "bench"))
from capture import cpu_seconds  # noqa: E402
from harness import Agent, Place, SERVERS, can_trace, children, free_port, stop, wait_until  # noqa: E402

NGINX = """daemon off; master_process on; worker_processes 1; user root; pid DIR/pid; error_log DIR/error.log warn;
events { worker_connections 512; }
http { access_log off; keepalive_requests 1000000000; keepalive_timeout 600s;
server { listen 127.0.0.1:PORT ssl; ssl_protocols TLSv1.3; ssl_certificate DIR/cert.pem; ssl_certificate_key DIR/key.pem;
location / { return 200 "0123456789abcdef0123456789abcdef\\n"; } } }
"""


class Bench:
    def __init__(self, options):
        self.options = options
        self.place = Place("bench-tls")
        self.key, self.cert = self.place.path("key.pem"), self.place.path("cert.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                        self.key, "-out", self.cert, "-days", "2", "-subj", "/CN=localhost"], check=True, stderr=subprocess.DEVNULL)
        self.turn = 0

    def nginx(self):
        port, conf = free_port(), self.place.path("nginx.conf")
        with open(conf, "w") as f:
            f.write(NGINX.replace("DIR", self.place.dir).replace("PORT", str(port)))
        process = self.place.spawn(["taskset", "-c", "0", "nginx", "-e", self.place.path("error.log"), "-p", self.place.dir, "-c", conf],
                                   stderr=subprocess.DEVNULL)
        wait_until("nginx's worker", lambda: children(process.pid))
        return port, children(process.pid), glob.glob("/usr/lib/*/libssl.so.3")[0]

    def node(self):
        port = free_port()
        process = self.place.spawn_server(["taskset", "-c", "0", "node", SERVERS + "/tls.js", "serve", str(port), self.key, self.cert])
        return port, {process.pid}, os.path.realpath(f"/proc/{process.pid}/exe")

    def slice(self, port, pids):
        """Server's µs per request."""
        before, seconds = cpu_seconds(pids), self.options.slice
        text = subprocess.run(["taskset", "-c", "1", "wrk", "-t1", "-c4", f"-d{seconds}s", f"https://127.0.0.1:{port}/x"],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        requests = int(re.search(r"(\d+) requests in", text).group(1))
        return (cpu_seconds(pids) - before) * 1e6 / requests

    def empty(self, how, file, port, pids):
        process = subprocess.Popen([self.options.uprobes, how, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if not process.stdout.readline().startswith(b"attached"):
            sys.exit("uprobes failed")
        cost = self.slice(port, pids)
        process.stdin.close()
        process.wait()
        return cost

    def agent(self, port, pids, *args):
        self.turn += 1
        agent = Agent(self.place, "--port", str(port), *args, name=f"agent{self.turn}")
        cost = self.slice(port, pids)
        stop(agent.process)
        os.unlink(agent.out)
        return cost

    def run(self, name, start):
        port, pids, file = start()
        ways = {"sockets alone (--tls never)": lambda: self.agent(port, pids, "--tls", "never"),
                "ringspan": lambda: self.agent(port, pids),
                "  of that the kernel's: empty programs there": lambda: self.empty("points", file, port, pids),
                "naive: SSL_read/write, uprobe + uretprobe, empty": lambda: self.empty("naive", file, port, pids)}
        base, more = [], {way: [] for way in ways}
        time.sleep(0.5)
        self.slice(port, pids)
        for _ in range(self.options.rounds):
            base.append(self.slice(port, pids))
            for way, cost in ways.items():
                more[way].append(cost() - base[-1])
        print(f"{name}: {statistics.median(base):.1f} µs of server CPU per request without")
        for way, costs in more.items():
            print(f"  {way:50} +{statistics.median(costs):5.1f} µs   ({min(costs):.1f} to {max(costs):.1f})", flush=True)
        return {way: statistics.median(c) for way, c in more.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slice", type=int, default=1, help="seconds")
    parser.add_argument("--uprobes", default=os.path.join(TOP, "build", "release", "bench", "uprobes"))
    options = parser.parse_args()
    reason = can_trace()
    if reason:
        print(f"skipped: {reason}")
        return
    bench = Bench(options)
    try:
        bench.run("nginx HTTPS", bench.nginx)
        bench.run("node HTTPS", bench.node)
    finally:
        bench.place.close(keep=False)


main()
