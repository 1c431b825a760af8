#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The encoders built for arm64, run by qemu's user mode: run.py BENCH VERSION

BENCH is the program made of bench/encode.c for this machine, VERSION what it was built as. Every format of every workload must come out byte for byte as here
(whose encoders the other checks hold to independent decoders), and the text pass, whose vectors are NEON there, must write what
the byte-wise reference writes, on the fuzz corpus and on seeded random text. Not part of `make check`: it wants a cross compiler.
"""
import glob
import os
import random
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(TOP, "build", "arm64")
CC, QEMU, ROOT = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
SOURCES = [*glob.glob("encoders/*.c"), *glob.glob("user/base/*.c"), "user/trace/span.c", "user/trace/keys.c"]
PIECES = ["a", "GET /", '"', "\\", "\n", "\x00", "\x7f", "é", "日本", "💥", "\ud800", "x" * 15, "y" * 16, "z" * 33]
BAD = [b"\xff", b"\xc0\x80", b"\xe6\x97", b"\xf0\x9f\x98", b"\x80", b"\xf5", b"\xf4\x90\x80\x80", b"\xe0\x80\x80"]


def build(name, *src):
    out = os.path.join(OUT, name)
    # msgpack-c's headers are the same on every machine.
    subprocess.run([CC, "-std=gnu17", "-O2", "-D_GNU_SOURCE", f'-DRS_VERSION="{sys.argv[2]}"', "-Iuser", "-Iencoders", "-Ibpf", "-I.", "-idirafter", "/usr/include",
                    "-o", out, *src, *SOURCES, "-lm"], cwd=TOP, check=True)
    return [QEMU, "-L", ROOT, out]


def random_texts(folder, n):
    os.makedirs(folder, exist_ok=True)
    r = random.Random(1)
    for i in range(n):
        text = b"".join(r.choice(BAD) if r.random() < 0.1 else r.choice(PIECES).encode("utf-8", "surrogatepass") for _ in range(r.randrange(12)))
        with open(os.path.join(folder, str(i)), "wb") as f:
            f.write(bytes([r.randrange(256)]) + text)
    return folder


def main():
    if not shutil.which(CC) or not shutil.which(QEMU):
        print(f"SKIP arm64: wants {CC} and {QEMU} (packages gcc-aarch64-linux-gnu, qemu-user)")
        return 0
    os.makedirs(OUT, exist_ok=True)
    encode = build("encode", "bench/encode.c")
    text = build("enc_text", "tests/fuzz/fuzz_main.c", "tests/fuzz/fuzz_enc_text.c")
    failed = passed = 0
    listed = [line.split("\t") for line in subprocess.run([sys.argv[1], "list"], capture_output=True, text=True).stdout.splitlines()]
    for fmt in (name for kind, name in listed if kind == "format"):
        for workload in (name for kind, name in listed if kind == "workload"):
            cell = ["write", fmt, workload, "20"]
            same = subprocess.run([*encode, *cell], capture_output=True).stdout == subprocess.run([sys.argv[1], *cell], capture_output=True).stdout
            passed, failed = passed + same, failed + (not same)
            if not same:
                print(f"FAIL {fmt} {workload}: other bytes than here")
    folders = [os.path.join(TOP, "tests/fuzz/corpus/enc_text"), random_texts(os.path.join(OUT, "texts"), 3000)]
    if subprocess.run([*text, *folders]).returncode:
        failed += 1
        print("FAIL text: differs from the reference")
    else:
        passed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped (arm64)")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
