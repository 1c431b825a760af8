# SPDX-License-Identifier: Apache-2.0
"""Random HTTP over real sockets: any framing, cut anywhere, broken off anywhere, on many connections at once.

Both ends are played in this process; each write is read by the other end before the next, so that both must tell
the same. What must come out is known by construction: nothing else may. Exchanges of pipelined connections may be
missing when heads stand deep inside of long segments, which are not copied whole. A failure names the seed:
RS_TEST_SEED=N plays it again.
"""
import collections
import os
import random
import socket

from harness import CLIENT, SERVER, LiveTest, at_once

REASONS = {200: "OK", 201: "Created", 204: "No Content", 304: "Not Modified", 404: "Not Found", 500: "Broken"}


class Talk:
    """One connection's life: what is written by whom, and what both ends must tell of it."""

    def __init__(self, rng, number):
        self.rng = rng
        self.number = number
        self.script = []    # (who, bytes) or (who, "close" | "reset" | "shut")
        self.want = []      # [method, target, status or None, ended well]
        self.count = 0
        self.pipelined = False
        self.version = rng.choice(("1.1", "1.1", "1.1", "1.0"))

    def text(self, n):
        return bytes(self.rng.choice(b"abcdefgh \r\nHTTP/1.1 200 GET") for _ in range(n))

    def headers(self, *more):
        lines = [f"X-{i}: " + "v" * self.rng.randrange(self.rng.choice((5, 50, 900))) for i in range(self.rng.randrange(6))]
        lines += more
        self.rng.shuffle(lines)
        return "".join(line + "\r\n" for line in lines)

    def body(self):
        return self.text(self.rng.choice((0, 1, 10, 500, 3000, 20000)))

    def chunked(self, body):
        out = b""
        while body:
            n = self.rng.randrange(1, min(len(body), 2000) + 1)
            out += b"%x" % n + self.rng.choice((b"", b";ext=1")) + b"\r\n" + body[:n] + b"\r\n"
            body = body[n:]
        return out + b"0\r\n" + b"\r\n"

    def request(self):
        self.count += 1
        method = self.rng.choice(("GET", "GET", "GET", "POST", "PUT", "HEAD", "DELETE", "BREW"))
        target = f"/{self.number}/{self.count}" + "p" * self.rng.randrange(self.rng.choice((3, 300))) + self.rng.choice(("", "?q=1"))
        body = self.body() if method in ("POST", "PUT") else b""
        if body and self.version == "1.1" and self.rng.random() < 0.4:
            head, body = self.headers("Host: a", "Transfer-Encoding: chunked"), self.chunked(body)
        elif method in ("POST", "PUT"):
            head = self.headers("Host: a", f"Content-Length: {len(body)}")
        else:
            head = self.headers("Host: a")
        # RFC 9112 2.2: an empty line before a request is nothing.
        start = b"\r\n" if self.count > 1 and len(head) < 300 and self.rng.random() < 0.1 else b""
        return method, target, start + f"{method} {target} HTTP/{self.version}\r\n{head}\r\n".encode(), body

    def response(self, method, last):
        """(status, bytes, ends by close)."""
        status = self.rng.choice((200, 200, 200, 201, 204, 304, 404, 500))
        body, more, by_close = self.body(), [], False
        if status in (204, 304):
            body = b""
        elif method == "HEAD":
            more, body = [f"Content-Length: {self.rng.randrange(10000)}"], b""
        elif last and self.rng.random() < 0.3:
            by_close = True
        elif self.version == "1.1" and self.rng.random() < 0.4:
            more, body = ["Transfer-Encoding: chunked"], self.chunked(body)
        else:
            more = [f"Content-Length: {len(body)}"]
        head = f"HTTP/{self.version} {status} {REASONS[status]}\r\n{self.headers(*more)}\r\n".encode()
        return status, head, body, by_close

    def write(self, who, data):
        """In one piece, or in any."""
        if self.rng.random() < 0.6 or len(data) < 2:
            if data:
                self.script.append((who, data))
            return
        cuts = sorted(self.rng.randrange(1, len(data)) for _ in range(self.rng.randrange(1, 5)))
        for a, b in zip([0] + cuts, cuts + [len(data)]):
            if a < b:
                self.script.append((who, data[a:b]))

    def plan(self):
        rounds = self.rng.randrange(1, 8)
        for r in range(rounds):
            last = r == rounds - 1
            depth = self.rng.choice((2, 5)) if self.version == "1.1" and self.rng.random() < 0.05 else 1
            self.pipelined |= depth > 1
            requests = [self.request() for _ in range(depth)]
            if last and self.rng.random() < 0.5:
                return self.broken(requests)
            self.write("c", b"".join(head + body for _, _, head, body in requests))
            if depth == 1 and self.version == "1.1" and self.rng.random() < 0.1:
                self.write("s", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
            answers = [self.response(m, last and i == depth - 1) for i, (m, _, _, _) in enumerate(requests)]
            self.write("s", b"".join(head + body for _, head, body, _ in answers))
            for (method, target, _, _), (status, _, _, _) in zip(requests, answers):
                self.want.append([method, target, status, True])
        self.script.append(("s" if answers[-1][3] else self.rng.choice("cs"), "close"))

    def broken(self, requests):
        """The last round ends before it is done."""
        (method, target, head, body), rest = requests[0], requests[1:]
        how = self.rng.choice(("head", "body", "answer", "answer", "half"))
        if how == "head":
            part = head[:self.rng.randrange(1, len(head) - 1)]
            self.write("c", part)
            if b"\r\n" in part.lstrip():
                self.want.append([method, target, None, False])
        elif how == "body" and body:
            self.write("c", head + body[:self.rng.randrange(len(body))])
            self.want.append([method, target, None, False])
        else:
            self.write("c", head + body + b"".join(h + b for _, _, h, b in rest))
            status, answer, content, by_close = self.response(method, False)
            if how == "half" and content:
                self.write("s", answer + content[:self.rng.randrange(len(content))])
                self.want.append([method, target, status, False])
            else:
                self.want.append([method, target, None, False])
            self.want += [[m, t, None, False] for m, t, _, _ in rest]
        self.script.append((self.rng.choice("cs"), self.rng.choice(("close", "close", "reset"))))

    def play(self):
        listener = socket.create_server(("127.0.0.1", 0))
        ends = {"c": socket.create_connection(listener.getsockname())}
        ends["s"], _ = listener.accept()
        listener.close()
        for s in ends.values():
            s.settimeout(20)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for who, what in self.script:
            me, peer = ends[who], ends["s" if who == "c" else "c"]
            if what == "close":
                me.close()
                peer.recv(10)
            elif what == "reset":
                me.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                me.close()
            else:
                sent = 0
                while sent < len(what):
                    n = me.send(what[sent:sent + 30000])
                    sent += n
                    while n:
                        n -= len(peer.recv(min(n, self.rng.choice((100, 4096, 65536)))))
        for s in ends.values():
            s.close()


class Chaos(LiveTest):
    def check(self, *agent_args):
        seed = int(os.environ.get("RS_TEST_SEED", 1))
        talks = [Talk(random.Random(seed * 1000 + n), n) for n in range(240)]
        for talk in talks:
            talk.plan()
        agent = self.agent(*agent_args)
        groups = [talks[i::8] for i in range(8)]
        at_once(lambda group: [talk.play() for talk in group], groups)
        agent.settle()
        losses = agent.losses()
        spans = agent.stop().where(pids={os.getpid()})
        left_out = 0
        for kind in (SERVER, CLIENT):
            seen = collections.defaultdict(list)
            for span in spans.where(kind):
                seen[span.target].append(span)
            wrong = []
            for talk, (method, target, status, well) in ((t, w) for t in talks for w in t.want):
                found = seen.pop(target, [])
                missing = not found or found[0].error == "capture_lost" or (
                    well and found[0].status == status and found[0].error == "connection_closed")
                if talk.pipelined and missing and len(found) < 2:
                    left_out += 1
                elif len(found) != 1 or found[0].triple() != (method, target, status) or (
                        found[0].error not in (None, str(status)) if well else found[0].error is None):
                    wrong.append((talk.number, method, target[:40], status, well, found))
            self.assertFalse(wrong or seen, f"seed {seed}, {kind}, losses {losses}: {len(wrong)} wrong: {wrong[:5]}; "
                             f"never asked for: {list(seen.values())[:3]}")
        if left_out:
            self.assertTrue(losses, "what was left out is counted")
        self.measured(f"seed {seed}: {sum(len(t.want) for t in talks)} exchanges on {len(talks)} connections, "
                      f"{left_out} left out")

    def test_random_conversations(self):
        self.check()

    def test_random_conversations_syscall_backend(self):
        self.check("--capture", "syscall")
