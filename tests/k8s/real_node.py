#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent on a real one-node Kubernetes: what its spans say of a Deployment, a StatefulSet, a DaemonSet, a Job, a
static pod, by the API server with the rights of a service account, by kubelet, and with no API.

RINGSPAN_K8S_NODE is the folder of the tool that makes the node: k8s-node up DIR, kubectl DIR …, load-image DIR FILE,
exec DIR …, down DIR; and of mkoci OUT.tar NAME:TAG ROOT ENTRYPOINT. Root. One node per machine: waits for its lock.
"""
import base64
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.environ.get("RINGSPAN_K8S_NODE", "") and os.path.join(os.environ["RINGSPAN_K8S_NODE"], "k8s-node")
RINGSPAN = os.environ.get("RINGSPAN", os.path.join(TOP, "build", "ringspan"))
LOCK = "/tmp/k8s-node.lock"
HTTPD = '[/bin/busybox, httpd, -f, -p, "8080", -h, /www]'

POD = """
    metadata:
      labels: {app: NAME, team: blue}
      annotations: {note: "of NAME"}
    spec:
      terminationGracePeriodSeconds: 1
      restartPolicy: RESTART
      containers: [{name: srv, image: "localhost/bb:1", imagePullPolicy: Never, command: HTTPD}]
"""
SELECTOR = "selector: {matchLabels: {app: NAME}}\n  template:" + POD


def manifest(kind, name, spec, api="apps/v1", restart="Always"):
    return (f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n  " + spec + "---\n").replace(
        "NAME", name).replace("HTTPD", HTTPD).replace("RESTART", restart)


WORKLOADS = (
    manifest("Deployment", "web", "replicas: 2\n  " + SELECTOR)
    + manifest("StatefulSet", "db", "serviceName: db\n  " + SELECTOR)
    + manifest("DaemonSet", "each", SELECTOR)
    + manifest("Job", "once", "template:" + POD, api="batch/v1", restart="Never")
    + """
apiVersion: v1
kind: Pod
metadata:
  name: named
  labels: {app: named, app.kubernetes.io/instance: shop-instance, app.kubernetes.io/version: "7.1"}
  annotations: {resource.opentelemetry.io/deployment.environment.name: test}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: srv, image: "localhost/bb:1", imagePullPolicy: Never, command: HTTPD}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: ringspan}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ringspan}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ringspan}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ringspan}
subjects: [{kind: ServiceAccount, name: ringspan, namespace: default}]
""".replace("HTTPD", HTTPD))
STATIC = """
apiVersion: v1
kind: Pod
metadata: {name: still, namespace: kube-system}
spec:
  containers: [{name: srv, image: "localhost/bb:1", imagePullPolicy: Never, command: HTTPD}]
