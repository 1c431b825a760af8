#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_capture.py CAPTURE_RECORDS [NAME...]: records of real sockets, against what was sent.

Each test makes sockets in processes of its own and looks at the records of exactly these. Every
test runs with both backends. Where BPF cannot be loaded, all are skipped, and the reason is said.
"""
import array
import functools
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite  # noqa: E402

TOOL = ""
IN, OUT = "in", "out"
NODATA, PRESENT = 1, 2
EXEC, EXIT, SIGNAL, OOM, FORK = 1, 2, 3, 4, 5


class Capture:
    """The tool, running; records() ends it and returns what it said."""

    def __init__(self, backend, *args, pids=None):
        pids = [os.getpid()] if pids is None else pids
        argv = [TOOL, "-b", backend] + [a for p in pids for a in ("-p", str(p))] + list(args)
        self.proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = []
        self.replies = []
        self.arrived = threading.Condition()
        first = self.proc.stdout.readline()
        if not first:
            err = self.proc.stderr.read().decode()
            self.proc.wait()
            raise Unsupported(err) if self.proc.returncode == 3 else RuntimeError(err)
        assert json.loads(first)["backend"] == backend, first
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.proc.stdout:
            rec = json.loads(line)
            with self.arrived:
                (self.replies if rec["type"] in ("done", "live") else self.lines).append(rec)
                self.arrived.notify_all()

    def command(self, text):
        with self.arrived:
            self.replies.clear()
        self.proc.stdin.write(text.encode() + b"\n")
        self.proc.stdin.flush()
        with self.arrived:
            self.arrived.wait_for(lambda: any(r["type"] == "done" for r in self.replies), 120)
            return list(self.replies)

    def wait(self, found):
        """Until found(records so far) is true."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: found(self.lines), 120), "the record did not come"
            return list(self.lines)

    def records(self):
        self.proc.stdin.close()
        self.reader.join(120)
        self.proc.wait(120)
        assert self.proc.returncode == 0, self.proc.stderr.read().decode()
        self.end = self.lines[-1]
        assert self.end["type"] == "end"
        for loss in ("ring_full", "conn_full", "bad_record", "pids_full"):
            assert self.end[loss] == 0, (loss, self.end[loss])
        return self.lines[:-1]


class Unsupported(unittest.SkipTest):
    pass


def tcp_pair(family=socket.AF_INET):
    addr = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.socket(family) as listener:
        listener.bind((addr, 0))
        listener.listen()
        client = socket.create_connection(listener.getsockname()[:2])
        server, _ = listener.accept()
    return client, server


def unix_pair():
    path = tempfile.mktemp(prefix="ringspan-test-")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        server, _ = listener.accept()
    os.unlink(path)
    return client, server, path


def opens(recs, **want):
    return [r for r in recs if r["type"] == "open" and all(r[k] == v for k, v in want.items())]


def data(recs, conn, direction):
    return [r for r in recs if r["type"] == "data" and r["conn"] == conn and r["dir"] == direction]


def consecutive(recs):
    """Offsets and sequence numbers go on where the record before ended."""
    at = 0
    seq = None
    for r in recs:
        assert r["off"] == at, (r["off"], at)
        assert r["cap"] <= r["len"]
        assert len(r["data"]) == 2 * r["cap"]
        if seq is not None and r["seq"]:
            assert r["seq"] == seq, (r["seq"], seq)
        at += r["len"]
        seq = (r["seq"] + r["len"]) % 2**32 if r["seq"] else None
    return at


def head(recs):
    """The bytes captured without a gap from the beginning."""
    out = b""
    for r in recs:
        out += bytes.fromhex(r["data"])
        if r["cap"] < r["len"]:
            break
    return out


def recv_all(sock, n):
    while n:
        got = len(sock.recv(min(n, 1 << 16)))
        assert got
        n -= got


