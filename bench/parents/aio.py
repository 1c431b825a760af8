# SPDX-License-Identifier: Apache-2.0
"""aio.py PORT BACKEND-PORT [MS]: one asyncio thread, connections to the backend kept in a pool; two awaited calls.
With MS a call of nobody's (/d/own/N) so often."""
import asyncio
import sys

port, backend, often = map(int, (sys.argv + ["0"])[1:4])
idle = []


async def call(ident, n):
    reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", backend)
    writer.write(f"GET /d/{ident}/{n} HTTP/1.1\r\nHost: b\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    await reader.readexactly(length)
    idle.append((reader, writer))


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            ident = head.split(b" ")[1].decode().split("/")[2]
            await call(ident, 0)
            await call(ident, 1)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def own():
    n = 0
    while often:
        await asyncio.sleep(often / 1000)
        await call("own", n)
        n += 1


async def main():
    keep = asyncio.create_task(own())  # noqa: F841
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=256)
    print("ready", flush=True)
    await server.serve_forever()

asyncio.run(main())
