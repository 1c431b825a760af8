#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the live tests: run.py [NAME…], a NAME being a part of a test's id. Root; see harness.py and suite.py."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import harness  # noqa: E402
import suite  # noqa: E402


def tests_in(found):
    for item in found:
        if isinstance(item, unittest.TestSuite):
            yield from tests_in(item)
        else:
            yield item


def main():
    found = unittest.defaultTestLoader.discover(HERE, "test_*.py")
    tests = suite.cases(*tests_in(found))
    reason = harness.can_trace()
    if reason:
        print(f"skipped: no BPF programs can be loaded here: {reason}")
        print(f"0 passed, 0 failed, {len(tests)} skipped")
        return 0
    return suite.run(tests, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
