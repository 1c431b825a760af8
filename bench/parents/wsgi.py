# SPDX-License-Identifier: Apache-2.0
"""Under uWSGI: two calls in turn to the backend on port BACKEND."""
import http.client
import os

connection = None


def call(ident, n):
    global connection
    if connection is None:
        connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["BACKEND"]))
    connection.request("GET", f"/d/{ident}/{n}")
    connection.getresponse().read()


def application(env, start_response):
    ident = env["PATH_INFO"].split("/")[2]
    call(ident, 0)
    call(ident, 1)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
