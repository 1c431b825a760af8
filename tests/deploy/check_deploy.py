#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is shipped beside the program, without a cluster: check_deploy.py [NAME…].

Chart and manifests against the published schemas, image, package, unit, examples. What needs a tool that cannot be had
here is skipped with the reason. `make check-k8s-node` runs the rest on a real Kubernetes.
"""
import gzip
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import yaml

import tools  # first: it says where suite is
import suite
from suite import expect, wait_until
from tools import CHART, HERE, TOP, Skipped, run

RINGSPAN = TOP + "/build/ringspan"
EXAMPLES = TOP + "/deploy/examples"
MODELS = "kubernetes-models@4.5.0"


def documents(text):
    return [d for d in yaml.safe_load_all(text) if d]


def template(*args, kube="1.35.0"):
    helm, _ = tools.tools()
    return run(helm, "template", "ringspan", CHART, "-n", "ringspan", "--kube-version", kube, *args)


def kustomize(path):
    _, kubectl = tools.tools()
    return run(kubectl, "kustomize", path)


def agent(docs):
    pod = next(d for d in docs if d["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    return pod, pod["containers"][0]


def models():
    place = os.path.join(tools.CACHE, "models")
    if not os.path.exists(place + "/node_modules/kubernetes-models"):
        if not shutil.which("npm"):
            raise Skipped("no npm to fetch the schemas with")
        os.makedirs(place, exist_ok=True)
        done = run("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", MODELS, cwd=place, ok=False,
                   timeout=300)
        if done.returncode:
            raise Skipped(f"the schemas cannot be fetched: {done.stderr.strip()[-200:]}")
    return place + "/node_modules"


def validate(docs):
    done = subprocess.run(["node", HERE + "/schema.js", models()], input=json.dumps(docs), capture_output=True, text=True)
    return done.stdout.strip().split("\n") if done.returncode else []


def schemas_reject_what_is_wrong():
    """The check itself: an unknown field, a wrong type, a missing field."""
    good = documents(template())
    expect(validate(good) == [], validate(good))
    for change, word in ((lambda c: c.update(imagePullPolice="x"), "unknown field"),
                         (lambda c: c["securityContext"].update(runAsUser="root"), "integer"),
                         (lambda c: c.pop("name"), "name")):
        docs = documents(template())
        change(agent(docs)[1])
        expect(any(word in fault for fault in validate(docs)), f"{word}: {validate(docs)}")


def chart_gives_valid_objects():
    helm, _ = tools.tools()
    run(helm, "lint", "--strict", CHART)
    for kernel in ("6.6", "5.11", "5.10"):
        for kube in {"6.6": ("1.20.0", "1.35.0"), "5.11": ("1.29.0",), "5.10": ("1.35.0",)}[kernel]:
            docs = documents(template("--set", f"kernel={kernel},injection=true,spool.enabled=true,priorityClassName=high",
                                      "--set", "seLinuxOptions.type=spc_t,env[0].name=A,env[0].value=b,podLabels.team=a,imagePullSecrets[0].name=s",
                                      kube=kube))
            expect(validate(docs) == [], validate(docs))
    for values in ("bogus=1", "kernel=4.19", "resources.limits.memory=much", "seLinuxOptions.typ=x", "image.pullPolicy=Sometimes"):
        done = run(helm, "template", "x", CHART, "--set", values, ok=False)
        expect(done.returncode and "schema" in done.stderr, f"{values} is taken: {done.stderr[-200:]}")


def least_privilege():
    """What the pods may do, said once more here."""
    want = ["BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH"]
    for kernel, more in (("6.6", []), ("5.11", ["SYS_ADMIN"]), ("5.10", ["SYS_ADMIN", "SYS_RESOURCE"])):
        docs = documents(template("--set", f"kernel={kernel}"))
        pod, c = agent(docs)
        s = c["securityContext"]
        expect(s["capabilities"] == {"drop": ["ALL"], "add": want + more}, s)
        expect(not s["privileged"] and not s["allowPrivilegeEscalation"] and s["readOnlyRootFilesystem"], s)
        expect(s["seccompProfile"] == {"type": "RuntimeDefault"}, s)
        expect(pod["hostPID"] and not pod.get("hostNetwork") and not pod.get("hostIPC"), pod)
        expect(not any("hostPath" in v for v in pod["volumes"]), pod["volumes"])
        role = next(d for d in docs if d["kind"] == "ClusterRole")
        expect(role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}], role)
        expect({p["httpGet"]["path"] for p in (c["livenessProbe"], c["readinessProbe"])} == {"/healthz", "/readyz"}, c)


def kustomize_is_the_chart():
    helm, _ = tools.tools()
    made = run(TOP + "/deploy/kubernetes/render", helm)
    with open(TOP + "/deploy/kubernetes/base/ringspan.yaml", encoding="utf-8") as f:
        expect(f.read() == made, "deploy/kubernetes/base/ringspan.yaml is not the chart's: make manifests HELM=…")
    for overlay, kernel in (("base", "6.6"), ("kernel-5.11", "5.11"), ("kernel-5.10", "5.10")):
        docs = documents(kustomize(f"{TOP}/deploy/kubernetes/{overlay}"))
        expect(validate(docs) == [], validate(docs))
        other = agent(documents(template("--set", f"kernel={kernel}", kube="1.30.0")))
        expect(agent(docs) == other, f"{overlay} differs from the chart with kernel={kernel}")
    docs = documents(kustomize(f"{TOP}/deploy/kubernetes/before-1.30"))
    expect(validate(docs) == [] and "appArmorProfile" not in agent(docs)[1]["securityContext"], docs)


def configs():
    """(name, text) of each ringspan configuration that is shipped."""
    yield "the sample", run(RINGSPAN, "config", "--sample")
    for path in (CHART + "/values.yaml", EXAMPLES + "/otel-gateway/values.yaml", EXAMPLES + "/datadog/values.yaml"):
        with open(path, encoding="utf-8") as f:
            yield path, yaml.safe_dump(yaml.safe_load(f)["config"])


def configurations_are_ringspans():
    for name, text in configs():
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(text)
            f.flush()
            done = run(RINGSPAN, "config", "check", f.name, ok=False)
            expect(done.returncode == 0, f"{name}: {done.stderr}")


def image_runs_alone():
    """The image's files are enough, and reproducible; the archive is what engines read."""
    with tempfile.TemporaryDirectory() as d:
        run(TOP + "/deploy/image/rootfs", RINGSPAN, d + "/root")
        first = run(TOP + "/deploy/image/oci", d + "/a.tar", "localhost/x:1", d + "/root", "1")
        run(TOP + "/deploy/image/oci", d + "/b.tar", "localhost/x:1", d + "/root", "1")
        with open(d + "/a.tar", "rb") as a, open(d + "/b.tar", "rb") as b:
            expect(a.read() == b.read(), "two builds differ")
        print(f"measured: image: {first.strip().split(', ', 1)[1]}")
        os.mkdir(d + "/layout")
        run("tar", "-xf", d + "/a.tar", "-C", d + "/layout")
        with open(d + "/layout/index.json", encoding="utf-8") as f:
            manifest = json.load(f)["manifests"][0]
        for descriptor in walk(d + "/layout", manifest):
            blob = f"{d}/layout/blobs/{descriptor['digest'].replace(':', '/')}"
            expect(os.path.getsize(blob) == descriptor["size"], descriptor)
            expect(run("sha256sum", blob).split()[0] == descriptor["digest"].split(":")[1], descriptor)
        expect(not os.path.exists(d + "/root/bin/sh"), "there is a shell")
        if os.geteuid() == 0:
            expect("ringspan " in run("chroot", d + "/root", "/usr/bin/ringspan", "version"), "it does not run")


