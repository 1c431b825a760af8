# SPDX-License-Identifier: Apache-2.0
"""A backend that does what a test tells it to: HTTP from the standard library, every request kept."""
import gzip
import http.server
import json
import socket
import ssl
import struct
import threading
import time


class Answer:
    """What to do with one request. take: its spans count as received."""

    def __init__(self, status=200, body=b"", headers=(), delay=0, take=None, reset=None, hang_up=False, missing=0):
        self.status, self.body, self.headers, self.delay = status, body, headers, delay
        self.take = status // 100 == 2 if take is None else take
        self.reset = reset  # bytes of the body to read before the connection is reset
        self.hang_up = hang_up or missing > 0  # close the connection after the answer, without saying so
        self.missing = missing  # bytes of the body that are promised and do not come


def varint(b, i):
    value = shift = 0
    while True:
        value |= (b[i] & 0x7F) << shift
        shift += 7
        i += 1
        if not b[i - 1] & 0x80:
            return value, i


def fields(b):
    i = 0
    while i < len(b):
        tag, i = varint(b, i)
        if tag & 7 == 2:
            n, i = varint(b, i)
            yield tag >> 3, b[i : i + n]
            i += n
        elif tag & 7 == 0:
            value, i = varint(b, i)
            yield tag >> 3, value
        else:
            n = 8 if tag & 7 == 1 else 4
            yield tag >> 3, b[i : i + n]
            i += n


def ids_protobuf(body):
    for _, resource in fields(body):
        for no, scope in fields(resource):
            if no == 2:
                for no2, span in fields(scope):
                    if no2 == 2:
                        yield next(v for k, v in fields(span) if k == 2).hex()


def ids_json(body):
    doc = json.loads(body)
    if isinstance(doc, list):  # Zipkin
        return [s["id"] for s in doc]
    return [s["spanId"] for r in doc["resourceSpans"] for sc in r["scopeSpans"] for s in sc["spans"]]


def span_ids(body, content_type):
    return list(ids_json(body) if "json" in content_type else ids_protobuf(body))


class Server:
    """answer(request number, request) -> Answer. Requests: dicts with time, path, headers, ids, body."""

    running = []

    def __init__(self, port, answer=lambda n, r: Answer(), tls=None, unix=None, ids=span_ids):
        self.requests, self.received, self.lock = [], [], threading.Lock()
        self.answer, self.ids = answer, ids
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_POST(self):
                outer.handle(self)

            do_GET = do_PUT = do_POST

            def address_string(self):
                return "client"

        if unix:

            class UnixServer(http.server.ThreadingHTTPServer):
                address_family = socket.AF_UNIX

                def server_bind(self):
                    self.socket.bind(self.server_address)
                    self.server_name, self.server_port = "unix", 0

            self.httpd = UnixServer(unix, Handler)
        else:
            http.server.ThreadingHTTPServer.allow_reuse_address = True
            self.httpd = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.httpd.daemon_threads = True
        if tls:
            self.httpd.socket = tls.wrap_socket(self.httpd.socket, server_side=True)
        self.httpd.handle_error = lambda *a: None
        self.thread = threading.Thread(target=self.httpd.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()
        Server.running.append(self)

    def handle(self, h):
        length = int(h.headers.get("Content-Length", 0))
        content_type = h.headers.get("Content-Type", "")
        request = {"time": time.monotonic(), "method": h.command, "path": h.path, "headers": h.headers}
        with self.lock:
            number = len(self.requests)
            self.requests.append(request)
        early = self.answer(number, dict(request, ids=None))
        if early.reset is not None:
            h.rfile.read(min(early.reset, length))
            h.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            h.connection.close()
            h.close_connection = True
            return
        body = h.rfile.read(length)
        raw = gzip.decompress(body) if h.headers.get("Content-Encoding") == "gzip" else body
        request["raw"], request["body"] = body, raw
        request["ids"] = self.ids(raw, content_type) if raw and h.command != "GET" else []
        a = self.answer(number, request)
        if a.take:
            with self.lock:
                self.received += request["ids"]
        time.sleep(a.delay)
        try:
            h.send_response(a.status)
            for name, value in a.headers:
                h.send_header(name, value)
            h.send_header("Content-Length", str(len(a.body) + a.missing))
            h.end_headers()
            h.wfile.write(a.body)
            h.wfile.flush()
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            h.close_connection = True
        if a.hang_up:
            h.close_connection = True

    def close(self):
        Server.running.remove(self)
        self.httpd.shutdown()
        self.httpd.server_close()
