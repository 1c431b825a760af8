#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many calls of a program are under the right request: parents.py [NAME…] [--seconds S] [-c N,N…]

Each program serves /WAY/ID and calls a backend with /d/ID/N. A call's span is right when its parent is the
program's own server span of the same ID, none when it has no parent, wrong otherwise; a call of nobody's (ID: own)
is wrong when it has one, and else not counted. Paths are the truth, and nothing in the choice of a parent inside a process reads them. The load is wrk's, with 1, 16 and 64 connections.
Root. Rows of programs that are not installed say so.
"""
import argparse
import collections
import glob
import os
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HERE = os.path.join(TOP, "bench", "parents")
sys.path.insert(0, os.path.join(TOP, "tests", "live"))
import harness  # noqa: E402

NGINX = """
daemon off; worker_processes 2; pid {dir}/{name}.pid; error_log {dir}/{name}.err;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
  scgi_temp_path {dir}/s;
  upstream up {{ server 127.0.0.1:{up}; {keep} }}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location /d/ {{ return 200 "ok"; }}
    location / {{ rewrite ^/[a-z]*/(.*)$ /d/$1/0 break; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_pass http://up; }}
  }}
}}
"""


def nginx(place, name, port, up, keep="", conf=NGINX):
    text, conf = conf, place.path(name + ".conf")
    with open(conf, "w") as f:
        f.write(text.format(dir=place.dir, name=name, port=port, up=up, keep=keep))
    process = place.spawn(["nginx", "-c", conf, "-p", place.dir, "-e", place.path(name + ".err")],
                          stderr=subprocess.DEVNULL)
    harness.wait_until("nginx", lambda: up_and(port) and len(tree(process.pid)) == 3, 10)
    return process


def up_and(port):
    import socket
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def go_binary(source):
    """main.go, or the module in grpc/ (fetched from the network)."""
    out = os.path.join(TOP, "build", "parents-" + source)
    path = os.path.join(HERE, source)
    if not os.path.exists(out) or os.path.getmtime(out) < os.path.getmtime(path):
        alone = source.endswith(".go")
        subprocess.run(["go", "build", "-o", out, source if alone else "."], check=True, cwd=HERE if alone else path,
                       env={**os.environ, "GOFLAGS": "-mod=mod", **({"GO111MODULE": "off"} if alone else {})})
    return out


def go(place, port, up, *more):
    return place.spawn_server([go_binary("main.go"), str(port), str(up), *more])


def go_grpc(place, port, up):
    """With a backend of its own kind."""
    back = harness.free_port()
    place.spawn_server([go_binary("grpc"), str(back)])
    return place.spawn_server([go_binary("grpc"), str(port), str(back)])


def jdk(version):
    """The bin directory of a JDK of at least this version: the one on the path, or another that is installed; or None."""
    path = shutil.which("javac")
    for javac in ([path] if path else []) + sorted(glob.glob("/usr/lib/jvm/*/bin/javac")):
        text = subprocess.run([javac, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        if int(text.split()[1].split(".")[0]) >= version:
            return os.path.dirname(javac)
    return None


def java(place, port, up, threads, version=11):
    out, home = os.path.join(TOP, "build", f"parents-java-{version}"), jdk(version)
    if not os.path.exists(out):
        subprocess.run([f"{home}/javac", "-d", out, os.path.join(HERE, "Pool.java")], check=True,
                       stderr=subprocess.DEVNULL)
    return place.spawn_server([f"{home}/java", "-XX:TieredStopAtLevel=1", "-cp", out, "Pool", str(port), str(up),
                               threads])


def uwsgi(place, port, up):
    process = place.spawn(["uwsgi", "--master", "--plugin", "python3", "--http-socket", f"127.0.0.1:{port}", "--wsgi-file",
                           os.path.join(HERE, "wsgi.py"), "--processes", "4", "--disable-logging", "--listen", "100"], {"BACKEND": str(up)}, stdout=subprocess.DEVNULL,
                          stderr=open(place.path("uwsgi.err"), "w"))
    harness.wait_until("uwsgi", lambda: up_and(port) and len(tree(process.pid)) == 5, 20)
    return process


PHP_POOL = '''
[global]
error_log = {dir}/fpm.log
daemonize = no
[www]
listen = {dir}/fpm.sock
listen.mode = 0666
user = root
group = root
pm = static
pm.max_children = 4
'''

FASTCGI = '''
    location /r/ {{ fastcgi_pass unix:{dir}/fpm.sock; include /etc/nginx/fastcgi_params;
      fastcgi_param SCRIPT_FILENAME @HERE@/call.php; fastcgi_param BACKEND {up}; }}
'''


def fpm():
    found = sorted(glob.glob("/usr/sbin/php-fpm*"))
    return found[-1] if found and shutil.which("nginx") else None


def php_fpm(place, port, up):
    """nginx and PHP-FPM behind it, by a Unix socket."""
    with open(place.path("fpm.conf"), "w") as f:
        f.write(PHP_POOL.format(dir=place.dir))
    os.chmod(place.dir, 0o755)
    process = place.spawn([fpm(), "-R", "-F", "-y", place.path("fpm.conf")], stderr=subprocess.DEVNULL)
    harness.wait_until("php-fpm", lambda: os.path.exists(place.path("fpm.sock")) and len(tree(process.pid)) == 5)
    conf = NGINX.replace("    location / {{", FASTCGI.replace("@HERE@", HERE) + "    location / {{")
    web = nginx(place, "web", port, up, conf=conf)
    process.also = tree(web.pid)
    return process


def has(*names):
    return lambda: all(shutil.which(n) for n in names)


PY = sys.executable
# name -> (way, is it there, start)
PROGRAMS = {
    "nginx proxy": ("r", has("nginx"), lambda p, port, up: nginx(p, "proxy", port, up)),
    "nginx proxy, kept": ("r", has("nginx"), lambda p, port, up: nginx(p, "proxy", port, up, "keepalive 128;")),
    "node, in turn": ("turn", has("node"), lambda p, port, up: node(p, port, up)),
    "node, parallel": ("parallel", has("node"), lambda p, port, up: node(p, port, up)),
    "node, timer": ("timer", has("node"), lambda p, port, up: node(p, port, up)),
    "node, streams": ("stream", has("node"), lambda p, port, up: node(p, port, up)),
    "node, slow uploads": ("upload", has("node"), lambda p, port, up: node(p, port, up)),
    "node, own calls": ("turn", has("node"), lambda p, port, up: node(p, port, up, "5")),
    "node, all of it": ("mixed", has("node"), lambda p, port, up: node(p, port, up, "5")),
    "python threads": ("direct", has("python3"), lambda p, port, up: python(p, "threads.py", port, up)),
    "python executor": ("pool", has("python3"), lambda p, port, up: python(p, "threads.py", port, up)),
    "python asyncio": ("r", has("python3"), lambda p, port, up: python(p, "aio.py", port, up)),
    "asyncio, own calls": ("r", has("python3"), lambda p, port, up: python(p, "aio.py", port, up, "5")),
    "go net/http": ("r", has("go"), lambda p, port, up: go(p, port, up)),
    "go goroutines": ("both", has("go"), lambda p, port, up: go(p, port, up)),
    "go https": ("r", has("go"), lambda p, port, up: go(p, port, up, "tls")),
    "go grpc": ("r", has("go"), go_grpc),
    "java pool": ("r", lambda: jdk(11), lambda p, port, up: java(p, port, up, "32")),
    "java virtual": ("r", lambda: jdk(21), lambda p, port, up: java(p, port, up, "virtual", 21)),
    "uwsgi": ("r", has("uwsgi"), uwsgi),
    "php-fpm": ("r", fpm, php_fpm),
}


def node(place, port, up, *more):
    return place.spawn_server(["node", os.path.join(HERE, "node.js"), str(port), str(up), *more])


def python(place, script, port, up, *more):
    return place.spawn_server([PY, os.path.join(HERE, script), str(port), str(up), *more])


def tree(pid):
    pids = [pid]
    for p in pids:
        for task in os.listdir(f"/proc/{p}/task"):
            pids += [int(c) for c in open(f"/proc/{p}/task/{task}/children").read().split()]
    return pids


def path(span):
    return "/" + span.raw["name"] if "rpc.method" in span.attributes else span.target


def ident(span):
    return path(span).split("/")[2].split(".")[0]


def load(name, port, way, connections, seconds):
    if "uploads" in name:
        argv = [PY, os.path.join(HERE, "slow.py"), str(port), way, str(connections), str(seconds)]
    elif name == "go grpc":
        argv = [go_binary("grpc"), "load", str(port), str(connections), str(seconds)]
    else:
        argv = ["wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", "-s", os.path.join(HERE, "load.lua"),
                f"{'https' if 'https' in name else 'http'}://127.0.0.1:{port}"]
    subprocess.run(argv, env={**os.environ, "WAY": way}, check=True, stdout=subprocess.DEVNULL)


def measure(place, name, port, way, pids, connections, seconds):
    agent = harness.Agent(place, *[x for p in pids for x in ("-p", str(p))], name=f"a{port}-{connections}")
    load(name, port, way, connections, seconds)
    spans = agent.stop()
    servers = {s.id: ident(s) for s in spans if s.kind == "server" and path(s).startswith(f"/{way}/")}
    n = collections.Counter(server=len(servers))
    for s in spans:
        if s.kind != "client" or not path(s).startswith("/d/"):
            continue
        own = ident(s) == "own"
        n["own"] += own
        if not s.parent and own:
            continue
        if not s.parent:
            n["none"] += 1
        elif servers.get(s.parent) == ident(s):
            n["right"] += 1
        else:
            n["wrong"] += 1
        n["calls"] += 1
        n["linked"] += bool(not s.parent and s.raw["links"])
    return n


def main():
    p = argparse.ArgumentParser()
    p.add_argument("names", nargs="*")
    p.add_argument("--seconds", type=int, default=3)
    p.add_argument("-c", default="1,16,64")
    args = p.parse_args()
    print(f"{'program':<20}{'conn.':>6}{'requests':>10}{'calls':>9}{'right %':>9}{'none %':>9}{'wrong %':>9}")
    for name, (way, there, start) in PROGRAMS.items():
        if args.names and not any(a in name for a in args.names):
            continue
        if not there():
            print(f"{name:<20} not installed here" + (" (virtual threads: Java 21)" if "virtual" in name else ""))
            continue
        for connections in map(int, args.c.split(",")):
            place = harness.Place("parents")
            try:
                up, port = harness.free_port(), harness.free_port()
                nginx(place, "backend", up, up)
                process = start(place, port, up)
                n = measure(place, name, port, way, tree(process.pid) + getattr(process, "also", []), connections, args.seconds)
                calls = n["calls"] or 1
                print(f"{name:<20}{connections:>6}{n['server']:>10}{n['calls']:>9}" +
                      "".join(f"{100 * n[k] / calls:>9.2f}" for k in ("right", "none", "wrong")), flush=True)
            finally:
                place.close(False)


if __name__ == "__main__":
    main()
