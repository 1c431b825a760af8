#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: bad input, missing rights, full disks, signals: run.py [NAME…].

Each case runs build/ringspan and looks at exit code, standard output and error. Errors are one line that
says what, which, why and what to do. Cases that need root or a BPF-capable kernel are skipped without.
"""
import glob
import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import suite  # noqa: E402


def main():
    modules = [importlib.import_module(os.path.basename(path)[:-3]) for path in sorted(glob.glob(os.path.join(HERE, "test_*.py")))]
    return suite.run([(name, case) for module in modules for name, case in vars(module).items() if name.startswith("test_")], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
