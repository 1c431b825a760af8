# SPDX-License-Identifier: Apache-2.0
"""PHP-FPM behind nginx, by FastCGI over a Unix socket and over TCP: one trace from the client to what PHP asks."""
import glob
import os
import shutil
import subprocess

from harness import CLIENT, SERVER, LiveTest, Wire, children, free_port, python, wait_until

POOL = """[global]
error_log = {dir}/fpm.log
daemonize = no
[www]
user = root
group = root
listen = {listen}
listen.mode = 0666
pm = static
pm.max_children = 2
"""
CONF = """daemon off; worker_processes 1; pid {dir}/web.pid; error_log {dir}/web.err; events {{ }}
http {{ access_log off; client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
  uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{ listen 127.0.0.1:{port};
    location / {{ fastcgi_pass {upstream}; fastcgi_param REQUEST_METHOD $request_method; fastcgi_param QUERY_STRING $query_string;
      fastcgi_param CONTENT_TYPE $content_type; fastcgi_param CONTENT_LENGTH $content_length;
      fastcgi_param REQUEST_URI $request_uri; fastcgi_param SERVER_PROTOCOL $server_protocol;
      fastcgi_param SCRIPT_FILENAME {dir}/page.php; }} }} }}
"""
PAGE = """<?php file_get_contents("http://127.0.0.1:{back}/s/200?" . $_GET["n"]);
echo strlen(file_get_contents("php://input")), " ", strlen($_SERVER["HTTP_X_LONG"]);
"""


class Php(LiveTest):
    def check(self, listen, upstream):
        fpm = sorted(glob.glob("/usr/sbin/php-fpm*"))
        if not fpm or not shutil.which("nginx"):
            self.skipTest("no php-fpm or no nginx here")
        os.chmod(self.place.dir, 0o755)
        _, back, _ = python(self.place)
        port = free_port()
        for name, text, values in (("fpm.conf", POOL, {"listen": listen}), ("web.conf", CONF, {"port": port, "upstream": upstream})):
            with open(self.place.path(name), "w") as f:
                f.write(text.format(dir=self.place.dir, **values))
        with open(self.place.path("page.php"), "w") as f:
            f.write(PAGE.replace("{back}", back))
        php = self.place.spawn([fpm[-1], "-R", "-F", "-y", self.place.path("fpm.conf")], stderr=subprocess.DEVNULL)
        web = self.place.spawn(["nginx", "-e", self.place.path("web.err"), "-p", self.place.dir, "-c",
                                self.place.path("web.conf")], stderr=subprocess.DEVNULL)
        wait_until("nginx and php-fpm", lambda: len(children(web.pid)) == 1 and len(children(php.pid)) == 2)
        pids = [php.pid, web.pid, os.getpid(), *children(php.pid), *children(web.pid)]
        agent = self.agent(*[x for pid in pids for x in ("-p", str(pid))])
        wire = Wire(("127.0.0.1", port))
        for n in range(10):
            body = "b" * (n * 1000)
            wire.send(f"POST /page.php?n={n} HTTP/1.1\r\nHost: shop.example\r\nX-Long: {'x' * (n * 400)}\r\n"
                      f"Content-Length: {len(body)}\r\n\r\n{body}")
            self.assertEqual(wire.response(), 200)
        spans = agent.stop()
        whole = 0
        for n in range(10):
            mine = [s for s in spans if s.target.endswith(f"?n={n}") or s.target == f"/s/200?{n}"]
            by = {(s.kind, "fastcgi" if "fastcgi" in s.attributes.values() else s.target.split("?")[0]): s for s in mine}
            chain = [by[key] for key in ((CLIENT, "/page.php"), (SERVER, "/page.php"), (CLIENT, "fastcgi"),
                                         (SERVER, "fastcgi"), (CLIENT, "/s/200"))]
            for above, below in zip(chain, chain[1:]):
                self.assertIn(below.parent, (above.id, ""))
                self.assertEqual(below.parent == above.id, below.trace == above.trace)
            self.assertEqual({s.status for s in chain}, {200})
            whole += len({s.trace for s in mine}) == 1
        self.assert_most(whole, 10, "one trace from end to end")

    def test_over_a_unix_socket(self):
        path = self.place.path("fpm.sock")
        self.check(path, "unix:" + path)

    def test_over_tcp(self):
        where = f"127.0.0.1:{free_port()}"
        self.check(where, where)
