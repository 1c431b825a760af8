# SPDX-License-Identifier: Apache-2.0
"""Chains of servers: each hop once, and every span under its right parent."""
import collections

from harness import CLIENT, ROOM, SERVER, LiveTest, Nginx, Wire, at_once, node, python, wrk


class Chain(LiveTest):
    def test_nginx_proxy_under_load(self):
        """wrk → nginx → nginx: every hop is seen once, the proxy's calls are children of what it handles."""
        back = Nginx(self.place_in("back"))
        front = Nginx(self.place, backend=f"127.0.0.1:{back.port}")
        agent = self.agent(*ROOM)
        wrk(self.place, f"http://127.0.0.1:{front.port}", 2, prefix="p", base="/px")
        agent.settle()
        self.assert_nothing_lost(agent)
        spans = agent.stop()
        fronts = spans.where(SERVER, front.pids)
        calls = spans.where(CLIENT, front.pids)
        backs = spans.where(SERVER, back.pids)
        self.measured(f"{len(fronts)} requests through the proxy")
        self.assert_same(backs.where(test=lambda s: s.status is not None).triples(),
                         collections.Counter((r[0], r[1], int(r[2])) for r in back.log.rows() if r[5] != "0"), "second hop")
        self.assert_same(collections.Counter((s.method, s.target) for s in fronts),
                         collections.Counter((r[0], r[1]) for r in front.log.rows()), "first hop")
        self.assert_same(collections.Counter((s.method, s.target) for s in calls),
                         collections.Counter((r[0], r[1]) for r in back.log.rows()), "the proxy's calls")
        self.check_parents(fronts, calls, lambda t: t[len("/px"):])

    def place_in(self, name):
        """A second Place inside the first one's directory."""
        import os
        outer = self.place

        class Inner:
            dir = outer.path(name)
            path = staticmethod(lambda n: os.path.join(outer.path(name), n))
            spawn = staticmethod(outer.spawn)
        os.makedirs(Inner.dir)
        return Inner

    def check_parents(self, parents, children, target_of, least=0.97):
        """Children whose target says whose they are: no wrong parent, and nearly all found."""
        by_id = {s.id: s for s in parents}
        right = wrong = none = 0
        for child in children:
            parent = by_id.get(child.parent)
            if parent is None:
                none += 1
            elif target_of(parent.target) == child.target and parent.trace == child.trace:
                right += 1
            else:
                wrong += 1
        self.measured(f"parents: {right} right, {wrong} wrong, {none} none")
        self.assertEqual(wrong, 0, "a wrong parent is worse than none")
        self.assertGreaterEqual(right, least * len(children))
        self.assertGreater(len(children), 0)

    def drive(self, port, count, target, threads=8):
        def one(number):
            wire = Wire(("127.0.0.1", port))
            for i in range(count // threads):
                wire.get(target(f"{number}x{i}"))
            wire.close()
        at_once(one, range(threads))

    def test_python_thread_per_request(self):
        backend = Nginx(self.place)
        process, port, log = python(self.place, backend=f"http://127.0.0.1:{backend.port}")
        agent = self.agent()
        self.drive(int(port), 400, lambda i: f"/fetch/2/{i}")
        spans = agent.stop()
        servers = spans.where(SERVER, {process.pid})
        calls = spans.where(CLIENT, {process.pid})
        self.assertEqual(len(servers), 400)
        self.assertEqual(len(calls), 800)
        by_id = {s.id: s for s in servers}
        for call in calls:
            self.assertIn(call.parent, by_id)
            self.assertEqual(by_id[call.parent].target.split("/")[3], call.target.split("/")[2])

    def test_node_one_at_a_time(self):
        """One request at a time: every call of an event-loop server has its parent."""
        backend = Nginx(self.place)
        process, port, log = node(self.place, backend=f"http://127.0.0.1:{backend.port}")
        agent = self.agent()
        self.drive(int(port), 100, lambda i: f"/fetch/2/{i}", threads=1)
        spans = agent.stop()
        by_id = {s.id: s for s in spans.where(SERVER, {process.pid})}
        calls = spans.where(CLIENT, {process.pid})
        self.assertEqual((len(by_id), len(calls)), (100, 200))
        for call in calls:
            self.assertIn(call.parent, by_id)
            self.assertEqual(by_id[call.parent].target.split("/")[3], call.target.split("/")[2])

    def test_traceparent_is_the_parent(self):
        nginx = Nginx(self.place)
        agent = self.agent()
        wire = Wire(("127.0.0.1", nginx.port))
        trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
        wire.get("/s/200?good", [f"traceparent: 00-{trace}-{parent}-01"])
        wire.get("/s/200?upper", [f"traceparent: 00-{trace.upper()}-{parent}-01"])
        wire.get("/s/200?zero", [f"TraceParent: 00-{'0' * 32}-{parent}-01"])
        wire.get("/s/200?none")
        spans = {s.target: s for s in agent.stop().where(SERVER, nginx.pids)}
        good = spans["/s/200?good"]
        # The client's own span may stand between: the id on the wire is then the client span's id.
        self.assertEqual(good.trace, trace)
        self.assertEqual(good.parent, parent)
        for target in ("/s/200?upper", "/s/200?zero", "/s/200?none"):
            self.assertNotIn(spans[target].trace, (trace, "0" * 32))
        self.assertEqual(len({s.trace for s in spans.values()}), 4)
        for span in spans.values():
            self.assertRegex(span.id, "^[0-9a-f]{16}$")
            self.assertRegex(span.trace, "^[0-9a-f]{32}$")