REQ = b"GET /one HTTP/1.1\r\nHost: localhost\r\n\r\n"
RSP = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def send_with(how, sock, data_):
    half = len(data_) // 2
    fd = sock.fileno()
    if how == "write":
        assert os.write(fd, data_) == len(data_)
    elif how == "send":
        sock.sendall(data_)
    elif how == "writev":
        assert os.writev(fd, [data_[:half], b"", data_[half:]]) == len(data_)
    elif how == "sendmsg":
        assert sock.sendmsg([data_[:3], data_[3:half], data_[half:]]) == len(data_)
    elif how == "writev-many":
        assert os.writev(fd, [data_[i : i + 1] for i in range(len(data_))]) == len(data_)


def recv_with(how, sock, n):
    fd = sock.fileno()
    if how == "write":
        return os.read(fd, n)
    if how == "send":
        return sock.recv(n)
    bufs = [bytearray(3), bytearray(5), bytearray(n)]
    if how == "sendmsg":
        got = sock.recvmsg_into(bufs)[0]
    else:
        got = os.readv(fd, bufs)
    return b"".join(bytes(b) for b in bufs)[:got]


def exchange(backend, pair):
    """One request and its answer, by each kind of system call; both ends see all bytes."""
    for how in ("write", "send", "writev", "sendmsg", "writev-many"):
        cap = Capture(backend)
        client, server = pair()[:2]
        send_with(how, client, REQ)
        assert recv_with(how, server, 4096) == REQ
        send_with(how, server, RSP)
        assert recv_with(how, client, 4096) == RSP
        names = [(s.getsockname(), s.getpeername()) for s in (client, server)]
        client.close()
        assert server.recv(10) == b""
        server.close()
        recs = cap.records()
        yield how, recs, names


def test_tcp(backend):
    for family in (socket.AF_INET, socket.AF_INET6):
        for how, recs, names in exchange(backend, lambda: tcp_pair(family)):
            seqs = []
            for (local, peer), role, first, second in ((names[0], 1, OUT, IN), (names[1], 2, IN, OUT)):
                (o,) = opens(recs, lport=local[1], rport=peer[1])
                assert o["role"] == role and o["l4"] == 1 and o["pid"] == os.getpid()
                assert o["family"] == (1 if family == socket.AF_INET else 2)
                want = socket.inet_pton(family, "127.0.0.1" if family == socket.AF_INET else "::1")
                assert bytes.fromhex(o["laddr"])[: len(want)] == want == bytes.fromhex(o["raddr"])[: len(want)]
                assert o["comm"].startswith("python") and o["flags"] == 0
                a, b = data(recs, o["conn"], first), data(recs, o["conn"], second)
                assert head(a) == REQ and head(b) == RSP, (how, head(a), head(b))
                assert consecutive(a) == len(REQ) and consecutive(b) == len(RSP)
                seqs.append((a[0]["seq"], b[0]["seq"]))
                closes = {r["how"] for r in recs if r["type"] == "close" and r["conn"] == o["conn"]}
                assert 0 in closes and (role == 1 or 1 in closes), closes
            assert seqs[0] == seqs[1] and seqs[0][0], seqs


def test_mapped(backend):
    """IPv4 on a socket that takes both is IPv4."""
    cap = Capture(backend)
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        client = socket.create_connection(("127.0.0.1", listener.getsockname()[1]))
        server, _ = listener.accept()
    client.sendall(REQ)
    recv_all(server, len(REQ))
    client.close()
    server.close()
    (o,) = opens(cap.records(), role=2)
    assert o["family"] == 1 and o["laddr"] == o["raddr"] == "7f000001" + 24 * "0", o


def test_last_bytes(backend):
    """The end of the stream has a sequence number too: it is not the last bytes'."""
    cap = Capture(backend)
    client, server = tcp_pair()
    client.sendall(REQ)
    recv_all(server, len(REQ))
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    server.sendall(RSP)
    server.close()
    time.sleep(0.05)
    recv_all(client, len(RSP))
    assert client.recv(10) == b""
    client.close()
    recs = cap.records()
    (out,) = data(recs, opens(recs, role=2)[0]["conn"], OUT)
    (got,) = data(recs, opens(recs, role=1)[0]["conn"], IN)
    if backend == "socket":
        assert out["seq"] == got["seq"], (out["seq"], got["seq"])


