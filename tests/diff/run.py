#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encoders against independent decoders: run.py [NAME]… runs tests/diff/check_*NAME*.py, all without arguments.

Python packages go to build/venv, once. What cannot be had is named, and the checks skip what needs it; without
msgpack nothing of Datadog can be checked, and that is a failure.
"""
import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
VENV = os.path.join(TOP, "build", "venv")
PYTHON = os.path.join(VENV, "bin", "python")


def packages():
    for line in open(os.path.join(HERE, "requirements.txt")):
        name = line.split("#")[0].strip()
        if name:
            yield name


def install():
    stamp = os.path.join(VENV, "installed.txt")
    wanted = open(os.path.join(HERE, "requirements.txt")).read()
    if os.path.exists(stamp) and open(stamp).read() == wanted:
        return
    if subprocess.run([sys.executable, "-m", "venv", VENV]).returncode:
        sys.exit("cannot make a Python environment in build/venv (package python3-venv?)")
    complete = True
    for p in packages():
        r = subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", p], capture_output=True, text=True)
        if r.returncode:
            complete = False
            print("skipped: no Python package", p, "-", r.stderr.strip().splitlines()[-1:])
    if complete:
        open(stamp, "w").write(wanted)


def main():
    install()
    names = sorted(os.path.basename(p)[6:-3] for p in glob.glob(os.path.join(HERE, "check_*.py")))
    names = [n for n in names if not sys.argv[1:] or any(part in n for part in sys.argv[1:])]
    if not names:
        sys.exit(f"no check has {' or '.join(sys.argv[1:])} in its name")
    failed = [n for n in names if subprocess.run([PYTHON, os.path.join(HERE, f"check_{n}.py"), os.path.join(TOP, "build", "ringspan")]).returncode]
    if failed:
        print("failed:", *failed)
    return len(failed) != 0


if __name__ == "__main__":
    sys.exit(main())
