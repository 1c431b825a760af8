# SPDX-License-Identifier: Apache-2.0
"""Context put on the wire (--inject): in requests only, once, and nothing else is changed."""
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from harness import CLIENT, SERVER, LiveTest, Wire, python, stop, wait_until

NESTED = b"GET /nested HTTP/1.1\r\nHost: x\r\n\r\n"
HEADER = re.compile(rb"(?mi)^traceparent: *(00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})\r\n")


class Sink:
    """A process that keeps all that arrives on each connection, in files, and answers each whole request."""

    def __init__(self, place):
        self.dir = os.path.join(place.dir, f"sink{len(place.processes)}")
        os.mkdir(self.dir)
        self.process = place.spawn([sys.executable, __file__, self.dir], stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def count(self):
        return len(os.listdir(self.dir))

    def got(self, i=-1):
        with open(os.path.join(self.dir, str(i % self.count())), "rb") as f:
            return f.read()


def serve(conn, path):
    answered, kept = 0, b""
    with conn, open(path, "wb", buffering=0) as f:
        while True:
            try:
                data = conn.recv(1 << 16)
            except ConnectionResetError:
                return
            if not data:
                return
            f.write(data)
            kept += data
            whole = len(requests(kept)[0])
            try:
                for _ in range(whole - answered):
                    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            except OSError:
                pass  # whoever asked has gone; what it sent is still kept
            answered = max(answered, whole)


def sink(directory):
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        for i in itertools.count():
            conn, _ = server.accept()
            path = os.path.join(directory, str(i))
            open(path, "wb").close()
            threading.Thread(target=serve, args=(conn, path), daemon=True).start()


def requests(data):
    """The whole requests in data as (head, body), and what is left."""
    found = []
    while True:
        end = data.find(b"\r\n\r\n")
        if end < 0 or not re.match(rb"[A-Z]+ \S+ HTTP/1\.1\r\n", data):
            return found, data
        head, rest = data[:end + 4], data[end + 4:]
        length = re.search(rb"(?mi)^content-length: *(\d+)", head)
        if re.search(rb"(?mi)^transfer-encoding: *chunked", head):
            body, at = b"", 0
            while True:
                line = rest.find(b"\r\n", at)
                if line < 0:
                    return found, data
                n = int(rest[at:line], 16)
                if len(rest) < line + 4 + n:
                    return found, data
                body += rest[line + 2:line + 2 + n]
                at = line + 4 + n
                if n == 0:
                    break
        else:
            at = int(length.group(1)) if length else 0
            if len(rest) < at:
                return found, data
            body = rest[:at]
        found.append((head, body))
        data = rest[at:]


def post(body, extra=b""):
    return b"POST /p HTTP/1.1\r\nHost: x\r\n" + extra + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chunked(*chunks):
    head = b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    return [head] + [b"%x\r\n%s\r\n" % (len(c), c) for c in chunks] + [b"0\r\n\r\n"]


OWN = b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"
# name: pieces, each sent by one call; how many headers ringspan puts in
CASES = {
    **{f"get with {n} bytes of headers": ([b"GET /g HTTP/1.1\r\n" + b"X: " + b"y" * n + b"\r\n\r\n"], 1)
       for n in (1, 500, 1000, 1500, 1900)},
    "head longer than what is looked at": ([b"GET /g HTTP/1.1\r\nX: " + b"y" * 4000 + b"\r\n\r\n"], 0),
    "no headers at all": ([b"GET /g HTTP/1.1\r\n\r\n"], 1),
    **{f"body of {n} bytes": ([post(os.urandom(n))], 1) for n in (1, 100, 5000, 100000, 1500000)},
    "body that holds requests": ([post(NESTED * 50)], 1),
    "body in pieces that are requests": ([post(NESTED * 3)[:-len(NESTED) * 3], NESTED, NESTED, NESTED], 1),
    "chunks that are requests": (chunked(NESTED, NESTED, NESTED), 1),
    "chunks whose pieces are requests": (
        [chunked(NESTED)[0], b"%x\r\n" % len(NESTED), NESTED, b"\r\n", b"0\r\n\r\n"], 1),
    "two requests in one piece": ([NESTED + NESTED], 1),
    "three, one after the other": ([NESTED, NESTED, NESTED], 3),
    "a body, then a request": ([post(b"x" * 100), NESTED], 2),
    "split request line": ([b"GE", b"T /s HTTP/1.1\r\nHost: x\r\n\r\n"], 0),
    "split head": ([b"GET /s HTTP/1.1\r\nHost: x\r\n", b"A: b\r\n\r\n"], 0),
    "a context of its own": ([b"GET /o HTTP/1.1\r\nHost: x\r\nTraceParent: " + OWN + b"\r\n\r\n"], 0),
    "not HTTP": ([b"\x16\x03\x01\x02\x00\x01\x00" + os.urandom(500), NESTED], 0),
    "not HTTP, in capitals": ([b"SET x 5\r\nhello\r\n", NESTED], 0),
    "another protocol after a request": (
        [b"GET /u HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", NESTED], 1),
    "two lengths": ([b"POST /p HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", NESTED], 1),
}


class Inject(LiveTest):
    def start(self, mode, *args):
        return self.agent("--inject", mode, "--inject-force", *args)

    def send(self, sink, pieces):
        before = sink.count()
        with socket.create_connection(("127.0.0.1", sink.port)) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in pieces:
                view = memoryview(piece)
                while view:
                    n = s.send(view)
                    self.assertGreater(n, 0)
                    self.assertLessEqual(n, len(view))
                    view = view[n:]
                time.sleep(0.002)
            wait_until("the connection", lambda: sink.count() > before)
            all_of_it = len(HEADER.sub(b"", b"".join(pieces)))
            wait_until("all of it", lambda: len(HEADER.sub(b"", sink.got(before))) >= all_of_it)
        return sink.got(before)

    def test_only_requests_get_it(self):
        sink = Sink(self.place)
        agent = self.start("traceparent", "--port", str(sink.port))
        if "sk_msg" in agent.stderr():
            self.skipTest(agent.stderr())
        put = 0
        for name, (pieces, headers) in CASES.items():
            sent, got = b"".join(pieces), self.send(sink, pieces)
            without = HEADER.sub(lambda m: m.group(0) if m.group(1) == OWN else b"", got)
            self.assertEqual(without, sent, name)
            more, odd = divmod(len(got) - len(sent), 70)
            # What is not followed may be found again in time.
            self.assertIn((more, odd), [(headers, 0), (headers + (name == "two lengths"), 0)], name)
            put += more
            for head, body in requests(got)[0]:
                self.assertLessEqual(len(HEADER.findall(head)), 1, name)
        # sendfile, and what writev gathers
        with open(self.place.path("big"), "wb+") as f:
            f.write(NESTED * 30000)
            f.flush()
            before = sink.count()
            with socket.create_connection(("127.0.0.1", sink.port)) as s:
                size = f.tell()
                s.sendmsg([b"POST /f", b" HTTP/1.1\r\nHost: x\r\n", b"Content-Length: ", b"%d\r\n\r\n" % size])
                done = 0
                while done < size:
                    done += os.sendfile(s.fileno(), f.fileno(), done, size - done)
                kept = wait_until("the file", lambda: sink.count() > before and requests(sink.got(before))[0] and sink.got(before))
            got, rest = requests(kept)
            self.assertEqual((len(got), rest, got[0][1]), (1, b"", NESTED * 30000))
            self.assertEqual(len(HEADER.findall(got[0][0])), 1)
        self.measured(f"{len(CASES) + 1} cases, {put + 1} headers, all other bytes as they were sent")

    def test_found_again_after_what_was_not_followed(self):
        """Behind a split head or a chunked body the agent says where the next request begins."""
        sink = Sink(self.place)
        self.start("traceparent", "--port", str(sink.port))
        for pieces in (chunked(NESTED), [b"GE", b"T /s HTTP/1.1\r\nHost: x\r\n\r\n"]):
            before = sink.count()
            wire = Wire(("127.0.0.1", sink.port))
            wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in pieces:
                wire.send(piece)
                time.sleep(0.002)
            wire.response()

            def found():
                time.sleep(0.05)  # it is said of the next request only: not much more often than the agent looks
                wire.send(NESTED)
                wire.response()
                return HEADER.search(requests(sink.got(before))[0][-1][0])
            wait_until("the agent to say where requests begin", found)
            wire.close()
            self.assertRegex(HEADER.sub(b"", sink.got(before)), b"^%s(%s)+$" % tuple(map(re.escape, (b"".join(pieces), NESTED))))

    def test_traffic_outlives_the_agent(self):
        sink = Sink(self.place)
        for mode in ("traceparent", "tcp-option"):
            agent = self.start(mode, "--port", str(sink.port))
            wire = Wire(("127.0.0.1", sink.port))
            wire.get("/before")
            stop(agent.process, signal.SIGKILL)
            sent = 1

            def put():
                return [len(HEADER.findall(head)) for head, _ in requests(sink.got())[0]]

            def left_alone():
                nonlocal sent
                sent += 1
                self.assertEqual(wire.get(f"/after{sent}"), 200)
                return not put()[-1]
            wait_until("the kernel to give the programs up", left_alone)
            for _ in range(20):
                left_alone()
            self.assertEqual(len(put()), sent)
            self.assertEqual((put()[0], sum(put()[-21:])), (mode == "traceparent", 0))
            wire.close()

    def chain(self, mode):
        """client -> front -> back, with a thread per connection: one trace, named by what is on the wire."""
        _, back, _ = python(self.place)
        front_process, front, _ = python(self.place, backend=f"http://127.0.0.1:{back}")
        agent = self.agent("--inject", mode, "--inject-force", "--join", "off", "--port", front, "--port", back)
        wires = [Wire(("127.0.0.1", int(front))) for _ in range(4)]
        for i in range(40):
            wires[i % 4].get(f"/fetch/2/{i}")
        spans = [s for s in agent.stop() if s.status == 200]
        by_id = {(s.kind, s.id): s for s in spans}
        calls = [s for s in spans if s.kind == SERVER and s.target.startswith("/python/")]
        right = 0
        for s in calls:
            client = by_id.get((CLIENT, s.parent))
            served = by_id.get((SERVER, client.parent)) if client else None
            first = by_id.get((CLIENT, served.parent)) if served else None
            if first:
                self.assertEqual({s.trace, client.trace, served.trace}, {first.trace})
                self.assertEqual(first.target, f"/fetch/2/{s.target.split('/')[2]}")
                right += 1
        self.measured(f"{mode}: {right} of {len(calls)} from end to end")
        self.assertEqual(len(calls), 80)
        self.assertGreaterEqual(right, 78)

    def test_chain_by_header(self):
        self.chain("traceparent")

    def test_chain_by_tcp_option(self):
        self.chain("tcp-option")

    def test_refused_where_it_does_harm(self):
        """Unless it is forced, a kernel whose sockmaps break FIONREAD gets no header; status and check say so."""
        sink = Sink(self.place)
        agent = self.agent("--inject", "traceparent", "--port", str(sink.port))
        harm = "FIONREAD" in agent.stderr()
        got = self.send(sink, [NESTED])
        self.assertEqual(len(HEADER.findall(got)), 0 if harm else 1)
        probe, = [p for p in agent.status()["capture"]["probes"] if p["name"] == "sk_msg"]
        self.assertEqual("FIONREAD" in probe["reason"], harm)
        self.assertEqual(probe["state"], "failed" if harm else "attached")
        self.measured("this kernel " + ("breaks FIONREAD in sockmaps" if harm else "keeps FIONREAD in sockmaps"))


if __name__ == "__main__":
    sink(sys.argv[1])
