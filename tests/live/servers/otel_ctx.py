# SPDX-License-Identifier: Apache-2.0
"""A server that publishes a process context as an OpenTelemetry SDK does (OTEP 4719): service.name=published."""
import ctypes
import http.server
import mmap
import os
import struct


def key_value(key, text):
    any_value = b"\x0a" + bytes([len(text)]) + text
    body = b"\x0a" + bytes([len(key)]) + key + b"\x12" + bytes([len(any_value)]) + any_value
    return b"\x0a" + bytes([len(body)]) + body


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args):
        pass


fd = os.memfd_create("OTEL_CTX")
os.ftruncate(fd, 4096)
shared = mmap.mmap(fd, 4096)
resource = key_value(b"service.name", b"published")
context = b"\x0a" + bytes([len(resource)]) + resource
payload = ctypes.create_string_buffer(context, len(context))
shared[:32] = struct.pack("=8sIIQQ", b"OTEL_CTX", 2, len(context), 1, ctypes.addressof(payload))
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