def test_unix(backend):
    for how, recs, _ in exchange(backend, unix_pair):
        (c,) = opens(recs, role=1)
        (s,) = opens(recs, role=2)
        for o, first, second in ((c, OUT, IN), (s, IN, OUT)):
            assert o["family"] == 3 and "/ringspan-test-" in o["path"] and o["peer_pid"] == os.getpid(), o
            assert head(data(recs, o["conn"], first)) == REQ and head(data(recs, o["conn"], second)) == RSP, how
        # the server has read the end of the stream, and the client is gone
        assert [r["how"] for r in recs if r["type"] == "close" and r["conn"] == s["conn"]] == [1]
        assert [r["how"] for r in recs if r["type"] == "close" and r["conn"] == c["conn"]] == [0]


def test_not_taken(backend):
    """Peeks, failures and out-of-band bytes are no transfers."""
    cap = Capture(backend)
    client, server = tcp_pair()
    client.sendall(REQ)
    for _ in range(3):
        assert server.recv(4096, socket.MSG_PEEK) == REQ
    assert server.recv(4096) == REQ
    server.setblocking(False)
    try:
        server.recv(10)
        assert False
    except BlockingIOError:
        pass
    server.close()
    client.close()
    recs = cap.records()
    (o,) = opens(recs, role=2)
    assert consecutive(data(recs, o["conn"], IN)) == len(REQ)
    assert not [r for r in recs if r["type"] == "close" and r["how"] == 1 and r["conn"] == o["conn"]]


def test_no_buffer(backend):
    """sendfile and splice: the bytes are counted, their place in the stream is right."""
    cap = Capture(backend)
    client, server = tcp_pair()
    size = 300000
    with tempfile.TemporaryFile() as f:
        f.write(b"b" * size)
        f.flush()
        client.sendall(REQ)
        server.recv(4096)
        rsp_head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (size + 1000)
        server.sendall(rsp_head)
        reader = threading.Thread(target=recv_all, args=(client, len(rsp_head) + size + 1000))
        reader.start()
        at = 0
        while at < size:
            at += os.sendfile(server.fileno(), f.fileno(), at, size - at)
        r, w = os.pipe()
        at = os.splice(f.fileno(), w, 1000, offset_src=0) if hasattr(os, "splice") else os.write(w, b"p" * 1000)
        assert at == 1000
        if hasattr(os, "splice"):
            assert os.splice(r, server.fileno(), 1000) == 1000
        else:
            os.close(w)
            server.sendall(os.read(r, 1000))
        reader.join()
    server.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    recv_all(client, 19)
    client.close()
    server.close()
    recs = cap.records()
    (o,) = opens(recs, role=2)
    out = data(recs, o["conn"], OUT)
    assert consecutive(out) == len(rsp_head) + size + 1000 + 19
    assert sum(r["len"] for r in out if r["flags"] & NODATA) == size + (1000 if hasattr(os, "splice") else 0)
    assert all(r["cap"] == 0 for r in out if r["flags"] & NODATA)
    assert head(out[-1:]) == b"HTTP/1.1 200 OK\r\n\r\n"
    assert cap.end["nodata_sendfile"] > 0


