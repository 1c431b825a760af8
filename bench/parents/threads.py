# SPDX-License-Identifier: Apache-2.0
"""threads.py PORT BACKEND-PORT: a thread per connection; /direct/ID calls on it, /pool/ID in an executor's thread."""
import concurrent.futures
import http.client
import http.server
import sys
import threading

port, backend = map(int, sys.argv[1:3])
local = threading.local()
pool = concurrent.futures.ThreadPoolExecutor(8)


def call(ident, n):
    c = getattr(local, "c", None)
    if c is None:
        c = local.c = http.client.HTTPConnection("127.0.0.1", backend)
    c.request("GET", f"/d/{ident}/{n}")
    c.getresponse().read()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        _, way, ident = self.path.split("/")[:3]
        if way == "pool":
            pool.submit(call, ident, 0).result()
        else:
            call(ident, 0)
            call(ident, 1)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256


server = Server(("127.0.0.1", port), Handler)
print("ready", flush=True)
server.serve_forever()