def seccomp_profile_is_the_sandboxs():
    with open(TOP + "/deploy/seccomp/ringspan.json", encoding="utf-8") as f:
        text = f.read()
    expect(text == run(TOP + "/deploy/seccomp/render"), "deploy/seccomp/ringspan.json: make manifests")
    names = json.loads(text)["syscalls"][0]["names"]
    expect({"bpf", "execve"} <= set(names) and not {"ptrace", "mount", "init_module"} & set(names), names)


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def image_runs_in_an_engine():
    """Podman, our own seccomp profile, the capabilities of the manifest and no others, a read-only root."""
    if os.geteuid() or not shutil.which("podman") or not os.path.exists("/usr/bin/runc"):
        raise Skipped("wants root, podman and runc")
    if run(RINGSPAN, "check", ok=False).returncode:
        raise Skipped("BPF programs can not be loaded here")
    name = f"rs-deploy-{os.getpid()}"
    podman = ["podman", "--cgroup-manager=cgroupfs", "--runtime", "/usr/bin/runc"]
    with tempfile.TemporaryDirectory() as d, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        run(TOP + "/deploy/image/rootfs", RINGSPAN, d + "/root")
        run(TOP + "/deploy/image/oci", d + "/image.tar", f"localhost/{name}:1", d + "/root", "1")
        if run(*podman, "load", "-i", d + "/image.tar", ok=False).returncode:
            raise Skipped("podman does not work here")
        os.mkdir(d + "/out")
        with subprocess.Popen([*podman, "run", "--rm", "--name", name, "--pid=host", "--read-only", "--network=none",
                               "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000", "--cap-drop=all",
                               "--cap-add=BPF,PERFMON,SYS_PTRACE,DAC_READ_SEARCH", "--security-opt=no-new-privileges",
                               f"--security-opt=seccomp={TOP}/deploy/seccomp/ringspan.json", "-v", d + "/out:/out",
                               f"localhost/{name}:1", "trace", "--format", "json", "-o", "/out/spans", "--count", "2",
                               "--port", str(web.server_address[1])], stderr=subprocess.PIPE, text=True) as p:
            said = ""
            for line in p.stderr:
                said += line
                if "capturing" in line:
                    for _ in range(4):
                        with urllib.request.urlopen(f"http://127.0.0.1:{web.server_address[1]}/", timeout=10) as r:
                            r.read()
                        time.sleep(0.1)
            code = p.wait(60)
        run(*podman, "rmi", "-f", f"localhost/{name}:1", ok=False)
        web.shutdown()
        expect(code == 0 and "refused" not in said, f"exit {code}: {said[-600:]}")
        with open(d + "/out/spans", encoding="utf-8") as f:
            spans = [json.loads(line) for line in f]
        expect(len(spans) == 2 and spans[0]["attributes"]["http.response.status_code"] == 200, spans)


