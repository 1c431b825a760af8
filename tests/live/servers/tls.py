# SPDX-License-Identifier: Apache-2.0
"""HTTPS in Python's two ways: over the socket (ssl.SSLSocket), and through memory (asyncio).

tls.py serve|serve-aio PORT KEY CERT; tls.py get|get-aio PORT COUNT PREFIX PARALLEL; tls.py turns|turns-aio PORT,PORT COUNT PREFIX: a
connection each, to one port and the other in turn; tls.py behind PORT COUNT PREFIX KEY CERT: half of them each before and after as
many on a connection of its own on which TLS begins behind something else
"""
import asyncio
import http.client
import http.server
import socket
import ssl
import sys
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = f"python {self.path}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


async def handle(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            body = b"asyncio " + head.split()[1] + b"\n"
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def serve_aio(port, context):
    server = await asyncio.start_server(handle, "127.0.0.1", port, ssl=context)
    print("listens", flush=True)
    await server.serve_forever()


async def get_aio(port, numbers, prefix, parallel):
    context = ssl._create_unverified_context()

    async def one(start):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        for i in numbers[start::parallel]:
            writer.write(f"GET /{prefix}{i} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(head.lower().split(b"content-length:")[1].split()[0])
            await reader.readexactly(length)
        writer.close()

    await asyncio.gather(*(one(i) for i in range(parallel)))


def get(port, numbers, prefix, connection=None):
    connection = connection or http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context())
    for i in numbers:
        connection.request("GET", f"/{prefix}{i}")
        response = connection.getresponse()
        response.read()
        assert response.status == 200
    return connection


def upgrade(listener, context):
    s = listener.accept()[0]
    s.recv(8)
    s.sendall(b"S")
    s = context.wrap_socket(s, server_side=True)
    while s.recv(4096):
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def behind(port, numbers, prefix, key, cert):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=upgrade, args=(listener, context), daemon=True).start()
    half = len(numbers) // 2
    connection = get(port, numbers[:half], prefix)
    s = socket.create_connection(listener.getsockname())
    s.sendall(b"\0\0\0\x08\x04\xd2\x16\x2f")  # PostgreSQL's SSLRequest
    assert s.recv(1) == b"S"
    s = ssl._create_unverified_context().wrap_socket(s)
    for i in numbers:
        s.sendall(f"GET /{prefix}behind{i} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert s.recv(4096)
    get(port, numbers[half:], prefix, connection)


def main():
    how, port, *rest = sys.argv[1:]
    if how.startswith("serve"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(rest[1], rest[0])
        if how == "serve-aio":
            asyncio.run(serve_aio(int(port), context))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        print("listens", flush=True)
        server.serve_forever()
    numbers, prefix = range(int(rest[0])), rest[1]
    if how.startswith("turns"):
        ports = port.split(",")
        for i in numbers:
            at = int(ports[i % len(ports)])
            asyncio.run(get_aio(at, [i], prefix, 1)) if how == "turns-aio" else get(at, [i], prefix).close()
    elif how == "behind":
        behind(int(port), numbers, prefix, *rest[2:])
    elif how == "get-aio":
        asyncio.run(get_aio(int(port), numbers, prefix, int(rest[2])))
    else:
        get(int(port), numbers, prefix)


main()