""".replace("HTTPD", HTTPD)

passed = failed = 0


def check(what, got, want):
    global passed, failed
    wrong = {k: (got.get(k), v) for k, v in want.items() if (got.get(k) or None) != v}
    if wrong:
        failed += 1
        print(f"FAILED  {what}: " + ", ".join(f"{k} is {g!r}, not {w!r}" for k, (g, w) in wrong.items()))
    else:
        passed += 1
        print(f"ok      {what}")


class Node:
    def __init__(self, directory):
        self.dir = directory

    def tool(self, *args, text=None, ok=True):
        done = subprocess.run([TOOL, args[0], self.dir, *args[1:]], input=text, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if ok and done.returncode:
            raise SystemExit(f"{args}: {done.stderr[-1500:]}")
        return done.stdout

    def kubectl(self, *args, text=None, ok=True):
        return self.tool("kubectl", *args, text=text, ok=ok)

    def pods(self):
        return json.loads(self.kubectl("get", "pods", "-A", "-o", "json"))["items"]


def image(work):
    root = os.path.join(work, "image")
    for d in ("bin", "www", "tmp", "proc", "sys", "etc"):
        os.makedirs(os.path.join(root, d))
    busybox = shutil.which("busybox")
    shutil.copy(busybox, os.path.join(root, "bin/busybox"))
    os.symlink("busybox", os.path.join(root, "bin/sh"))
    with open(os.path.join(root, "www/index.html"), "w") as f:
        f.write("hello\n")
    out = os.path.join(work, "bb.tar")
    subprocess.run([os.path.join(os.path.dirname(TOOL), "mkoci"), out, "localhost/bb:1", root, "/bin/busybox"],
                   check=True, stdout=subprocess.DEVNULL)
    return out


def spans_of(node, work, name, pods, *args):
    """The agent in the node, one request to each pod: pod's uid -> resource of the server's span."""
    out, err, sock = (os.path.join(work, name + e) for e in (".json", ".err", ".sock"))
    agent = subprocess.Popen([TOOL, "exec", node.dir, RINGSPAN, "trace", "--format", "json", "-o", out, "--socket", sock,
                              "--port", "8080", "--host-root", "/", *args], stderr=open(err, "w"), start_new_session=True)
    end = time.monotonic() + 30
    while "capturing" not in open(err).read():
        if time.monotonic() > end or agent.poll() is not None:
            raise SystemExit(f"the agent did not start: {open(err).read()}")
        time.sleep(0.05)
    for p in pods:
        ip = p["status"]["podIP"]
        node.tool("exec", "curl", "-s", "-m", "5", f"http://{ip}:8080/?{p['metadata']['name']}")
    time.sleep(1.5)
    status = json.loads(node.tool("exec", RINGSPAN, "status", "--json", "--socket", sock))
    os.killpg(agent.pid, signal.SIGTERM)  # the tool runs it as a child
    agent.wait(20)
    resources = {}
    for line in open(out):
        s = json.loads(line)
        if s["kind"] == "server" and "url.query" in s["attributes"]:
            resources[s["attributes"]["url.query"]] = s["resource"]
    return resources, status


def main():
    if not TOOL:
        print("skipped: RINGSPAN_K8S_NODE does not name the folder of a tool that makes a node")
        print("0 passed, 0 failed, 1 skipped")
        return
    lock = open(LOCK, "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    work = tempfile.mkdtemp(prefix="rs-node-", dir="/tmp")
    node = Node(os.path.join(work, "n"))
    try:
        run(node, work)
    finally:
        subprocess.run([TOOL, "down", node.dir], stdout=subprocess.DEVNULL)
        if "RS_KEEP" not in os.environ:
            shutil.rmtree(work, ignore_errors=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


def run(node, work):
    node.tool("up")
    node.tool("load-image", image(work))
    node.kubectl("apply", "-f", "-", text=WORKLOADS)
    os.makedirs(os.path.join(node.dir, "manifests"), exist_ok=True)
    with open(os.path.join(node.dir, "manifests", "still.yaml"), "w") as f:
        f.write(STATIC)
    end = time.monotonic() + 60
    while True:
        pods = [p for p in node.pods() if any(c["name"] == "srv" for c in p["spec"]["containers"])]
        if len(pods) == 7 and all(c["ready"] for p in pods for c in p["status"].get("containerStatuses", [{"ready": False}])):
            break
        if time.monotonic() > end:
            raise SystemExit(f"pods do not run: {[(p['metadata']['name'], p['status']['phase']) for p in pods]}")
        time.sleep(0.5)
    by_app = {}
    for p in pods:
        name = p["metadata"]["name"]
        by_app[name if name == "still-testnode" else p["metadata"]["labels"]["app"]] = p
    secret = json.loads(node.kubectl("get", "sa", "ringspan", "-o", "json"))["secrets"][0]["name"]
    token = os.path.join(work, "token")
    with open(token, "w") as f:
        f.write(base64.b64decode(json.loads(node.kubectl("get", "secret", secret, "-o", "json"))["data"]["token"]).decode())
    ca = os.path.join(node.dir, "pki", "ca.crt")
    owners = {k: (p["metadata"].get("ownerReferences") or [{}])[0] for k, p in by_app.items()}

    def common(p):
        m = p["metadata"]
        c = p["status"]["containerStatuses"][0]
        return {"k8s.pod.name": m["name"], "k8s.pod.uid": m["uid"], "k8s.namespace.name": m["namespace"],
                "k8s.node.name": "testnode", "k8s.container.name": "srv", "k8s.pod.ip": p["status"]["podIP"],
                "container.id": c["containerID"].split("//")[1], "container.image.name": "localhost/bb",
                "service.namespace": m["namespace"], "service.instance.id": f"{m['namespace']}.{m['name']}.srv"}

    got, status = spans_of(node, work, "api", pods, "--k8s-source", "api", "--k8s-api", "https://127.0.0.1:443",
                           "--k8s-ca", ca, "--k8s-token", token, "--k8s-node", "testnode", "--k8s-labels", "team",
                           "--k8s-annotations", "note")
    k = status["kubernetes"]
    check("status", {"source": k["source"], "synced": k["synced"], "failing": k["failing"], "pods": k["pods"] >= 7},
          {"source": "api", "synced": True, "failing": None, "pods": True})
    want = {
        "web": {"service.name": "web", "k8s.deployment.name": "web", "k8s.replicaset.name": owners["web"].get("name"),
                "k8s.replicaset.uid": owners["web"].get("uid"), "k8s.pod.label.team": "blue",
                "k8s.pod.annotation.note": "of web", "service.version": "1"},
        "db": {"service.name": "db", "k8s.statefulset.name": "db", "k8s.statefulset.uid": owners["db"].get("uid")},
        "each": {"service.name": "each", "k8s.daemonset.name": "each", "k8s.daemonset.uid": owners["each"].get("uid")},
        "once": {"service.name": "once", "k8s.job.name": "once", "k8s.job.uid": owners["once"].get("uid"),
                 "k8s.cronjob.name": None},
        "named": {"service.name": "shop-instance", "service.version": "7.1", "deployment.environment.name": "test"},
        "still-testnode": {"service.name": "still-testnode", "k8s.daemonset.name": None},
    }
    for p in pods:
        name = p["metadata"]["name"]
        app = name if name == "still-testnode" else p["metadata"]["labels"]["app"]
        owner = (p["metadata"].get("ownerReferences") or [{}])[0]
        expect = {**common(p), **want[app]}
        if app == "web":
            expect["k8s.replicaset.name"], expect["k8s.replicaset.uid"] = owner["name"], owner["uid"]
        check(f"API: {name}", got.get(name, {}), expect)

    got, status = spans_of(node, work, "kubelet", pods, "--k8s-source", "kubelet", "--k8s-kubelet", "http://127.0.0.1:10255",
                           "--k8s-node", "testnode")
    check("kubelet: status", status["kubernetes"], {"source": "kubelet", "synced": True})
    name = by_app["web"]["metadata"]["name"]
    check(f"kubelet: {name}", got.get(name, {}), {**common(by_app["web"]), "service.name": "web", "k8s.deployment.name": "web"})
    static = by_app["still-testnode"]
    check("kubelet: static pod", got.get("still-testnode", {}),
          {**common(static), "service.name": "still-testnode",
           "k8s.pod.uid": static["metadata"]["annotations"]["kubernetes.io/config.mirror"]})

    got, status = spans_of(node, work, "none", pods, "--k8s-source", "off", "--k8s-node", "testnode")
    for app in ("web", "db"):
        p = by_app[app]
        expect = {**common(p), "service.name": "srv", "service.version": "1"}
        del expect["k8s.pod.ip"]
        check(f"no API: {p['metadata']['name']}", got.get(p["metadata"]["name"], {}), expect)


if __name__ == "__main__":
    main()
