# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the Kubernetes API server and for kubelet: pods, lists, watches over TLS with bearer tokens, and
everything that goes wrong with them.

It does what the real ones do as far as a watcher sees it: versions that only grow, lists in pages of a snapshot,
watches from a version on with bookmarks, 410 for versions that were compacted. Failures are switched on and off
by attributes of the Api object, while it runs.
"""
import collections
import copy
import gzip
import http.server
import json
import os
import socket
import socketserver
import ssl
import subprocess
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.path.join(os.path.dirname(HERE), "vectors", "k8s")


def certificate(directory):
    """A CA and a server certificate for 127.0.0.1: (ca.crt, server.crt, server.key)."""
    ca_key, ca, key, csr, crt, ext = (os.path.join(directory, n) for n in
                                      ("ca.key", "ca.crt", "s.key", "s.csr", "s.crt", "s.ext"))
    with open(ext, "w") as f:
        f.write("subjectAltName=IP:127.0.0.1\n")

    def openssl(*args):
        subprocess.run(("openssl",) + args, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", ca_key, "-out", ca, "-days", "2",
            "-subj", "/CN=test-ca", "-addext", "basicConstraints=critical,CA:TRUE")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", csr, "-subj", "/CN=test-server")
    openssl("x509", "-req", "-in", csr, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-out", crt, "-days", "2",
            "-extfile", ext)
    return ca, crt, key


class Api:
    def __init__(self, certificates, node="testnode"):
        self.node = node
        self.lock = threading.Condition()
        self.pods = {}                      # uid -> object
        self.log = collections.deque()      # (version, type, object), the youngest last
        self.version = 100
        self.compacted = 0                  # watches from before this version are 410
        self.snapshots = {}                 # continue token -> the rest of a list
        self.services = []
        self.controllers = {}               # path -> object
        self.controllers_status = 404
        self.tokens = {"token-1"}
        self.requests = collections.Counter()   # "list", "watch", "401", …
        self.seen_tokens = []
        # Failures:
        self.status = None                  # answer everything with this status
        self.retry_after = None
        self.hang = False                   # accept, read, and never answer
        self.cut_after = None               # bytes of a body, then the connection is closed
        self.trickle = 0                    # seconds between pieces of 100 bytes
        self.garbage = None                 # this body instead
        self.error_event = None             # the next watch sends this Status and ends
        self.watch_seconds = None           # watches end after so long
        self.bookmark_every = 0.5
        self.pages = True                   # honour limit (not for lists from the cache, as older servers)
        self.ca, self.crt, self.key = certificates
        self.port = 0
        self.server = None
        self.sockets = set()
        self.start()

    # -- pods --

    def emit(self, kind, pod):
        with self.lock:
            self.version += 1
            pod["metadata"]["resourceVersion"] = str(self.version)
            frozen = copy.deepcopy(pod)
            if kind == "DELETED":
                self.pods.pop(pod["metadata"]["uid"], None)
            else:
                self.pods[pod["metadata"]["uid"]] = frozen
            self.log.append((self.version, kind, frozen))
            while len(self.log) > 20000:
                self.log.popleft()
            self.lock.notify_all()

    def compact(self):
        """Older versions can be watched from no more."""
        with self.lock:
            self.compacted = self.version
            self.version += 10
            self.snapshots.clear()

    # -- life --

    def start(self):
        api = self

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 64

            def get_request(self):
                s, peer = super().get_request()
                s.settimeout(60)
                api.sockets.add(s)
                return s, peer

            def finish_request(self, request, client_address):
                # The handshake is the connection's thread's, not the listener's.
                tls = api.context.wrap_socket(request, server_side=True)
                api.sockets.add(tls)
                try:
                    super().finish_request(tls, client_address)
                finally:
                    api.sockets.discard(tls)
                    api.sockets.discard(request)
                    tls.close()

            def handle_error(self, request, client_address):
                pass

        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.crt, self.key)
        handler = type("Handler", (Handler,), {"api": api})
        self.server = Server(("127.0.0.1", self.port), handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        """The server is gone, and with it all connections."""
        self.server.shutdown()
        self.server.server_close()
        for s in list(self.sockets):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.sockets.clear()
        with self.lock:
            self.lock.notify_all()

    def url(self):
        return f"https://127.0.0.1:{self.port}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api = None

    def log_message(self, *args):
        pass

    def whole(self, status, value, headers=()):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        zipped = "gzip" in self.headers.get("Accept-Encoding", "") and len(body) > 128 * 1024
        if zipped:
            body = gzip.compress(body, 1)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if zipped:
            self.send_header("Content-Encoding", "gzip")
        for name, v in headers:
            self.send_header(name, v)
        self.end_headers()
        self.body(body)

    def body(self, data):
        api = self.api
        if api.cut_after is not None:
            self.wfile.write(data[:api.cut_after])
            self.close_connection = True
            raise ConnectionAbortedError
        if api.trickle:
            for i in range(0, len(data), 100):
                self.wfile.write(data[i:i + 100])
                self.wfile.flush()
                time.sleep(api.trickle)
            return
        self.wfile.write(data)

    def error(self, status, reason, headers=()):
        self.api.requests[str(status)] += 1
        self.whole(status, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                            "message": reason, "reason": reason, "code": status}, headers)

    def do_GET(self):
        try:
            self.get()
        except (OSError, ConnectionAbortedError):
            self.close_connection = True

    def get(self):
        api = self.api
        url = urllib.parse.urlsplit(self.path)
        q = dict(urllib.parse.parse_qsl(url.query))
        token = self.headers.get("Authorization", "")
        api.seen_tokens.append(token)
        if api.hang:
            api.requests["hang"] += 1
            while api.hang:
                time.sleep(0.05)
            raise ConnectionAbortedError
        if api.status:
            return self.error(api.status, f"no ({api.status})",
                              [("Retry-After", str(api.retry_after))] if api.retry_after is not None else [])
        if token.removeprefix("Bearer ") not in api.tokens:
            return self.error(401, "Unauthorized")
        if api.garbage is not None:
            api.requests["garbage"] += 1
            return self.whole(200, api.garbage)
        if url.path == "/pods":
            api.requests["list"] += 1
            with api.lock:
                items = list(api.pods.values())
            return self.whole(200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
        if url.path in api.controllers:
            api.requests["controller"] += 1
            return self.whole(200, api.controllers[url.path])
        if url.path.startswith("/apis/"):
            return self.error(api.controllers_status, "no such controller")
        if url.path == "/api/v1/services":
            if not api.services:
                return self.error(403, "services is forbidden")
            return self.whole(200, {"kind": "ServiceList", "metadata": {"resourceVersion": "1"},
                                    "items": api.services}) if "watch" not in q else self.watch(q)
        if url.path != "/api/v1/pods" or q.get("fieldSelector") not in ("spec.nodeName=" + api.node, None):
            return self.error(404, "NotFound")
        if q.get("watch") == "1":
            return self.watch(q)
        return self.list(q)

    def wanted(self, q, pod):
        return urllib.parse.urlsplit(self.path).path == "/api/v1/pods" and (
            "fieldSelector" not in q or pod["spec"].get("nodeName") == self.api.node)

    def list(self, q):
        api = self.api
        api.requests["list"] += 1
        with api.lock:
            if "continue" in q:
                if q["continue"] not in api.snapshots:
                    return self.error(410, "Expired")
                version, items = api.snapshots.pop(q["continue"])
            else:
                api.requests["list from " + q.get("resourceVersion", "store")] += 1
                version, items = api.version, [p for p in api.pods.values() if self.wanted(q, p)]
            limit = int(q.get("limit", 0))
            meta = {"resourceVersion": str(version)}
            if limit and len(items) > limit and api.pages:
                cont = f"page/{version}+{len(api.snapshots)}="
                api.snapshots[cont] = (version, items[limit:])
                items = items[:limit]
                meta["continue"] = cont
        self.whole(200, {"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items})

    def chunk(self, value):
        data = json.dumps(value).encode() + b"\n"
        if self.api.cut_after is not None:
            self.wfile.write(b"%x\r\n" % len(data) + data[:self.api.cut_after])
            raise ConnectionAbortedError
        self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n")

    def watch(self, q):
        api = self.api
        server = api.server
        api.requests["watch"] += 1
        at = int(q["resourceVersion"])
        if at < api.compacted:
            return self.error(410, "Expired")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        begin = time.monotonic()
        mark = begin + api.bookmark_every
        while time.monotonic() - begin < (api.watch_seconds or int(q["timeoutSeconds"])) and api.server is server:
            with api.lock:
                news = []
                for version, kind, pod in reversed(api.log):
                    if version <= at:
                        break
                    news.append((version, kind, pod))
                if not news and api.error_event is None:
                    api.lock.wait(0.05)
                error, api.error_event = api.error_event, None
            for version, kind, pod in reversed(news):
                if self.wanted(q, pod):
                    self.chunk({"type": kind, "object": pod})
                at = version
            if error is not None:
                self.chunk({"type": "ERROR", "object": {"kind": "Status", "code": error, "message": "said so"}})
                break
            if q.get("allowWatchBookmarks") and time.monotonic() >= mark:
                mark = time.monotonic() + api.bookmark_every
                with api.lock:
                    at = max(at, api.version) if not any(v > at for v, _, _ in api.log) else at
                self.chunk({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1",
                                                           "metadata": {"resourceVersion": str(at)}}})
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = api.server is not server


def recorded(name):
    with open(os.path.join(VECTORS, name)) as f:
        return json.load(f) if name.endswith(".json") else [json.loads(line) for line in f]
