# SPDX-License-Identifier: Apache-2.0
"""A name server on 127.0.0.1:53 of its network namespace: every name has the address of the first argument.

Answers A questions only, through an alias, so that the answer's record has another owner than the question.
"""
import socket
import struct
import sys


def answer(query, address):
    end = query.index(b"\0", 12) + 5
    question = query[12:end]
    kind = struct.unpack("!H", query[end - 4:end - 2])[0]
    if kind != 1:
        return query[:2] + struct.pack("!5H", 0x8180, 1, 0, 0, 0) + question
    alias = b"\5alias\7invalid\0"
    records = b"\xc0\x0c" + struct.pack("!HHIH", 5, 1, 30, len(alias)) + alias
    records += alias + struct.pack("!HHIH", 1, 1, 30, 4) + socket.inet_aton(address)
    return query[:2] + struct.pack("!5H", 0x8180, 1, 2, 0, 0) + question + records


def main():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 53))
    print("ready", flush=True)
    while True:
        query, sender = s.recvfrom(1500)
        s.sendto(answer(query, sys.argv[1]), sender)


main()
