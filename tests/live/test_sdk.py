# SPDX-License-Identifier: Apache-2.0
"""The active span that a thread's SDK publishes (otel_thread_ctx_v1), however compilers place the variable."""
import os
import shutil
import subprocess
import sys

from harness import CLIENT, SERVER, SERVERS, LiveTest, Wire, at_once, free_port

SOURCE = os.path.join(SERVERS, "thread_ctx.c")
# name: flags of the library ("": none, the variable is in the program), of the program, is it loaded later?
PLACES = {
    "local-exec": ("", "-rdynamic", False),
    "initial-exec": ("-ftls-model=initial-exec", "-DLINKED", False),
    "general-dynamic": ("-ftls-model=global-dynamic", "-DLINKED", False),
    "loaded": ("-ftls-model=global-dynamic", "-rdynamic", True),
    "descriptor": ("-mtls-dialect=gnu2", "-DLINKED", False),
    "descriptor-loaded": ("-mtls-dialect=gnu2", "-rdynamic", True),
}


class Sdk(LiveTest):
    def build(self, name):
        library, program, later = PLACES[name]
        cc, out, lib = ["gcc", "-O1", "-pthread", "-o"], self.place.path(name), self.place.path(f"lib{name}.so")
        link = []
        if library:
            if subprocess.run([*cc, lib, "-shared", "-fPIC", "-DLIBRARY", library, SOURCE]).returncode:
                return None
            link = [] if later else [lib]
        subprocess.run([*cc, out, program, SOURCE, *link, "-ldl"], check=True)
        return [out, lib] if later else [out]

    def one(self, name, sdk):
        argv = self.build(name)
        if not argv:
            return None
        up = free_port()
        self.place.spawn_server([sys.executable, os.path.join(SERVERS, "server.py"), str(up), self.place.path("up.log")])
        process = self.place.spawn([argv[0], str(up), *argv[1:]], stdout=subprocess.PIPE)
        port = int(process.stdout.readline())
        agent = self.agent("--port", str(port), "--port", str(up), "--sdk", sdk, name=f"{name}-{sdk}")
        Wire(("127.0.0.1", port)).get("/" + "0" * 31 + "1/" + "0" * 15 + "1")
        agent.wait_for("the first call", lambda s: s.kind == SERVER and s.target == "/up")  # now the process is known
        spans = {f"{t:032x}": f"{t + 100:016x}" for t in range(2, 8)}
        at_once(lambda item: Wire(("127.0.0.1", port)).get("/{}/{}".format(*item)), spans.items())
        return spans, agent.stop()

    def test_parent_is_the_active_span(self):
        if not shutil.which("gcc"):
            self.skipTest("no gcc to build the program that publishes")
        measured = []
        for name in PLACES:
            result = self.one(name, "keep")
            if not result:
                measured.append(f"{name}: this compiler cannot")
                continue
            spans, seen = result
            calls = {s.trace: s for s in seen if s.kind == CLIENT and s.target == "/up"}
            for trace, span in spans.items():
                self.assertIn(trace, calls, f"{name}: no call in the SDK's trace")
                self.assertEqual(calls[trace].parent, span)
                self.assertEqual(calls[trace].attributes["ringspan.parent.source"], "sdk")
            # None is active any more.
            for s in seen:
                if s.kind == CLIENT and s.target == "/none":
                    self.assertNotEqual(s.attributes["ringspan.parent.source"], "sdk")
            measured.append(f"{name}: {len(spans)} of {len(spans)}")
        self.measured("; ".join(measured))

    def test_callee_of_a_process_left_to_its_sdk(self):
        """No span of ours is made for the call: the callee's parent is the SDK's span itself."""
        if not shutil.which("gcc"):
            self.skipTest("no gcc to build the program that publishes")
        spans, seen = self.one("local-exec", "skip")
        self.assertEqual([s for s in seen if s.kind == CLIENT and s.target == "/up"], [])
        got = {s.trace: s.parent for s in seen if s.kind == SERVER and s.target == "/up"}
        right = sum(got.get(trace) == span for trace, span in spans.items())
        self.assert_most(right, len(spans), "callees under the SDK's spans")
        self.assertEqual([t for t, parent in got.items() if t in spans and parent != spans[t]], [])