def test_uring(backend):
    """io_uring's bytes are counted and never taken from another transfer's buffer."""
    if backend == "syscall":
        return  # does not see io_uring
    tool = os.path.join(os.path.dirname(TOOL), "uring")
    prog = subprocess.Popen([tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    port = prog.stdout.readline()
    if not port:
        assert prog.wait() == 77
        return
    port = int(port)
    cap = Capture(backend, pids=[prog.pid])
    prog.communicate(b"go\n")
    assert prog.returncode == 0
    recs = cap.records()
    req = b"GET /uring HTTP/1.1\r\nHost: localhost\r\n\r\n"
    rsp = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    c, s = opens(recs, lport=port)[0]["conn"], opens(recs, rport=port)[0]["conn"]
    told = [(r["off"], r["len"], r["flags"], bytes.fromhex(r["data"])) for r in data(recs, c, OUT)]
    assert told == [(0, len(req), NODATA, b""), (len(req), len(req), 0, req)], told
    told = [(r["off"], r["len"], r["flags"], bytes.fromhex(r["data"])) for r in data(recs, c, IN)]
    assert told == [(0, len(rsp), NODATA, b"")], told
    assert head(data(recs, s, IN)) == req + req and head(data(recs, s, OUT)) == rsp
    assert cap.end["nodata_uring"] == 2


def test_splice_in(backend):
    """A socket spliced from: what is read next is at its right place, or the splice itself is told."""
    if not hasattr(os, "splice"):
        return
    cap = Capture(backend)
    client, server = tcp_pair()
    client.sendall(REQ)
    assert server.recv(4096) == REQ
    client.sendall(b"x" * 5000)
    r, w = os.pipe()
    left = 5000
    while left:
        n = os.splice(server.fileno(), w, left)
        os.read(r, n)
        left -= n
    server.sendall(RSP)
    client.recv(4096)
    client.sendall(REQ)
    assert server.recv(4096) == REQ
    client.close()
    server.close()
    recs = cap.records()
    (o,) = opens(recs, role=2)
    got = data(recs, o["conn"], IN)
    assert consecutive(got) == 2 * len(REQ) + 5000, [(r["off"], r["len"]) for r in got]
    assert head(got[-1:]) == REQ


def big_head(size):
    line = b"X-Filler-%05d: " + b"v" * 80 + b"\r\n"
    out = b"POST /big HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
    i = 0
    while len(out) < size:
        out += line % i
        i += 1
    return out[: size - 4] + b"\r\n\r\n" if out[size - 4 : size] != b"\r\n\r\n" else out[:size]


def test_big_heads(backend):
    """A head of 60 KB arrives complete, however it is cut; its body does not."""
    h = big_head(60000)
    body = b"B" * 100000
    cuts = {
        "one write": [h + body],
        "head, body": [h, body],
        "1000 at a time": [h[i : i + 1000] for i in range(0, len(h), 1000)] + [body],
        "7 then 5000 at a time": [h[:7]] + [h[i : i + 5000] for i in range(7, len(h), 5000)] + [body],
        "blank line cut": [h[:-3], h[-3:-1], h[-1:] + body],
    }
    for name, pieces in cuts.items():
        cap = Capture(backend)
        client, server = tcp_pair()
        for s in (client, server):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        for p in pieces:
            reader = threading.Thread(target=recv_all, args=(server, len(p)))
            reader.start()
            client.sendall(p)
            reader.join()
        client.close()
        server.close()
        recs = cap.records()
        for o, d in ((opens(recs, role=1)[0], OUT), (opens(recs, role=2)[0], IN)):
            got = data(recs, o["conn"], d)
            assert consecutive(got) == len(h) + len(body)
            seen = head(got)
            assert seen[: len(h)] == h, (name, d, len(seen), [(r["len"], r["cap"]) for r in got])
            copied = sum(r["cap"] for r in got)
            assert copied < len(h) + 40000, (name, d, copied)
            assert all(len(r["tail"]) == 16 for r in got if r["cap"] < r["len"] >= 8 and r["cap"]), name


def test_end_of_many_pieces(backend):
    """Where content in chunks ends is in the segment's last bytes, however many pieces it is written from."""
    for n, size in ((3, b"400"), (6, b"400"), (9, b"400"), (12, b"400"), (20, b"400"), (40, b"400"), (9, b"%016x" % 1024)):
        chunk = size + b"\r\n" + b"c" * 1024 + b"\r\n"
        cap = Capture(backend)
        client, server = tcp_pair()
        client.sendall(REQ)
        recv_all(server, len(REQ))
        pieces = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"] + [chunk] * n + [b"0\r\n", b"\r\n"]
        total = sum(map(len, pieces))
        assert os.writev(server.fileno(), pieces) == total
        recv_all(client, total)
        client.close()
        server.close()
        recs = cap.records()
        (o,) = opens(recs, role=2)
        got = data(recs, o["conn"], OUT)
        assert consecutive(got) == total
        if got[-1]["cap"] < got[-1]["len"]:
            assert bytes.fromhex(got[-1]["tail"])[-7:] == b"\r\n0\r\n\r\n", (n, got[-1]["tail"])


def test_head_limit(backend):
    """A head without end is copied up to the limit and no further."""
    cap = Capture(backend)
    client, server = tcp_pair()
    h = b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 150000
    reader = threading.Thread(target=recv_all, args=(server, len(h)))
    reader.start()
    client.sendall(h)
    reader.join()
    client.close()
    server.close()
    recs = cap.records()
    got = data(recs, opens(recs, role=1)[0]["conn"], OUT)
    assert consecutive(got) == len(h)
    assert 65536 <= len(head(got)) <= 65536 + 4096, len(head(got))
    assert cap.end["head_cut"] > 0


def test_pipeline(backend):
    """Requests one after the other in one direction, the second with a large head."""
    h = big_head(20000)
    cap = Capture(backend)
    client, server = tcp_pair()
    for p in (REQ, h, REQ):
        client.sendall(p)
        recv_all(server, len(p))
    client.close()
    server.close()
    recs = cap.records()
    got = data(recs, opens(recs, role=1)[0]["conn"], OUT)
    assert head(got) == REQ + h + REQ


def test_policy(backend):
    """Bytes before skip_until are not copied; the record that reaches it comes; stop stops."""
    cap = Capture(backend)
    client, server = tcp_pair()
    client.sendall(REQ)
    recv_all(server, len(REQ))
    conn = opens(cap.wait(lambda recs: opens(recs, role=1)), role=1)[0]["conn"]
    upto = len(REQ) + 10000
    assert cap.command(f"policy {conn} 0 {upto} 0")[-1]["r"] == 0
    for piece in (b"a" * 4000, b"b" * 4000, b"c" * 1992 + b"tailtail" + REQ, b"GET /two HTTP/1.1\r\n\r\n"):
        client.sendall(piece)
        recv_all(server, len(piece))
    assert cap.command(f"policy {conn} 0 0 1")[-1]["r"] == 0
    client.sendall(b"stopped")
    recv_all(server, 7)
    assert cap.command(f"forget {conn}")[-1]["r"] == 0
    client.sendall(b"GET /three HTTP/1.1\r\n\r\n")
    recv_all(server, 23)
    client.close()
    server.close()
    recs = cap.records()
    got = data(recs, conn, OUT)
    spans = [(r["off"], r["len"], r["cap"]) for r in got]
    assert spans == [
        (0, len(REQ), len(REQ)),
        (upto - 2000, 2000, 0),
        (upto, len(REQ), len(REQ)),
        (upto + len(REQ), 21, 21),
        (upto + len(REQ) + 21 + 7, 23, 23),
    ], spans
    assert bytes.fromhex(got[1]["tail"]) == b"tailtail"
    assert cap.end["skipped"] >= 3


def test_two_writers(backend):
    """Two threads write and two read one socket: no offset twice, none missing."""
    cap = Capture(backend)
    client, server = tcp_pair()
    n, size = 400, 100

    def write():
        for _ in range(n):
            client.send(b"m" * size)

    def read():
        while server.recv(70):
            pass

    writers = [threading.Thread(target=write) for _ in range(2)]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for t in writers + readers:
        t.start()
    for t in writers:
        t.join()
    client.shutdown(socket.SHUT_WR)
    for t in readers:
        t.join()
    client.close()
    server.close()
    recs = cap.records()
    for role, d in ((1, OUT), (2, IN)):
        got = sorted(data(recs, opens(recs, role=role)[0]["conn"], d), key=lambda r: r["off"])
        at = 0
        for r in got:
            assert r["off"] == at, (r["off"], at)
            at += r["len"]
        assert at == 2 * n * size


def test_older(backend):
    """Connections made before the capture, TCP and Unix, are seen and marked."""
    pairs = [tcp_pair(), unix_pair()[:2]]
    for c, s in pairs:
        c.sendall(b"before")
        recv_all(s, 6)
    cap = Capture(backend)
    for c, s in pairs:
        c.sendall(REQ)
        recv_all(s, len(REQ))
        s.sendall(RSP)
        recv_all(c, len(RSP))
    new = tcp_pair()
    new[0].sendall(REQ)
    recv_all(new[1], len(REQ))
    newport = new[0].getsockname()[1]
    for c, s in pairs + [new]:
        c.close()
        s.close()
    recs = cap.records()
    for o in opens(recs):
        fresh = newport in (o["lport"], o["rport"])
        assert o["flags"] == (0 if fresh else PRESENT), o
    assert len(opens(recs)) == 6
    for o in opens(recs, role=1):
        assert head(data(recs, o["conn"], OUT)) == REQ


def test_live(backend):
    cap = Capture(backend)
    pairs = [tcp_pair(), unix_pair()[:2], tcp_pair()]
    for c, s in pairs:
        c.sendall(REQ)
        recv_all(s, len(REQ))
    before = len(pairs) * 2
    recs = cap.wait(lambda recs: len(opens(recs)) == before)
    want = {o["conn"] for o in opens(recs)}
    live = set(cap.command("live")[0]["conns"])
    assert want <= live, (want, live)
    gone = {o["conn"] for o in opens(recs, family=3)}
    for s in pairs[1]:
        s.close()
    live = set(cap.command("live")[0]["conns"])
    assert want - gone <= live and not gone & live, (gone, live)
    for c, s in pairs:
        c.close()
        s.close()
    cap.records()


def test_live_beside_others_that_go(backend):
    """Sockets that close while the living are looked for hide none of them, where these are found through their storage."""
    if backend != "socket":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    cap = Capture(backend)

    def pair():
        a, b = socket.socketpair()
        a.sendall(REQ)
        recv_all(b, len(REQ))
        return a, b

    pairs = [pair() for _ in range(1200)]
    want = {o["conn"] for o in opens(cap.wait(lambda recs: len(opens(recs)) == 2 * len(pairs)))}
    end = threading.Event()

    def churn():
        while not end.is_set():
            some = [pair() for _ in range(16)]
            for a, b in some:
                a.close()
                b.close()

    churner = threading.Thread(target=churn)
    churner.start()
    missing = [want - set(cap.command("live")[0]["conns"]) for _ in range(12)]
    end.set()
    churner.join()
    for a, b in pairs:
        a.close()
        b.close()
    cap.proc.stdin.close()
    cap.reader.join(120)
    cap.proc.wait(120)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not any(missing), [len(m) for m in missing]


CHILD = """
import os, socket, sys
s = socket.socket(fileno=int(sys.argv[1]))
assert s.recv(4096).startswith(b'GET')
s.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello')
os._exit(int(sys.argv[2]))
"""


def test_processes(backend):
    """A socket passed over fork and exec; the child's life is told."""
    cap = Capture(backend)
    client, server = tcp_pair()
    os.set_inheritable(server.fileno(), True)
    pid = os.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", CHILD, str(server.fileno()), "3"])
    server.close()
    client.sendall(REQ)
    recv_all(client, len(RSP))
    assert os.waitpid(pid, 0)[1] == 3 << 8
    client.close()
    recs = cap.records()
    (o,) = opens(recs, role=2)
    assert o["pid"] == pid
    assert head(data(recs, o["conn"], IN)) == REQ and head(data(recs, o["conn"], OUT)) == RSP
    life = [(r["event"], r["code"]) for r in recs if r["type"] == "proc" and r["pid"] == pid]
    assert life == [(FORK, 0), (EXEC, 0), (EXIT, 3 << 8)], life
    (fork,) = [r for r in recs if r["type"] == "proc" and r["pid"] == pid and r["event"] == FORK]
    assert fork["ppid"] == os.getpid() and fork["start"] == o["start"]


def test_fd_passing(backend):
    """A socket passed with SCM_RIGHTS: the same connection, another process."""
    cap = Capture(backend)
    client, server = tcp_pair()
    client.sendall(REQ)
    recv_all(server, len(REQ))
    left, right = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        server.close()
        msg, anc, _, _ = right.recvmsg(10, socket.CMSG_LEN(4))
        fds = array.array("i")
        fds.frombytes(anc[0][2][:4])
        socket.socket(fileno=fds[0]).sendall(RSP)
        os._exit(0)
    left.sendmsg([b"fd"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [server.fileno()]))])
    os.waitpid(pid, 0)
    recv_all(client, len(RSP))
    for s in (left, right, client, server):
        s.close()
    recs = cap.records()
    (o,) = [o for o in opens(recs, role=2) if o["l4"] == 1]
    (i,), (out,) = data(recs, o["conn"], IN), data(recs, o["conn"], OUT)
    assert i["pid"] == os.getpid() and out["pid"] == pid


