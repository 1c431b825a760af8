#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""user/k8s against a stand-in for the API server and kubelet (fakeapi.py): check.py FOLLOW [NAME]. No root.

NAME: a part of Class.test; Follows is for a build with sanitizers, Much for one whose memory is measured.
"""
import json
import os
import random
import select
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import fakeapi  # noqa: E402
import suite  # noqa: E402

FOLLOW = None
SLOW = float(os.environ.get("RS_TEST_PATIENCE", "5"))


def pod(n, ip=None, app="web", labels=None, **spec):
    uid = f"{n:08x}-0000-4000-8000-{n:012x}"
    return {"metadata": {"name": f"web-5d-{n}", "namespace": "ns", "uid": uid,
                         "labels": {"app": app, "pod-template-hash": "5d", **(labels or {})},
                         "managedFields": [{"manager": "kubelet", "fieldsV1": {f"f:x{i}": {} for i in range(60)}}],
                         "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d", "uid": "r", "controller": True}]},
            "spec": {"containers": [{"name": "c", "image": "i:1"}], **{"nodeName": "testnode", **spec}},
            "status": {"phase": "Running", **({"podIP": ip} if ip else {})}}


class Follow:
    def __init__(self, api, *args, token=None, directory=None):
        self.token = os.path.join(directory, "token")
        if token:
            self.write_token(token)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KUBERNETES_", "RINGSPAN_"))}
        env["https_proxy"] = "http://127.0.0.1:1"  # must not be asked for this
        self.p = subprocess.Popen([FOLLOW, "--k8s-ca", api.ca, "--k8s-token", self.token, "--k8s-node", "testnode",
                                   *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                  env=env)

    def write_token(self, token):
        # As kubelet does: a new file takes the old one's place.
        with open(self.token + ".new", "w") as f:
            f.write(token + "\n")
        os.rename(self.token + ".new", self.token)

    def ask(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        if not select.select([self.p.stdout], [], [], 20 * SLOW)[0]:
            raise AssertionError("no answer: the loop is blocked")
        return json.loads(self.p.stdout.readline())

    def status(self):
        return self.ask("status")

    def wait(self, what, probe, seconds=10):
        return suite.wait_until(what, probe, seconds * SLOW, lambda: f"; status {self.status()}")

    def close(self):
        self.p.stdin.close()
        code = self.p.wait(20 * SLOW)
        self.p.stdout.close()
        if code:
            raise AssertionError(f"follow ended with {code}")


class Base(unittest.TestCase):
    certificates = None

    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory(prefix="rs-k8s-")
        self.api = fakeapi.Api(self.certificates)
        self.follow = None

    def tearDown(self):
        self.api.hang = False
        if self.follow:
            self.follow.close()
        self.api.stop()
        self.tmp.cleanup()

    def begin(self, *args, synced=True, token="token-1"):
        self.follow = Follow(self.api, *(args or ("--k8s-source", "api", "--k8s-api", self.api.url())),
                             token=token, directory=self.tmp.name)
        if synced:
            self.follow.wait("the first list", lambda: self.follow.status()["synced"])
        return self.follow

    def knows(self, p, seconds=10):
        self.follow.wait(p["metadata"]["name"], lambda: self.follow.ask("uid " + p["metadata"]["uid"]), seconds)

    def add(self, n, **more):
        p = pod(n, **more)
        self.api.emit("ADDED", p)
        return p


class Follows(Base):
    # -- what goes well --

    def test_list_and_watch(self):
        first = [self.add(i, ip=f"10.0.0.{i}") for i in range(1, 6)]
        f = self.begin()
        self.assertEqual(f.status()["pods"], 5)
        got = f.ask("uid " + first[0]["metadata"]["uid"])
        self.assertEqual((got["name"], got["namespace"], got["owner"], got["app"]), ("web-5d-1", "ns", "web-5d", "web"))
        self.assertEqual(f.ask("ip 10.0.0.3")["name"], "web-5d-3")
        new = self.add(77, ip="10.0.0.77")
        self.knows(new)
        new["metadata"]["labels"]["app"] = "other"
        self.api.emit("MODIFIED", new)
        f.wait("the label", lambda: f.ask("uid " + new["metadata"]["uid"])["app"] == "other")
        self.api.emit("DELETED", new)
        f.wait("the end", lambda: f.ask("uid " + new["metadata"]["uid"])["deleted"])
        self.assertEqual(f.status()["pods"], 5)
        self.assertEqual(self.api.requests["list"], 1)
        self.assertEqual(self.api.requests["list from 0"], 1)
        self.assertEqual(f.status()["failures"], 0)

    def test_recorded(self):
        """A real API server's list and its watch."""
        for p in fakeapi.recorded("api-pods.json")["items"]:
            self.api.emit("ADDED", p)
        f = self.begin()
        self.assertEqual(f.status()["pods"], 9)
        for event in fakeapi.recorded("watch.ndjson"):
            self.api.emit(event["type"], event["object"])
        f.wait("the last event", lambda: f.status()["deleted"] == 1)
        self.assertEqual(f.status()["pods"], 9)
        self.assertEqual(f.ask("uid ab93f20792dc4e4db6d83bb1f6dfc924")["name"], "st-testnode")

    def test_pages(self):
        for i in range(1, 1201):
            self.add(i)
        f = self.begin()
        self.assertEqual(f.status()["pods"], 1200)
        self.assertEqual(self.api.requests["list"], 3)

    def test_reused_address(self):
        old = self.add(1, ip="10.0.0.1")
        f = self.begin()
        self.assertEqual(f.ask("ip 10.0.0.1")["uid"], old["metadata"]["uid"])
        self.api.emit("DELETED", old)
        new = self.add(2, ip="10.0.0.1")
        self.knows(new)
        self.assertEqual(f.ask("ip 10.0.0.1")["uid"], new["metadata"]["uid"])
        self.assertTrue(f.ask("uid " + old["metadata"]["uid"])["deleted"])

    def test_peers_of_the_cluster(self):
        """Pods of other nodes and Services by address; not allowed to see Services, pods are named all the same."""
        self.add(1, ip="10.0.0.1")
        self.add(2, ip="10.0.1.2", nodeName="other")
        f = self.begin("--k8s-source", "api", "--k8s-api", self.api.url(), "--k8s-peers", "cluster")
        f.wait("the other node's pod", lambda: f.ask("peer 10.0.1.2").get("name") == "web-5d-2")
        self.assertEqual(f.ask("ip 10.0.1.2"), {})
        self.assertEqual(f.status()["pods"], 1)
        self.assertEqual(f.ask("peer ::ffff:10.0.0.1")["name"], "web-5d-1")
        f.wait("403", lambda: self.api.requests["403"])
        f.close()
        self.api.services = [{"metadata": {"name": "shop", "namespace": "ns", "uid": "s1"},
                              "spec": {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7", "fd00::7"]}},
                             {"metadata": {"name": "headless", "namespace": "ns", "uid": "s2"}, "spec": {"clusterIP": "None"}}]
        f = self.begin("--k8s-source", "api", "--k8s-api", self.api.url(), "--k8s-peers", "cluster")
        f.wait("the Service", lambda: f.ask("peer fd00::7").get("name") == "shop")
        self.assertEqual(f.ask("peer 10.96.0.7")["name"], "shop")

    def test_owners(self):
        """The Deployment of a ReplicaSet is asked for once, whatever the number of its pods and changes."""
        self.api.controllers["/apis/apps/v1/namespaces/ns/replicasets/web-5d"] = {
            "kind": "PartialObjectMetadata",
            "metadata": {"name": "web-5d", "namespace": "ns", "uid": "r",
                         "ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "d-1", "controller": True}]}}
        pods = [self.add(i) for i in range(1, 5)]
        f = self.begin("--k8s-source", "api", "--k8s-api", self.api.url(), "--k8s-owners")
        for p in pods:
            f.wait("the uid", lambda: f.ask("uid " + p["metadata"]["uid"])["top"] == "d-1")
        pods[0]["metadata"]["labels"]["app"] = "other"
        self.api.emit("MODIFIED", pods[0])
        f.wait("the label", lambda: f.ask("uid " + pods[0]["metadata"]["uid"])["app"] == "other")
        self.assertEqual(f.ask("uid " + pods[0]["metadata"]["uid"])["top"], "d-1")
        self.assertEqual(self.api.requests["controller"], 1)

    def test_owners_not_allowed(self):
        """It is asked once, and pods are known all the same."""
        self.api.controllers_status = 403
        p = self.add(1)
        f = self.begin("--k8s-source", "api", "--k8s-api", self.api.url(), "--k8s-owners")
        f.wait("403", lambda: self.api.requests["403"])
        time.sleep(1.5)
        self.assertEqual(self.api.requests["403"], 1)
        self.assertEqual(f.ask("uid " + p["metadata"]["uid"])["top"], "")
        self.assertFalse(f.status()["failing"])

    # -- what goes wrong --

    def failing(self, status, **more):
        """Everything is answered with a status for a while; the agent says so and recovers."""
        kept = self.add(1)
        f = self.begin()
        self.api.status = status
        for k, v in more.items():
            setattr(self.api, k, v)
        self.api.watch_seconds = 0.1
        self.api.compact()
        f.wait(f"a failure {status}", lambda: f.status()["failing"] and str(status) in f.status()["error"])
        self.assertTrue(f.ask("uid " + kept["metadata"]["uid"]), "what was known is forgotten")
        before = self.api.requests[str(status)]
        time.sleep(1)
        self.assertLess(self.api.requests[str(status)] - before, 8, "it does not wait between tries")
        self.api.status = None
        self.knows(self.add(2), 25)
        self.assertFalse(f.status()["failing"])
        return before

    def test_500(self):
        self.failing(500)

    def test_503(self):
        self.failing(503)

    def test_429_names_a_time(self):
        f = self.begin()
        self.api.retry_after = 5
        self.api.status = 429
        self.api.watch_seconds = 0.1
        self.add(1)
        f.wait("429", lambda: self.api.requests["429"] >= 1)
        time.sleep(1.5)
        self.assertEqual(self.api.requests["429"], 1)
        self.api.status = None
        self.knows(self.add(2))

    def test_403_is_not_hammered(self):
        self.api.status = 403
        f = self.begin(synced=False)
        f.wait("403", lambda: self.api.requests["403"])
        time.sleep(2)
        self.assertEqual(self.api.requests["403"], 1)
        self.assertIn("403", f.status()["error"])

    def test_token_rotation(self):
        """The server takes the old token no more: the file has another."""
        f = self.begin()
        f.write_token("token-2")
        self.api.tokens = {"token-2"}
        self.api.stop()
        self.api.start()
        self.knows(self.add(1))
        self.assertEqual(self.api.requests["401"], 0)

    def test_token_late(self):
        """401 until the new token is there."""
        f = self.begin()
        self.api.tokens = {"token-3"}
        self.api.stop()
        self.api.start()
        f.wait("401", lambda: self.api.requests["401"] >= 2)
        f.write_token("token-3")
        self.knows(self.add(1))

    def test_no_token(self):
        f = self.begin(synced=False, token=None)
        f.wait("401", lambda: self.api.requests["401"])
        f.write_token("token-1")
        f.wait("the list", lambda: f.status()["synced"])

    def test_expired(self):
        """410 for the watch's version: a new list, of the store itself."""
        gone = self.add(1)
        f = self.begin()
        self.api.stop()
        self.api.emit("DELETED", gone)
        new = self.add(2)
        self.api.compact()
        self.api.start()
        self.knows(new)
        f.wait("the deletion", lambda: f.ask("uid " + gone["metadata"]["uid"])["deleted"])
        self.assertEqual(self.api.requests["list from store"], 1)
        self.assertEqual(self.api.requests["410"], 1)

    def test_expired_inside_the_watch(self):
        f = self.begin()
        self.api.compact()
        self.api.error_event = 410
        f.wait("another list", lambda: f.status()["lists"] == 2)
        self.knows(self.add(1))

    def test_error_inside_the_watch(self):
        f = self.begin()
        self.api.error_event = 500
        f.wait("the error", lambda: f.status()["failures"] == 1)
        self.assertIn("500", f.status()["error"])
        self.knows(self.add(1))
        self.assertEqual(f.status()["lists"], 1)

    def test_watches_end(self):
        """Many short watches, nothing lost between them, and no new lists."""
        self.api.watch_seconds = 0.3
        f = self.begin()
        for i in range(1, 30):
            self.add(i)
            time.sleep(0.05)
        self.knows(self.add(30))
        f.wait("all", lambda: f.status()["pods"] == 30)
        self.assertEqual(f.status()["lists"], 1)
        self.assertGreater(self.api.requests["watch"], 3)

    def test_cut_watch(self):
        f = self.begin()
        self.api.cut_after = 200
        p = self.add(1)
        f.wait("a cut", lambda: f.status()["failures"] >= 1)
        self.api.cut_after = None
        self.knows(p)
        self.assertEqual(f.status()["lists"], 1)

    def test_cut_list(self):
        for i in range(1, 50):
            self.add(i)
        self.api.cut_after = 5000
        f = self.begin(synced=False)
        f.wait("failures", lambda: f.status()["failures"] >= 2)
        self.assertFalse(f.status()["synced"])
        self.api.cut_after = None
        f.wait("the list", lambda: f.status()["synced"])
        self.assertEqual(f.status()["pods"], 49)

    def test_slow(self):
        """Byte by byte is slow, not wrong; nothing else waits for it."""
        for i in range(1, 6):
            self.add(i)
        self.api.trickle = 0.01
        f = self.begin(synced=False)
        for _ in range(20):
            before = time.monotonic()
            f.status()
            self.assertLess(time.monotonic() - before, 1 * SLOW)
        f.wait("the slow list", lambda: f.status()["synced"], 20)
        self.assertEqual(f.status()["pods"], 5)

    def test_gone_and_back(self):
        f = self.begin()
        self.api.stop()
        f.wait("it to be noticed", lambda: f.status()["failing"] >= 2)
        p = self.add(1)
        self.api.start()
        self.knows(p, 15)
        self.assertEqual(f.status()["lists"], 1)

    def test_silence(self):
        """A server that takes requests and says nothing: the loop goes on, the end is clean."""
        self.api.hang = True
        f = self.begin(synced=False)
        f.wait("the request", lambda: self.api.requests["hang"])
        self.assertFalse(f.status()["synced"])

    def test_garbage(self):
        for body in (b"<html>", b"[]", b"{", b'{"items":[{]}', b'{"items":7}', b"\x00\xff", b'{"items":[1,"x",null]}',
                     b'{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{}},{"metadata":7}]}'):
            with self.subTest(body=body):
                self.api.garbage = body
                seen = self.api.requests["garbage"]
                f = self.begin(synced=False)
                f.wait("the answer", lambda: self.api.requests["garbage"] > seen)
                self.assertEqual(f.status()["pods"], 0)
                f.close()
                self.follow = None
                self.api.garbage = None

    def test_huge_object(self):
        """One object of 3 MB costs itself, in a list and in a watch."""
        huge = self.add(1)
        huge["spec"]["containers"][0]["env"] = [{"name": "X", "value": "x" * (3 << 20)}]
        self.api.emit("MODIFIED", huge)
        small = self.add(2)
        f = self.begin()
        self.assertEqual((f.status()["pods"], f.status()["too_big"]), (1, 1))
        self.api.emit("MODIFIED", huge)
        self.knows(self.add(3))
        self.assertEqual((f.status()["pods"], f.status()["too_big"]), (2, 2))
        self.assertTrue(f.ask("uid " + small["metadata"]["uid"]))
        self.assertLess(f.status()["heap"], 8 << 20)

    def test_wrong_authority(self):
        other = tempfile.TemporaryDirectory(prefix="rs-k8s-")
        ca, _, _ = fakeapi.certificate(other.name)
        f = self.begin("--k8s-source", "api", "--k8s-api", self.api.url(), "--k8s-ca", ca, synced=False)
        f.wait("the refusal", lambda: f.status()["failing"])
        self.assertIn("certificate", f.status()["error"])
        self.assertEqual(self.api.seen_tokens, [], "a token went to a stranger")
        other.cleanup()

    def test_no_token_in_clear(self):
        heads = []
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(20 * SLOW)
            f = self.begin("--k8s-source", "api", "--k8s-api", f"http://127.0.0.1:{server.getsockname()[1]}", synced=False)
            connection = server.accept()[0]
            with connection:
                while b"\r\n\r\n" not in b"".join(heads):
                    heads.append(connection.recv(4096))
        self.assertIn(b"GET /api/v1/pods", b"".join(heads))
        self.assertNotIn(b"token-1", b"".join(heads))
        f.wait("the failure", lambda: f.status()["failing"])

    def test_full(self):
        for i in range(1, 40):
            self.add(i)
        f = self.begin("--k8s-source", "api", "--k8s-api", self.api.url(), "--k8s-max-pods", "16")
        self.assertEqual((f.status()["pods"], f.status()["no_room"]), (16, 23))

    # -- kubelet --

    def test_kubelet(self):
        for p in fakeapi.recorded("kubelet-pods.json")["items"]:
            self.api.emit("ADDED", p)
        f = self.begin("--k8s-source", "kubelet", "--k8s-kubelet", self.api.url())
        self.assertEqual(f.status()["pods"], 9)
        p = self.add(1)
        # Asked for, it is found sooner than the next poll.
        f.wait("the pod", lambda: f.ask("hurry") or f.ask("uid " + p["metadata"]["uid"]), 5)
        self.api.emit("DELETED", p)
        f.wait("the end", lambda: f.ask("hurry") or f.ask("uid " + p["metadata"]["uid"])["deleted"], 5)
        self.api.stop()
        f.wait("the failure", lambda: f.ask("hurry") or f.status()["failing"], 15)
        self.api.start()
        p = self.add(2)
        self.knows(p, 20)


    def test_kubelet_garbage(self):
        """What is no list says nothing of pods: those that are known stay."""
        for p in fakeapi.recorded("kubelet-pods.json")["items"]:
            self.api.emit("ADDED", p)
        f = self.begin("--k8s-source", "kubelet", "--k8s-kubelet", self.api.url())
        for body in (b"<html>", b"", b"7", b"{}", b'{"items":7}', b'{"kind":"Status"}', b'{"items":[{}'):
            with self.subTest(body=body[:40]):
                self.api.garbage = body
                f.wait("the failure", lambda: f.ask("hurry") or f.status()["failing"], 15)
                self.assertEqual(f.status()["pods"], 9)
                self.assertFalse(f.ask("uid " + p["metadata"]["uid"])["deleted"])
                self.api.garbage = None
                f.wait("the list", lambda: f.ask("hurry") or not f.status()["failing"], 40)
        self.api.garbage = b'{"metadata":{},"items":null}'
        f.wait("that there are none", lambda: f.ask("hurry") or f.ask("uid " + p["metadata"]["uid"])["deleted"], 15)


class Much(Base):
    def test_churn(self):
        """1,000 pods, 50 of them made anew each second, the server gone once: what is known of a pod when its process
        has its first span, or while that waits (--k8s-wait)."""
        seconds, rate = 10, 50
        start_s = 0.23  # the soonest a process was seen to start after its pod was made
        wait_s = 1.0  # what is known by then is told; what must be known in the end has time
        pods = collections_of(1000)
        for p in pods:
            self.api.emit("ADDED", p)
        f = self.begin()
        self.assertEqual(f.status()["pods"], 1000)
        heap = f.status()["heap"]
        n, at_once, soon, right, asked, due = 1000, 0, 0, 0, 0, []
        rng = random.Random(7)
        begin = time.monotonic()
        for step in range(seconds * rate):
            time.sleep(max(0, begin + step / rate - time.monotonic()))
            i = rng.randrange(len(pods))
            old = pods[i]
            self.api.emit("DELETED", old)
            n += 1
            # The address is free again: the next pod may get it at once.
            pods[i] = pod(n, ip=old["status"]["podIP"], app=f"app{n % 7}")
            self.api.emit("ADDED", pods[i])
            due.append((time.monotonic() + start_s, 0, pods[i]))
            if step == seconds * rate // 2:
                self.api.stop()     # and once the server is gone for a moment
                self.api.start()
            while due and due[0][0] <= time.monotonic():
                at, waited, p = due.pop(0)
                by_uid, by_ip = f.ask("uid " + p["metadata"]["uid"]), f.ask("ip " + p["status"]["podIP"])
                if not by_uid and waited < 10 * SLOW:
                    due.append((at + 0.1, waited + 0.1, p))
                    due.sort(key=lambda x: x[0])
                    continue
                asked += 1
                gone = p not in pods
                ok = (by_uid.get("name") == p["metadata"]["name"] and by_uid["app"] == p["metadata"]["labels"]["app"]
                      and by_uid["owner"] == "web-5d" and (gone or by_ip.get("uid") == p["metadata"]["uid"]))
                right += ok
                at_once += ok and not waited
                soon += ok and waited <= wait_s
        f.wait("the last changes", lambda: f.status()["deleted"] == n - 1000)
        s = f.status()
        print(f"churn: {asked} pods asked for {start_s} s after they were made: {100 * at_once / asked:.2f} % right at "
              f"once, {100 * soon / asked:.2f} % within {wait_s} s, {100 * right / asked:.2f} % in the end; "
              f"{s['pods']} living, {s['deleted']} deleted kept, lists {s['lists']}, "
              f"heap {heap / 1e6:.1f} -> {s['heap'] / 1e6:.1f} MB, RSS {s['rss'] / 1e6:.0f} MB", file=sys.stderr)
        self.assertEqual(s["pods"], 1000)
        self.assertGreaterEqual(right / asked, 0.999)
        # Old and new ones alike.
        self.assertLess(s["heap"], n * 4096 + (4 << 20))
        self.assertEqual(s["lists"], 1)


def collections_of(n):
    return [pod(i, ip=f"10.1.{i // 250}.{i % 250}") for i in range(n)]


def main():
    global FOLLOW
    FOLLOW = os.path.abspath(sys.argv[1])
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    with tempfile.TemporaryDirectory(prefix="rs-k8s-") as keys:
        Base.certificates = fakeapi.certificate(keys)
        return suite.run(suite.cases(*(t for case in (Follows, Much) for t in load(case))), sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
