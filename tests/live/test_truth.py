# SPDX-License-Identifier: Apache-2.0
"""Spans against the servers' own logs, as multisets of (method, target, status), under real load."""
import collections
import os
import signal
import subprocess
import time

from harness import CLIENT, RINGSPAN, ROOM, SERVER, LiveTest, Load, Nginx, Spans, Wire, at_once, node, python, stop, wait_until, wrk


class Truth(LiveTest):
    def check_nginx(self, rounds, *agent_args, **agent_kw):
        """Load nginx with wrk; every row of the access log is one server span, every response one client span."""
        nginx = Nginx(self.place)
        agent = self.agent(*ROOM, *agent_args, **agent_kw)
        complete, pids = 0, set()
        for number, how in enumerate(rounds):
            want = how.pop("at_least")
            goal = nginx.log.count() + want
            part = 0
            while nginx.log.count() < goal:
                # Two connections are enough for a few thousand requests.
                done, pid = wrk(self.place, f"http://127.0.0.1:{nginx.port}", 1 if want < 10000 else 2,
                                connections=2 if want < 10000 and "depth" not in how else 16,
                                prefix=f"{number}.{part}.", **how)
                complete += done
                pids.add(pid)
                part += 1
        agent.settle()
        self.assert_nothing_lost(agent)
        dropped = agent.losses(no_loss=())
        spans = agent.stop()
        rows = nginx.log.rows()
        self.measured(f"{len(rows)} requests, {complete} complete responses, {len(spans)} spans")

        # When wrk stops, a few responses can no longer be delivered: no bytes sent, no status on the wire.
        told = collections.Counter((r[0], r[1], int(r[2])) for r in rows if r[5] != "0")
        untold = collections.Counter((r[0], r[1]) for r in rows if r[5] == "0")
        servers = spans.where(SERVER, nginx.pids)
        self.assert_same(servers.where(test=lambda s: s.status is not None).triples(), told, "server spans")
        unfinished = servers.where(test=lambda s: s.status is None)
        asked = collections.Counter((s.method, s.target) for s in unfinished)
        self.assert_none(untold - asked, "unanswered requests that were not seen")
        # nginx may have read more than it came to handle, or to log.
        depth = max(how.get("depth", 1) for how in rounds)
        self.assertLessEqual(sum((asked - untold).values()), 16 * depth * len(pids), "requests in flight when wrk stopped")

        clients = spans.where(CLIENT, pids)
        broken = clients.where(test=lambda s: s.error is not None and not s.error.isdigit())
        whole = clients.where(test=lambda s: s.error is None or s.error.isdigit())
        ends = collections.Counter((s.target.split("?")[-1].split(".")[0], s.pid, s.error) for s in broken)
        self.assertEqual(len(whole), complete, f"client spans with a whole response, against wrk's own count; others: {ends}, {dropped}; "
                         f"no client span: {list((nginx.log.triples() - clients.triples()).items())[:20]}")
        self.assert_none(whole.triples() - nginx.log.triples(), "client spans that the server does not know")
        self.assertLessEqual(len(broken), 16 * depth * len(pids), "requests in flight when wrk stopped")
        return spans

    def test_wrk_keepalive_close_and_pipelined(self):
        self.check_nginx([{"at_least": 20000}, {"at_least": 5000, "close": True}, {"at_least": 4000, "depth": 8}])

    def test_wrk_syscall_backend(self):
        self.check_nginx([{"at_least": 5000}, {"at_least": 3000, "close": True}, {"at_least": 3000, "depth": 8}],
                         "--capture", "syscall")

    def test_run_exporter_file(self):
        self.check_nginx([{"at_least": 5000}], command="run")

    def check_nothing_invented(self, nginx, spans, pids=None):
        """Whatever was not captured: each span that has a status is a row of the log."""
        for what, some in (("server", spans.where(SERVER, nginx.pids)), ("client", spans.where(CLIENT, pids) if pids else [])):
            told = collections.Counter(s.triple() for s in some if s.status is not None and s.target.startswith("/"))
            self.assert_none(told - nginx.log.triples(), f"{what} spans that never were")

    def check_start_under_load(self, *agent_args):
        """The agent comes and goes while requests are under way on every connection."""
        nginx = Nginx(self.place)
        load = Load(self.place, f"http://127.0.0.1:{nginx.port}")
        wait_until("requests", lambda: nginx.log.count() > 1000)
        first = self.agent(*ROOM, *agent_args)
        before = nginx.log.count()
        wait_until("more requests", lambda: nginx.log.count() > before + 10000)
        after = nginx.log.count()
        spans = first.stop(settle=False)
        load.end()
        self.check_nothing_invented(nginx, spans, {load.pid})
        seen = len(spans.where(SERVER, nginx.pids, test=lambda s: s.status is not None))
        self.assertGreaterEqual(seen, after - before - 32, "requests between two readings of the log")

    def test_start_under_load(self):
        self.check_start_under_load()

    def test_start_under_load_syscall_backend(self):
        self.check_start_under_load("--capture", "syscall")

    def test_ring_overflow_is_counted_and_invents_nothing(self):
        nginx = Nginx(self.place)
        agent = self.agent("--ring-size", "65536")
        done, pid = wrk(self.place, f"http://127.0.0.1:{nginx.port}", 2)
        again = Wire(("127.0.0.1", nginx.port))

        def calm():  # the storm's last records fill the ring until it is read once more
            again.get("/s/404?over")
            return agent.saw(lambda s: s.kind == SERVER and s.target == "/s/404?over")
        wait_until("the storm to be over", calm)
        for i in range(10):
            again.get(f"/s/404?calm{i}")
        agent.settle()
        losses = agent.losses()
        spans = agent.stop()
        seen = len(spans.where(SERVER, nginx.pids, test=lambda s: s.status is not None))
        self.measured(f"64 KB ring: {nginx.log.count()} requests, {seen} server spans, losses {losses}")
        self.check_nothing_invented(nginx, spans, {pid})
        if seen < nginx.log.count():
            self.assertGreater(sum(losses.values()), 0, "what is missing is counted")
        self.assertEqual(len(spans.where(SERVER, nginx.pids, "/s/404?calm")), 10, "after the storm all is seen again")

    def test_what_is_not_read_at_the_end_is_counted(self):
        """An agent that must end with more in the ring than it has time for."""
        nginx = Nginx(self.place)
        agent = self.agent("--ring-size", "128m")
        agent.process.send_signal(signal.SIGSTOP)
        wrk(self.place, f"http://127.0.0.1:{nginx.port}", 3)
        agent.process.send_signal(signal.SIGTERM)
        agent.process.send_signal(signal.SIGCONT)
        self.assertEqual(stop(agent.process), 0)
        told = agent.stderr().splitlines()[-1]
        self.measured(f"{nginx.log.count()} requests; {told}")
        if len(Spans.load(agent.out).where(SERVER, nginx.pids)) < nginx.log.count():
            self.assertRegex(told, "unread|ring_full")

    def test_a_sweep_waits_for_what_is_not_read_yet(self):
        """An agent that had no CPU for long finds sockets gone whose last words are in the ring, behind much else."""
        process, port, log = node(self.place)
        agent = self.agent(*ROOM)
        wires = [Wire(("127.0.0.1", int(port))) for _ in range(16)]
        for i, wire in enumerate(wires):
            wire.send(f"GET /slow/11000?{i} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        wait_until("both ends of the requests", lambda: agent.counter("pair", "open") == 2 * len(wires))
        begin = time.monotonic()
        agent.process.send_signal(signal.SIGSTOP)
        self.drive(("127.0.0.1", int(port)), 12000)  # more records than the agent reads in two turns
        for wire in wires:
            self.assertEqual(wire.response(), 200)
            wire.close()
        time.sleep(max(0.0, begin + 10.5 - time.monotonic()))  # a sweep is due
        agent.process.send_signal(signal.SIGCONT)
        agent.settle()
        self.assert_nothing_lost(agent)
        spans = agent.stop()
        want = collections.Counter(("GET", f"/slow/11000?{i}", 200) for i in range(len(wires)))
        self.assert_same(spans.where(SERVER, {process.pid}, "/slow/").triples(), want, "server spans")
        self.assert_same(self.mine(spans).where(prefix="/slow/").triples(), want, "client spans")

    def test_record_and_replay_give_the_same(self):
        nginx = Nginx(self.place)
        tape = self.place.path("tape.tev")
        recorder = self.place.spawn([RINGSPAN, "record", "-o", tape, "--socket", self.place.path("r.sock"), "--port", str(nginx.port)],
                                    stderr=open(self.place.path("record.err"), "w"))
        wait_until("the recorder", lambda: "capturing" in open(self.place.path("record.err")).read(), 30)
        told = self.drive(("127.0.0.1", nginx.port), 800)
        stop(recorder)
        out = self.place.path("replayed.json")
        subprocess.run([RINGSPAN, "replay", tape, "--format", "json", "-o", out], check=True)
        spans = Spans.load(out)
        self.assert_same(spans.where(SERVER, nginx.pids).triples(), nginx.log.triples(), "server spans")
        self.assert_same(self.mine(spans).triples(), told, "client spans")

    def drive(self, where, count, each=25, prefix="c"):
        """count requests on 8 keep-alive connections; what the client was told, as a multiset."""
        codes = (200, 404, 200, 500, 201, 204)

        def one(number):
            mine = collections.Counter()
            wire = Wire(where)
            for i in range(count // 8):
                if i % each == each - 1:
                    wire.close()
                    wire = Wire(where)
                target = f"/s/{codes[i % len(codes)]}?{prefix}{number}.{i}"
                mine["GET", target, wire.get(target)] += 1
            wire.close()
            return mine

        return sum(at_once(one, range(8)), collections.Counter())

    def check_server(self, make, count, where=None, agent_args=()):
        process, port, log = make()
        agent = self.agent(*ROOM, *agent_args)
        told = self.drive(where or ("127.0.0.1", int(port)), count)
        wait_until("the server's log", lambda: log.count() >= sum(told.values()))
        agent.settle()
        self.assert_nothing_lost(agent)
        spans = agent.stop()
        self.assert_same(log.triples(), told, "the server's log against the client")
        self.assert_same(spans.where(SERVER, {process.pid}).triples(), told, "server spans")
        self.assert_same(self.mine(spans).triples(), told, "client spans")
        return spans

    def mine(self, spans):
        return spans.where(CLIENT, {os.getpid()})

    def test_node(self):
        self.check_server(lambda: node(self.place), 4000)

    def test_python(self):
        self.check_server(lambda: python(self.place), 2400)

    def test_node_syscall_backend(self):
        self.check_server(lambda: node(self.place), 1600, agent_args=("--capture", "syscall"))

    def test_unix_socket_node(self):
        path = self.place.path("n.sock")
        spans = self.check_server(lambda: node(self.place, listen=path), 2400, where=path)
        self.assertTrue(all(s.attributes.get("network.transport", "unix") == "unix"
                            for s in spans.where(SERVER, prefix="/s/")))

    def test_unix_socket_python(self):
        path = self.place.path("p.sock")
        self.check_server(lambda: python(self.place, listen=path), 1600, where=path)

    def check_nginx_at(self, where_of, *agent_args):
        nginx = Nginx(self.place)
        agent = self.agent(*ROOM, *agent_args)
        told = self.drive(where_of(nginx), 2400)
        wait_until("the access log", lambda: nginx.log.count() >= sum(told.values()))
        agent.settle()
        self.assert_nothing_lost(agent)
        spans = agent.stop()
        self.assert_same(spans.where(SERVER, nginx.pids).triples(), nginx.log.triples(), "server spans")
        self.assert_same(self.mine(spans).triples(), told, "client spans")
        return spans

    def test_ipv6(self):
        spans = self.check_nginx_at(lambda n: ("::1", n.port))
        peers = {s.attributes.get("network.peer.address") for s in spans.where(SERVER, prefix="/s/")}
        self.assertIn("::1", peers)

    def test_unix_socket_nginx(self):
        self.check_nginx_at(lambda n: n.socket)

    def test_unix_socket_nginx_syscall_backend(self):
        self.check_nginx_at(lambda n: n.socket, "--capture", "syscall")

    def check_old_connections(self, *agent_args):
        """Connections that are older than the agent, idle and between two requests, are seen whole from now on."""
        nginx = Nginx(self.place)
        path = self.place.path("old.sock")
        process, _, log = node(self.place, listen=path)
        wires = [Wire(("127.0.0.1", nginx.port)) for _ in range(20)] + [Wire(path) for _ in range(20)]
        for wire in wires:
            wire.get("/s/200?before")
        agent = self.agent(*ROOM, *agent_args)
        for number, wire in enumerate(wires):
            for i in range(10):
                wire.get(f"/s/404?after{number}.{i}")
        agent.settle()
        self.assert_nothing_lost(agent)
        spans = agent.stop()
        for what, pids, log in (("nginx", nginx.pids, nginx.log), ("node", {process.pid}, log)):
            want = collections.Counter((r[0], r[1], int(r[2])) for r in log.rows() if "before" not in r[1])
            self.assert_same(spans.where(SERVER, pids).triples(), want, f"server spans of {what}")
        self.assertEqual(len(self.mine(spans)), 400)
        addresses = {s.attributes.get("network.peer.address") for s in spans.where(SERVER, nginx.pids)}
        self.assertEqual(addresses, {"127.0.0.1"}, "addresses of connections that were there before")

    def test_connections_before_the_agent(self):
        self.check_old_connections()

    def test_connections_before_the_agent_syscall_backend(self):
        self.check_old_connections("--capture", "syscall")