def walk(layout, descriptor):
    yield descriptor
    with open(f"{layout}/blobs/{descriptor['digest'].replace(':', '/')}", encoding="utf-8") as f:
        manifest = json.load(f)
    yield manifest["config"]
    yield from manifest["layers"]


def package_is_complete():
    if not shutil.which("dpkg-shlibdeps"):
        raise Skipped("no dpkg-dev")
    run("make", "-s", "-C", TOP, "deb", timeout=600)
    deb = next(f"{TOP}/build/{n}" for n in sorted(os.listdir(TOP + "/build")) if n.endswith(".deb"))
    fields = dict(l.split(": ", 1) for l in run("dpkg-deb", "-f", deb).splitlines() if not l.startswith(" "))
    expect("libbpf" in fields["Depends"] and "libseccomp2" in fields["Depends"], fields)
    files = {l.split()[-1] for l in run("dpkg-deb", "-c", deb).splitlines()}
    for path in ("./usr/bin/ringspan", "./etc/ringspan.yaml", "./usr/lib/systemd/system/ringspan.service",
                 "./usr/share/man/man1/ringspan.1.gz", "./usr/share/bash-completion/completions/ringspan",
                 "./usr/share/doc/ringspan/copyright"):
        expect(path in files, f"{path} is missing")
    with open(TOP + "/README.md", encoding="utf-8") as f:
        for page in set(re.findall(r"\(docs/(\S+\.md)\)", f.read())):
            expect(f"./usr/share/doc/ringspan/docs/{page}" in files, f"the README's docs/{page} is missing")
    with tempfile.TemporaryDirectory() as d:
        run("dpkg-deb", "-x", deb, d)
        expect("ringspan " in run(d + "/usr/bin/ringspan", "version"), "it does not run")
        run(d + "/usr/bin/ringspan", "config", "check", d + "/etc/ringspan.yaml")