def test_signals(backend):
    """Fatal signals are told with their number, whoever sent them; handled ones are not."""
    for sig, code in ((signal.SIGSEGV, 11), (signal.SIGTERM, 15), (signal.SIGKILL, 9), (signal.SIGUSR1, None)):
        cap = Capture(backend)
        client, server = tcp_pair()
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))
            threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
            server.sendall(RSP)
            time.sleep(30)
            os._exit(0)
        recv_all(client, len(RSP))
        os.kill(pid, sig)
        os.waitpid(pid, 0)
        client.close()
        server.close()
        recs = cap.records()
        told = [(r["event"], r["signal"]) for r in recs if r["type"] == "proc" and r["pid"] == pid]
        want = [(FORK, 0), (SIGNAL, code), (EXIT, code)] if code else [(FORK, 0), (EXIT, 0)]
        assert told == want, (sig, told)


def test_reset(backend):
    """A reset is a fact on both ends."""
    cap = Capture(backend)
    client, server = tcp_pair()
    client.sendall(REQ)
    recv_all(server, len(REQ))
    server.sendall(RSP)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()  # with unread data and no linger: a reset
    try:
        while server.recv(100):
            pass
    except ConnectionResetError:
        pass
    server.close()
    recs = cap.records()
    facts = {(r["conn"], r["fact"]) for r in recs if r["type"] == "fact"}
    c, s = opens(recs, role=1)[0]["conn"], opens(recs, role=2)[0]["conn"]
    assert (c, 3) in facts and (s, 2) in facts, facts


