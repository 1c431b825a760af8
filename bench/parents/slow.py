# SPDX-License-Identifier: Apache-2.0
"""slow.py PORT WAY CONNECTIONS SECONDS: requests whose bodies come in three parts, some milliseconds apart."""
import asyncio
import random
import sys
import time

port, connections = int(sys.argv[1]), int(sys.argv[3])
way, end = sys.argv[2], time.monotonic() + float(sys.argv[4])


async def client(number):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    n = 0
    while time.monotonic() < end:
        writer.write(f"POST /{way}/{number}x{n} HTTP/1.1\r\nHost: s\r\nContent-Length: 30\r\n\r\n".encode())
        n += 1
        for _ in range(3):
            await asyncio.sleep(random.uniform(0, 0.004))
            writer.write(b"0123456789")
        head = await reader.readuntil(b"\r\n\r\n")
        if b"chunked" in head:
            await reader.readuntil(b"0\r\n\r\n")
        else:
            await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))


async def main():
    await asyncio.gather(*(client(i) for i in range(connections)))

asyncio.run(main())
