# SPDX-License-Identifier: Apache-2.0
"""How the suites that run real programs go through their tests, and what they print of each:

    ok        NAME  SECONDS
    skipped:  NAME: reason       the test raised unittest.SkipTest
    again     NAME: reason       failed; tried once more, alone, at the end
    FAILED    NAME: reason       failed twice
    unsteady: NAME: reason       failed, then passed: the suite passes, and the test (or what it tests) needs a cure

and the closing line "N passed, N failed, N skipped". tests/check repeats the last two kinds at its end.
Who asks for tests by a part of their names (T=…) and means none has made a mistake: exit status 2.
"""
import functools
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
import unittest

TESTS = os.path.dirname(os.path.abspath(__file__))
# Seconds: a test that hangs is a test that failed, not a suite that never ends. (More for those that fetch and build.)
LIMIT = int(os.environ.get("RS_TEST_SECONDS", "420"))
MANY = 8  # failed tests: more are no accident, and not tried again


def free_port():
    """A port that nobody has, and that the kernel gives to no client before it is listened on."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        first_of_clients = int(f.read().split()[0])
    while True:
        port = random.randrange(10000, max(first_of_clients, 20000))
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


@functools.cache
def go_program(name):
    """Why build/NAME, a program of Go modules in the folder that its rule names, cannot be had; or nothing."""
    if not shutil.which("go"):
        return "no Go compiler"
    # What another make runs us with is no word to this one.
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    done = subprocess.run(["make", "-s", "-C", os.path.dirname(TESTS), f"build/{name}"], stdin=subprocess.DEVNULL, env=env,
                          capture_output=True, text=True, timeout=1500, check=False)
    if not done.returncode:
        return ""
    version = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout.strip()
    return f"{name} cannot be built with {version}: {' '.join(done.stderr.split())[-300:]}"


class Failure(Exception):
    """What was tested, or something that the test needs, is not as it must be."""


class Hung(Failure):
    pass


def expect(condition, message):
    if not condition:
        raise Failure(message)


def wait_until(what, probe, seconds=120, why=lambda: ""):
    """The first true result of probe(); why() is added to what is said when it takes so long that it will never be."""
    end = time.monotonic() + seconds
    while True:
        result = probe()
        if result:
            return result
        expect(time.monotonic() < end, f"waited {seconds:.0f} s in vain for {what}{why()}")
        time.sleep(0.02)


class Raise(unittest.TestResult):
    """A TestCase's outcome: the first exception."""

    def __init__(self):
        super().__init__()
        self.exception = None

    def addError(self, test, err):
        super().addError(test, err)
        self.exception = self.exception or err[1]

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.exception = self.exception or err[1]

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.exception = self.exception or err[1]


def cases(*test_cases):
    """(name, function) of instances of unittest.TestCase."""
    def function(test):
        def call():
            result = Raise()
            test(result)
            if result.exception:
                raise result.exception
            if result.skipped:
                raise unittest.SkipTest(result.skipped[0][1])
        return call
    return [(test.id(), function(test)) for test in test_cases]


def frames(exception):
    """The calls that led there, the tests' own only."""
    return [f for f in traceback.extract_tb(exception.__traceback__)
            if f.filename.startswith(TESTS) and f.filename != os.path.abspath(__file__)]


def reason(exception):
    """In one line: what, and where in the tests."""
    text = " ".join(f"{type(exception).__name__}: {exception}".split())
    where = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(frames(exception)[-3:]))
    return f"{text[:600]} ({where})"


def tell(word, name, exception):
    print(f"{word:9} {name}: {reason(exception)}")
    print("".join(traceback.format_list(frames(exception))), f"  {exception}", sep="", flush=True)


def attempt(function):
    """None, or the exception; SkipTest is passed on."""
    def hung(*_):
        raise Hung(f"no end within {LIMIT} s")

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(LIMIT)
    try:
        function()
    except unittest.SkipTest:
        raise
    except Exception as e:  # whatever it is, the others must run
        return e
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return None


def wanted(name, parts):
    return not parts or any(part in name for part in parts)


def run(tests, parts=()):
    """Run those (name, function) pairs whose name has one of the parts; the exit status. A test fails by an exception."""
    tests = [(name, function) for name, function in tests if wanted(name, parts)]
    if not tests:
        print(f"no test has {' or '.join(parts)} in its name", file=sys.stderr)
        return 2
    # Whoever starts us in the background, or with nohup, has some of these ignored, and so would all that tests start.
    for signo in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD):
        if signal.getsignal(signo) == signal.SIG_IGN:
            signal.signal(signo, signal.default_int_handler if signo == signal.SIGINT else signal.SIG_DFL)
    passed, skipped, failed = 0, 0, []
    for name, function in tests:
        begin = time.monotonic()
        try:
            exception = attempt(function)
        except unittest.SkipTest as e:
            skipped += 1
            print(f"skipped:  {name}: {e}", flush=True)
            continue
        if exception:
            failed.append((name, function, exception))
            tell("again", name, exception)
        else:
            passed += 1
            print(f"ok        {name}  {time.monotonic() - begin:.1f} s", flush=True)
    lost = 0
    for name, function, exception in failed:
        second = exception if len(failed) > MANY or isinstance(exception, Hung) else attempt(function)
        if second:
            lost += 1
            tell("FAILED", name, second)
        else:
            passed += 1
            print(f"unsteady: {name}: {reason(exception)}", flush=True)
    print(f"{passed} passed, {lost} failed, {skipped} skipped")
    return 1 if lost else 0