def test_filters(backend):
    """pid, comm and port; the agent itself never."""
    a, b = tcp_pair(), tcp_pair()

    def talk():
        for c, s in (a, b):
            c.sendall(REQ)
            recv_all(s, len(REQ))

    port = a[0].getpeername()[1]
    cap = Capture(backend, "-P", str(port), pids=[])
    talk()
    recs = cap.records()
    assert {r["rport"] if r["role"] == 1 else r["lport"] for r in opens(recs)} == {port} and len(opens(recs)) == 2
    cap = Capture(backend, "-n", "nosuch", pids=[])
    talk()
    assert not opens(cap.records(), pid=os.getpid())
    with open("/proc/self/comm") as f:
        comm = f.read().strip()
    cap = Capture(backend, "-n", "nosuch", "-n", comm, pids=[])
    talk()
    assert len(opens(cap.records(), pid=os.getpid())) == 4
    other = subprocess.Popen(["sleep", "60"])
    cap = Capture(backend, pids=[other.pid])
    talk()
    cap.command(f"pid {os.getpid()}")
    talk()
    recs = cap.records()
    other.kill()
    other.wait()
    assert len(opens(recs)) == 4
    for o in opens(recs):
        assert len(data(recs, o["conn"], OUT) + data(recs, o["conn"], IN)) == 1
    for s in a + b:
        s.close()


def test_ring_full(backend):
    """A ring that is too small loses records, and every one is counted."""
    cap = Capture(backend, "-r", "4096")
    os.kill(cap.proc.pid, signal.SIGSTOP)
    client, server = tcp_pair()
    for _ in range(200):
        client.sendall(REQ)
        recv_all(server, len(REQ))
    client.close()
    server.close()
    os.kill(cap.proc.pid, signal.SIGCONT)
    cap.proc.stdin.close()
    cap.reader.join(120)
    end = cap.lines[-1]
    cap.proc.wait()
    recs = cap.lines[:-1]
    assert end["ring_full"] > 0
    assert end["records"] == len(recs), (end["records"], len(recs))
    assert end["ring_full"] + len(recs) >= 400


def main():
    global TOOL
    TOOL = sys.argv[1]
    tests = [(k[5:], f) for k, f in globals().items() if k.startswith("test_")]
    return suite.run([(f"{name}.{backend}", functools.partial(f, backend))
                      for name, f in tests for backend in ("socket", "syscall")], sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
