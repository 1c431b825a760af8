#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The image and the chart on a real one-node Kubernetes: check_k8s.py NODE_TOOL IMAGE.tar APP.

NODE_TOOL starts and ends the node (k8s-node up|down|load-image|kubectl DIR …). Its API is 1.20: what newer ones know is
left out by the chart. One node a machine: a lock is taken. Root.
"""
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import tools  # first: it says where suite is
from suite import Failure, expect, wait_until
from tools import CHART, TOP, run

NODE, IMAGE, APP = (os.path.abspath(a) for a in sys.argv[1:4])
DIR = tempfile.mkdtemp(prefix="rs-k8s-")
WAIT = 120
KUBE = "1.20.2"
CAPS = {"DAC_READ_SEARCH": 2, "SYS_PTRACE": 19, "PERFMON": 38, "BPF": 39}
VALUES = {
    "image": {"repository": "localhost/ringspan", "tag": "check", "pullPolicy": "Never"},
    # One port: what else this machine does would make the log roll over.
    "config": {"export": {"exporter": "stdout"}, "discovery": {"port": [8080]}},
    "podLabels": {"check": "yes"},
}
SHOP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop-api, labels: {app: shop}}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - {name: web, image: "localhost/app:check", imagePullPolicy: Never, command: [/app, serve, "8080"]}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: asker}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - {name: ask, image: "localhost/app:check", imagePullPolicy: Never, command: [/app, ask, "%s", "8080", "25", "/orders"]}
"""


