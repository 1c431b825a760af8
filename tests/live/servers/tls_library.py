# SPDX-License-Identifier: Apache-2.0
"""HTTPS through a libssl of any release, by the functions that all of them have.

tls_library.py LIBCRYPTO LIBSSL PORT COUNT PREFIX; it reads lines as tls_users.py does
"""
import ctypes
import socket
import sys

crypto, lib, port, count, prefix = sys.argv[1:]
ctypes.CDLL(crypto, ctypes.RTLD_GLOBAL)
ssl = ctypes.CDLL(lib)
for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
    getattr(ssl, name).restype = ctypes.c_void_p
context = ctypes.c_void_p(ssl.SSL_CTX_new(ctypes.c_void_p(ssl.TLS_client_method())))


def ask(paths):
    sock = socket.create_connection(("127.0.0.1", int(port)))
    session = ctypes.c_void_p(ssl.SSL_new(context))
    assert ssl.SSL_set_fd(session, sock.fileno()) == 1
    assert ssl.SSL_connect(session) == 1
    buf = ctypes.create_string_buffer(4096)
    for path in paths:
        head = f"GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        assert ssl.SSL_write(session, head, len(head)) == len(head)
        got = b""
        while b"hello\n" not in got:
            n = ssl.SSL_read(session, buf, len(buf))
            assert n > 0
            got += buf.raw[:n]
        assert got.startswith(b"HTTP/1.1 200"), got
    ssl.SSL_shutdown(session)
    ssl.SSL_free(session)
    sock.close()


print("starts", flush=True)
while sys.stdin.readline() != "go\n":
    ask(["warm"])
    print("warm", flush=True)
ask([f"{prefix}{i}" for i in range(int(count))])