def expand(group):
    """The system calls of systemd's @group."""
    for word in run("systemd-analyze", "syscall-filter", group).split("\n")[1:]:
        word = word.strip()
        if word.startswith("@"):
            yield from expand(word)
        elif word and not word.startswith("#"):
            yield word


def unit_allows_what_the_agent_calls():
    if not shutil.which("systemd-analyze"):
        raise Skipped("no systemd-analyze")
    with open(TOP + "/deploy/systemd/ringspan.service", encoding="utf-8") as f:
        words = next(line for line in f if line.startswith("SystemCallFilter=")).strip().split("=")[1].split()
    allowed = {call for w in words for call in (expand(w) if w.startswith("@") else [w])}
    with open(TOP + "/deploy/seccomp/ringspan.json", encoding="utf-8") as f:
        wanted = set(json.load(f)["syscalls"][0]["names"])
    known = set(expand("@known"))
    expect(wanted & known <= allowed, f"not allowed: {sorted(wanted & known - allowed)}")


def unit_is_hardened():
    if not shutil.which("systemd-analyze"):
        raise Skipped("no systemd-analyze")
    with tempfile.TemporaryDirectory() as d, open(TOP + "/deploy/systemd/ringspan.service", encoding="utf-8") as f:
        unit = d + "/ringspan.service"
        with open(unit, "w", encoding="utf-8") as out:
            out.write(f.read().replace("@PREFIX@/bin/ringspan", RINGSPAN))
        done = run("systemd-analyze", "verify", "--man=no", unit, ok=False)
        expect("ringspan.service" not in done.stderr, done.stderr)
        done = run("systemd-analyze", "security", "--offline=yes", "--threshold=40", unit, ok=False)
        if "Unknown option" in done.stderr or "unrecognized option" in done.stderr:
            raise Skipped("systemd-analyze is too old for --offline")
        expect(done.returncode == 0, f"more exposed than 4.0: {done.stdout.strip().splitlines()[-1:]}")


# -- the other programs ----------------------------------------------------------------------------------------------


def built(name):
    if suite.go_program(name):
        raise Skipped(suite.go_program(name))
    return f"{TOP}/build/{name}"


