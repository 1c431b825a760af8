# SPDX-License-Identifier: Apache-2.0
"""tls_memory.py PORT KEY CERT: forever a request to PORT, and TLS between two objects that no connection is behind."""
import socket
import ssl
import sys
import time

PORT, KEY, CERT = int(sys.argv[1]), *sys.argv[2:4]
theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
theirs.load_cert_chain(CERT, KEY)
ours = ssl._create_unverified_context()


def step(fn):
    try:
        return fn()
    except ssl.SSLWantReadError:
        return None


while True:
    with ours.wrap_socket(socket.create_connection(("127.0.0.1", PORT))) as s:
        s.sendall(b"GET /memory HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        while s.recv(4096):
            pass
    to, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client, server = ours.wrap_bio(back, to), theirs.wrap_bio(to, back, server_side=True)
    for _ in range(4):
        step(client.do_handshake)
        step(server.do_handshake)
    client.write(b"text")
    assert server.read(100) == b"text"
    time.sleep(0.05)