def kubectl(*args, stdin=None):
    done = subprocess.run([NODE, "kubectl", DIR, *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=WAIT)
    if done.returncode:
        raise Failure(f"kubectl {' '.join(args[:4])}: {done.stderr.strip()[-600:]}")
    return done.stdout


def wait(what, probe):
    return wait_until(what, probe, WAIT, lambda: f"\n{kubectl('get', 'pods', '-A', '-o', 'wide')}"
                                                       f"{kubectl('get', 'events', '-A')[-1500:]}")


def pods(namespace, label):
    return json.loads(kubectl("-n", namespace, "get", "pods", "-l", label, "-o", "json"))["items"]


def ready(pod):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def render(*args, values=None):
    helm, _ = tools.tools()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(values or {}, f)
        f.flush()
        return run(helm, "template", "ringspan", CHART, "-n", "ringspan", "--kube-version", KUBE, "-f", f.name, *args)


def spans(agent):
    """(resource, span) of all spans that the agent's log has."""
    for line in kubectl("-n", "ringspan", "logs", agent).splitlines(keepends=True):
        if not line.startswith("{") or not line.endswith("\n"):  # the last one may be half written
            continue
        for rs in json.loads(line)["resourceSpans"]:
            resource = {a["key"]: next(iter(a["value"].values())) for a in rs["resource"]["attributes"]}
            for ss in rs["scopeSpans"]:
                for span in ss["spans"]:
                    yield resource, span


def log(agent):
    """What the agent says, and its counters of what is not there."""
    said = [line for line in kubectl("-n", "ringspan", "logs", agent).splitlines() if not line.startswith("{")]
    rows = json.loads(kubectl("-n", "ringspan", "exec", agent, "--", "ringspan", "status", "--json"))
    return "\n".join(said[-20:]) + "\n" + str([(r["stage"], r["name"], r["value"]) for r in rows["ledger"] if r["value"]]) + str(
        {k: rows[k] for k in ("rights", "kubernetes") if k in rows})


def attributes(span):
    return {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}


def start():
    subprocess.run([NODE, "up", DIR], check=True, timeout=300, stdout=subprocess.DEVNULL)
    subprocess.run([NODE, "load-image", DIR, IMAGE], check=True, timeout=120, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as d:
        os.mkdir(d + "/root")
        shutil.copy(APP, d + "/root/app")
        run(TOP + "/deploy/image/oci", d + "/app.tar", "localhost/app:check", d + "/root", "check")
        subprocess.run([NODE, "load-image", DIR, d + "/app.tar"], check=True, timeout=60, stdout=subprocess.DEVNULL)
    kubectl("create", "namespace", "ringspan")
    kubectl("create", "namespace", "observability")


def manifests_are_taken_by_the_api_server():
    """Every profile, by the server's own dry run: unknown fields, wrong types, and what does not fit together."""
    _, kubectl_new = tools.tools()
    for kernel in ("6.6", "5.11", "5.10"):
        text = render("--set", f"kernel={kernel}", "--set", "injection=true,spool.enabled=true")
        kubectl("apply", "--dry-run=server", "--validate=true", "-f", "-", stdin=text)
    for example in ("otel-gateway", "datadog"):
        text = render("-f", f"{TOP}/deploy/examples/{example}/values.yaml")
        kubectl("apply", "--dry-run=server", "--validate=true", "-f", "-", stdin=text)
    gateway = run(kubectl_new, "kustomize", f"{TOP}/deploy/examples/otel-gateway")
    kubectl("apply", "--dry-run=server", "--validate=true", "-f", "-", stdin=gateway)
    base = run(kubectl_new, "kustomize", f"{TOP}/deploy/kubernetes/before-1.30")
    kubectl("apply", "--dry-run=server", "--validate=true", "-f", "-", stdin=base)


def running_agent():
    """The name of the agent's pod, with VALUES."""
    kubectl("apply", "-f", "-", stdin=render(values=VALUES))
    kubectl("-n", "ringspan", "rollout", "status", "daemonset/ringspan", f"--timeout={WAIT - 10}s")
    return wait("the DaemonSet", lambda: [p for p in pods("ringspan", "check=yes") if ready(p)])[0]["metadata"]["name"]


def daemonset_becomes_ready():
    agent = running_agent()
    text = kubectl("-n", "ringspan", "exec", agent, "--", "ringspan", "status")
    expect("capturing" in text, text)
    status = json.loads(kubectl("-n", "ringspan", "exec", agent, "--", "ringspan", "status", "--json"))
    rights = status["rights"]
    expect(rights["no_new_privs"] and rights["seccomp"] and not rights["refused_calls"], rights)
    with open(f"/proc/{status['pid']}/status", encoding="utf-8") as f:
        proc = dict(line.split(":\t") for line in f.read().splitlines() if ":\t" in line)
    want = f"{sum(1 << c for c in CAPS.values()):016x}"
    expect(proc["CapEff"] == proc["CapPrm"] == proc["CapBnd"] == want, {k: v for k, v in proc.items() if "Cap" in k})


def requests_come_out_with_their_names():
    agent = running_agent()
    kubectl("delete", "job", "asker", "--ignore-not-found")
    kubectl("apply", "-f", "-", stdin=SHOP)
    servers = wait("the Deployment", lambda: (lambda l: len(l) == 2 and all(map(ready, l)) and l)(pods("default", "app=shop")))
    target = servers[0]
    kubectl("apply", "-f", "-", stdin=JOB % target["status"]["podIP"])
    asker = wait("the Job", lambda: [p for p in pods("default", "job-name=asker") if p["status"]["phase"] == "Succeeded"])[0]

    def seen():
        got = [(r, s) for r, s in spans(agent) if attributes(s).get("url.path") == "/orders" or
               attributes(s).get("url.full", "").endswith("/orders")]
        return got if len(got) >= 50 else None

    got = wait("50 spans", seen)
    expect(len(got) == 50, f"{len(got)} spans")
    for pod, kind, container, service, more in (
            (target, 2, "web", "shop-api", {"k8s.deployment.name": "shop-api"}),
            (asker, 3, "ask", "asker", {"k8s.job.name": "asker"})):
        mine = [r for r, s in got if s["kind"] == kind]
        want = {"k8s.pod.name": pod["metadata"]["name"], "k8s.pod.uid": pod["metadata"]["uid"],
                "k8s.namespace.name": "default", "k8s.node.name": "testnode", "k8s.container.name": container,
                "container.id": pod["status"]["containerStatuses"][0]["containerID"].split("//")[1],
                "service.name": service, **more}
        expect(len(mine) == 25, f"{len(mine)} spans of kind {kind}")
        for resource in mine:
            wrong = {k: (resource.get(k), v) for k, v in want.items() if resource.get(k) != v}
            expect(not wrong, f"{pod['metadata']['name']}: (is, should be): {wrong}\n{resource}\n{log(agent)}")
    text = kubectl("-n", "ringspan", "exec", agent, "--", "ringspan", "status", "--service", "shop-api")
    expect("shop-api" in text, text)
    # By its pod while one of its processes, which live as long as a connection, is there.
    with subprocess.Popen([NODE, "kubectl", DIR, "exec", target["metadata"]["name"], "--", "/app", "ask", "127.0.0.1", "8080",
                           "100000000", "/again"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, start_new_session=True) as busy:
        wait("the pod in status", lambda: "shop-api" in kubectl("-n", "ringspan", "exec", agent, "--", "ringspan", "status",
                                                                "--pod", target["metadata"]["name"]))
        kubectl("delete", "deployment", "shop-api")
        os.killpg(busy.pid, signal.SIGTERM)


def report_is_made_in_the_pod():
    agent = running_agent()
    out = kubectl("-n", "ringspan", "exec", agent, "--", "ringspan", "bugreport", "-o", "/tmp/r.tar.gz")
    expect(out.strip() == "/tmp/r.tar.gz", out)


def new_configuration_is_a_rolling_update():
    before = running_agent()
    values = {**VALUES, "config": {"export": {"exporter": "stdout"}, "discovery": {"port": [8081]}}}
    kubectl("apply", "-f", "-", stdin=render(values=values))
    wait("the new pod", lambda: [p for p in pods("ringspan", "check=yes")
                                 if p["metadata"]["name"] != before and ready(p)])


def main():
    cases = [manifests_are_taken_by_the_api_server, daemonset_becomes_ready, requests_come_out_with_their_names,
             report_is_made_in_the_pod, new_configuration_is_a_rolling_update]
    with open("/tmp/k8s-node.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            start()
            return tools.main(cases, sys.argv[4:])
        finally:
            subprocess.run([NODE, "down", DIR], check=False, timeout=60)
            shutil.rmtree(DIR, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
