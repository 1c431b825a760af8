#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the live tests: run.py [NAME…], a NAME being a part of a test's id. Root; see harness.py."""
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402


class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passed = 0

    def startTest(self, test):
        super().startTest(test)
        self.begin = time.monotonic()

    def line(self, test, word):
        print(f"{word:7} {test.id()}  {time.monotonic() - self.begin:.1f} s", flush=True)

    def addSuccess(self, test):
        self.passed += 1
        self.line(test, "ok")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line(test, "FAILED")
        print(self.failures[-1][1], flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        self.line(test, "FAILED")
        print(self.errors[-1][1], flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"skipped: {test.id()}: {reason}", flush=True)


def tests_in(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_in(item)
        else:
            yield item


def main():
    found = unittest.defaultTestLoader.discover(os.path.dirname(os.path.abspath(__file__)), "test_*.py")
    names = sys.argv[1:]
    chosen = [t for t in tests_in(found) if not names or any(n in t.id() for n in names)]
    reason = harness.can_trace()
    if reason:
        print(f"skipped: no BPF programs can be loaded here: {reason}")
        print(f"0 passed, 0 failed, {len(chosen)} skipped")
        return 0
    result = Result()
    for test in chosen:
        test(result)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.passed} passed, {failed} failed, {len(result.skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