def free_ports(n):
    held = [socket.socket() for _ in range(n)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def wait_for(what, condition, process, log):
    def said():
        with open(log, encoding="utf-8") as f:
            return f": exit {process.poll()}: {f.read()[-800:]}"

    def met():
        expect(process.poll() is None, what + said())
        return condition()

    wait_until(what, met, 60, said)


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def script(*requests):
    """(trace id, path, status) each, one connection each, as an event script."""
    records = []
    for i, (trace, path, status) in enumerate(requests):
        base = {"conn": i + 1, "pid": 7, "tid": 7}
        head = f"GET /{path} HTTP/1.1\r\nHost: a\r\ntraceparent: 00-{trace}-00000000000000aa-01\r\n\r\n"
        records += [
            {**base, "t": 10000 * i + 1000, "type": "open", "comm": "shop", "role": "server", "family": "inet",
             "local": "10.0.0.1:80", "peer": f"10.0.0.2:{4000 + i}"},
            {**base, "t": 10000 * i + 2000, "type": "data", "dir": "in", "text": head},
            {**base, "t": 10000 * i + 5000, "type": "data", "dir": "out",
             "text": f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"}]
    return "".join(json.dumps(r) + "\n" for r in records)


def send(directory, requests, *options):
    with open(directory + "/script.jsonl", "w", encoding="utf-8") as f:
        f.write(script(*requests))
    run(RINGSPAN, "replay", f.name, "--drain-time", "30s", *options)


def flat(values, prefix=""):
    for key, value in values.items():
        yield from flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(prefix + key, value)]


class DatadogAgent:
    """The Datadog agent's own code with a configuration (tests/deploy/traceagent): what it made of it, what it sent."""

    def __init__(self, config, directory, **env):
        self.log = directory + "/agent.log"
        self.out = directory + "/agent.out"
        with open(self.log, "w", encoding="utf-8") as log, open(self.out, "w", encoding="utf-8") as out:
            clean = {k: v for k, v in os.environ.items() if not k.startswith("DD_")}
            self.process = subprocess.Popen([built("traceagent"), config], stdout=out, stderr=log, env={**clean, **env})

    def said(self):
        with open(self.out, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.endswith("\n")]

    def __enter__(self):
        wait_for("the Datadog agent's first words", self.said, self.process, self.log)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)


def datadog_agent_takes_it():
    """The Datadog agent's configuration package understands all of the file; its trace agent, started by it, takes spans in
    each version of its protocol, over TCP and the socket, and sends them on. Only place and port are the test's."""
    example = EXAMPLES + "/datadog/datadog.yaml"
    with open(example, encoding="utf-8") as f:
        asked = yaml.safe_load(f)
    port, = free_ports(1)
    with tempfile.TemporaryDirectory() as d:
        with DatadogAgent(example, d, DD_APM_RECEIVER_PORT=str(port), DD_APM_RECEIVER_SOCKET=d + "/apm.socket") as agent:
            config = agent.said()[0]
            expect("apm_config.receiver_prot" not in config, "the agent says that it knows anything")
            for key, value in flat(asked):
                expect(key in config, f"{key} is no key of the agent's")
                expect(key.startswith("apm_config.receiver_") or config[key] == value, f"{key}: {config[key]}, not {value}")
            wait_for("the trace agent", lambda: listens(port) and os.path.exists(d + "/apm.socket"),
                     agent.process, agent.log)
            wanted = {}
            for place in (f"http://127.0.0.1:{port}", f"unix://{d}/apm.socket"):
                for version in ("0.4", "0.5", "1.0"):
                    trace = len(wanted) + 1
                    wanted[str(trace)] = f"/v{trace}"
                    send(d, [(f"{trace:032x}", f"v{trace}", 500)], "--exporter", "datadog", "--dd-url", place,
                         "--dd-protocol", version)
            wait_for("all of them", lambda: len(agent.said()) > len(wanted), agent.process, agent.log)
            spans = agent.said()[1:]
            expect({s["trace_id"]: s["meta"]["url.path"] for s in spans} == wanted, spans)
            expect(all(s["key"] == asked["api_key"] and s["error"] == 1 and s["service"] == "shop" for s in spans), spans)


DATADOG_VALUES = {  # https://github.com/DataDog/helm-charts: charts/datadog/values.yaml
    "datadog": {"apiKeyExistingSecret": str, "site": str, "apm": {"portEnabled": bool, "port": int}, "logs": {"enabled": bool}},
    "agents": {"enabled": bool}}


def known(value, keys, where):
    for key, inner in value.items():
        expect(key in keys, f"{where}.{key} is no documented key")
        if isinstance(keys[key], dict):
            known(inner, keys[key], f"{where}.{key}")
        else:
            expect(isinstance(inner, keys[key]), f"{where}.{key}: {inner!r}")


def datadog_values_are_documented():
    """Their chart cannot be had here: its keys, as documented."""
    with open(f"{EXAMPLES}/datadog/datadog-values.yaml", encoding="utf-8") as f:
        known(yaml.safe_load(f), DATADOG_VALUES, "datadog-values.yaml")


def gateway_objects_are_valid():
    docs = documents(kustomize(EXAMPLES + "/otel-gateway"))
    expect(validate(docs) == [], validate(docs))
    for values in ("otel-gateway", "datadog"):
        docs = documents(template("-f", f"{EXAMPLES}/{values}/values.yaml"))
        expect(validate(docs) == [], validate(docs))


class Backend(http.server.BaseHTTPRequestHandler):
    """Keeps the spans that are posted to it, as JSON objects."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        out = subprocess.run([RINGSPAN, "encode", "--from", "otlp-proto", "--to", "json"], input=body, capture_output=True,
                             check=False).stdout
        self.server.spans += [json.loads(line) for line in out.splitlines() if line.startswith(b"{")]
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def gateway_samples_whole_traces():
    """Both tiers, started with the files as they are. A trace comes in two messages through the balancer, one with an error:
    both arrive. Of 60 traces without an error most do not."""
    collector = built("collector")
    sampler_port, port = free_ports(2)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Backend) as backend, tempfile.TemporaryDirectory() as d:
        backend.spans = []
        threading.Thread(target=backend.serve_forever, daemon=True).start()
        env = {**os.environ, "LISTEN": "127.0.0.1", "SAMPLERS": "127.0.0.1", "SAMPLER_PORT": str(sampler_port), "PORT": str(port),
               "DECISION_WAIT": "3s", "BACKEND": f"http://127.0.0.1:{backend.server_address[1]}"}
        tiers = []
        try:
            for name, own in (("sampler", sampler_port), ("balancer", port)):
                config = f"{d}/{name}.yaml"
                with open(f"{EXAMPLES}/otel-gateway/{name}.yaml", encoding="utf-8") as f, open(config, "w") as out:
                    # Each Collector's own metrics would want the same port.
                    out.write(f.read() + "  telemetry:\n    metrics:\n      level: none\n")
                with open(f"{d}/{name}.log", "w", encoding="utf-8") as log:
                    tiers.append(subprocess.Popen([collector, "--config", config], env=env, stdout=log, stderr=log))
                wait_for(f"the {name} on {own}", lambda own=own: listens(own), tiers[-1], log.name)
            bad = f"{0xbad:032x}"
            send(d, [(f"{0x1000 + i:032x}", "fine", 200) for i in range(60)] + [(bad, "front", 200), (bad, "back", 500)],
                 "--exporter", "otlp-grpc", "--endpoint", f"http://127.0.0.1:{port}", "--batch-spans", "1")

            def whole():
                return len([s for s in list(backend.spans) if s["trace_id"] == bad]) == 2

            wait_for("all of the trace with the error", whole, tiers[0], d + "/sampler.log")
            mine = sorted(s["attributes"]["url.path"] for s in backend.spans if s["trace_id"] == bad)
            expect(mine == ["/back", "/front"], mine)
            rest = len(backend.spans) - 2
            expect(rest < 30, f"{rest} of 60 traces without an error were kept")
        finally:
            for t in tiers:
                t.terminate()
                t.wait(20)
            backend.shutdown()


def main():
    cases = [schemas_reject_what_is_wrong, chart_gives_valid_objects, least_privilege, kustomize_is_the_chart,
             configurations_are_ringspans, image_runs_alone, seccomp_profile_is_the_sandboxs, image_runs_in_an_engine,
             package_is_complete, unit_is_hardened, unit_allows_what_the_agent_calls,
             datadog_agent_takes_it, datadog_values_are_documented, gateway_objects_are_valid, gateway_samples_whole_traces]
    # Before the tests, which have five minutes each: the first build on a machine takes some of them.
    for case, program in ((gateway_samples_whole_traces, "collector"), (datadog_agent_takes_it, "traceagent")):
        if suite.wanted(case.__name__, sys.argv[1:]):
            suite.go_program(program)
    return tools.main(cases, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
