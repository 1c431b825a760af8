#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two namespaces, two agents that know nothing of each other: how many server spans name the right client span?

join.py [--by sequence|tcp-option|traceparent] [--seconds S] [--no-nat] [--no-loss]

wrk in one network namespace, nginx in another, keep-alive, no context in the headers; one agent traces wrk, one nginx,
both with --join cluster (or, to compare, with what --inject puts on the wire). The client asks a virtual address that
is translated, and of what arrives at either end every hundredth packet is dropped (nftables), so that requests and
answers are sent again. Right: the server span's
parent and trace ids are those of the client span with the same number in its path. Root; needs ip, tc, nft,
nginx and wrk.
"""
import argparse
import collections
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests", "live"))
sys.path.insert(0, os.path.join(TOP, "bench"))
import harness  # noqa: E402
import parents  # noqa: E402

CLIENT, SERVER, VIRTUAL = "10.213.7.1", "10.213.7.2", "10.213.99.9"
PORT = 8080
LOSS = 100  # every so manyeth packet that arrives is dropped, at either end


def sh(*argv):
    subprocess.run(argv, check=True)


class Net:
    """Two namespaces with a link between them."""

    def __init__(self, nat, loss):
        self.a, self.b = f"rsa{os.getpid()}", f"rsb{os.getpid()}"
        sh("ip", "netns", "add", self.a)
        sh("ip", "netns", "add", self.b)
        sh("ip", "-n", self.a, "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", self.b)
        for ns, addr in ((self.a, CLIENT), (self.b, SERVER)):
            sh("ip", "-n", ns, "addr", "add", addr + "/24", "dev", "v0")
            sh("ip", "-n", ns, "link", "set", "v0", "up")
            sh("ip", "-n", ns, "link", "set", "lo", "up")
            if loss:
                rules = ("table inet loss {\nchain p { type filter hook prerouting priority -300;\n"
                         f"tcp flags & (syn|fin|rst) == 0 numgen inc mod {LOSS} == 0 drop\n}}\n}}\n")
                subprocess.run(["ip", "netns", "exec", ns, "nft", "-f", "-"], input=rules, text=True, check=True)
        sh("ip", "-n", self.a, "route", "add", "default", "via", SERVER)
        if nat:
            rules = (f"table ip nat {{ chain o {{ type nat hook output priority -100; "
                     f"ip daddr {VIRTUAL} tcp dport 80 dnat to {SERVER}:{PORT}; }}\n"
                     "chain p { type nat hook postrouting priority 100; masquerade fully-random; }\n}\n")
            subprocess.run(["ip", "netns", "exec", self.a, "nft", "-f", "-"], input=rules, text=True, check=True)

    def close(self):
        for ns in (self.a, self.b):
            subprocess.run(["ip", "netns", "del", ns])

    def retransmits(self, ns):
        text = subprocess.run(["ip", "netns", "exec", ns, "cat", "/proc/net/snmp"], stdout=subprocess.PIPE,
                              text=True).stdout
        keys, values = [line.split() for line in text.splitlines() if line.startswith("Tcp:")]
        return int(values[keys.index("RetransSegs")])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=int, default=4)
    p.add_argument("--no-nat", action="store_true")
    p.add_argument("--no-loss", action="store_true")
    p.add_argument("--by", choices=("sequence", "tcp-option", "traceparent"), default="sequence")
    args = p.parse_args()
    how = ["--join", "cluster"] if args.by == "sequence" else ["--join", "off", "--inject", args.by, "--inject-force"]
    net, place = Net(not args.no_nat, not args.no_loss), harness.Place("join")
    try:
        conf = place.path("n.conf")
        with open(conf, "w") as f:
            f.write(parents.NGINX.format(dir=place.dir, name="n", port=PORT, up=PORT, keep="")
                    .replace("127.0.0.1:", "0.0.0.0:", 2).replace("server 0.0.0.0", "server 127.0.0.1"))
        server = place.spawn(["ip", "netns", "exec", net.b, "nginx", "-c", conf, "-p", place.dir, "-e",
                              place.path("n.err")])
        harness.wait_until("nginx", lambda: len(parents.tree(server.pid)) == 3)
        pids = [x for pid in parents.tree(server.pid) for x in ("-p", str(pid))]
        b = harness.Agent(place, *how, *pids, name="b")
        a = harness.Agent(place, *how, "--comm", "wrk", name="a")
        where = f"http://{SERVER}:{PORT}" if args.no_nat else f"http://{VIRTUAL}"
        sh("ip", "netns", "exec", net.a, "env", "WAY=d", "wrk", "-t", "1", "-c", "16", "-d", f"{args.seconds}s", "-s",
           os.path.join(parents.HERE, "load.lua"), where)
        clients, servers = a.stop(), b.stop()
        by_path = {s.target: s for s in clients if s.kind == "client"}
        n, ids = collections.Counter(), {s.id for s in clients}
        for s in servers:
            c = by_path.get(s.target)
            if s.kind != "server" or not c:
                continue
            n["requests"] += 1
            same = s.parent == c.id and s.trace == c.trace
            n["right" if same else "wrong" if s.parent in ids else "none"] += 1
        print(f"requests {n['requests']}, right {n['right']}, none {n['none']}, wrong {n['wrong']}; segments sent again: "
              f"{net.retransmits(net.a)} by the client, {net.retransmits(net.b)} by the server")
    finally:
        place.close(False)
        net.close()


if __name__ == "__main__":
    main()
