# SPDX-License-Identifier: Apache-2.0
"""A threading http.server for the live tests: server.py LISTEN LOG [BACKEND], LISTEN a port or a path.

Writes METHOD\tTARGET\tSTATUS to LOG for each response. Paths as in server.js.
"""
import http.client
import http.server
import os
import signal
import socket
import socketserver
import sys
import threading
import time

listen, log_path, backend = (sys.argv[1:] + [None])[:3]
log = open(log_path, "a", buffering=1)
lock = threading.Lock()
local = threading.local()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # a response in one write, and no wait for the client's delayed acknowledgement

    def log_request(self, code="-", size="-"):
        with lock:
            log.write(f"{self.command}\t{self.path}\t{int(code)}\n")

    def log_message(self, *args):
        pass

    def address_string(self):
        return "local"

    def reply(self, code, body=b""):
        self.send_response(code)
        if code not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and code not in (204, 304):
            self.wfile.write(body)

    def call(self, path):
        """One request to the backend on this thread's own connection."""
        host, port = backend.split("//")[1].split(":")
        if getattr(local, "conn", None) is None:
            local.conn = http.client.HTTPConnection(host, int(port), timeout=10)
        local.conn.request("GET", path)
        local.conn.getresponse().read()

    def handle_any(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length) if length else b""
        parts = self.path.split("?")[0].split("/")[1:] + ["", "", ""]
        verb, arg, ident = parts[:3]
        if verb == "s":
            self.reply(int(arg), b"x" * 100)
        elif verb == "slow":
            time.sleep(int(arg) / 1000)
            self.reply(200, b"late\n")
        elif verb == "echo":
            self.reply(200, body)
        elif verb == "fetch":
            for i in range(int(arg)):
                self.call(f"/python/{ident}/{i}")
            self.reply(200, b"fetched\n")
        elif verb == "die":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"z" * 1000)
            self.wfile.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        elif verb == "big":
            self.reply(200, b"z" * (int(arg) << 20))
        elif verb == "hog":
            self.reply(200, b"%d" % sum(bytearray(os.urandom(1) * (int(arg) << 20))[::4096]))
        elif verb == "segv":
            time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGSEGV)
        else:
            self.reply(200, b"ok\n")

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_OPTIONS = handle_any


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256
    allow_reuse_address = True

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", 0


if listen.startswith("/"):
    Server.address_family = socket.AF_UNIX
    server = Server(listen, Handler)
else:
    server = Server(("127.0.0.1", int(listen)), Handler)
print("ready", flush=True)
server.serve_forever()
