# SPDX-License-Identifier: Apache-2.0
"""gRPC of C core: `server PORT [KEY CERT]`, or `client TARGET LOG ROUNDS STREAMS [CERT]`.

The client logs what each call came to: method, status, messages sent and received, '-' where that depends on timing.
Messages are bytes: no code is generated.
"""
import concurrent.futures
import sys
import threading
import time

import grpc

SERVICE = "test.Calls"


def unary(request, context):
    return request


def fails(request, context):
    context.abort(getattr(grpc.StatusCode, request.decode()), "as asked")


def slow(request, context):
    time.sleep(float(request))
    return request


def many(request, context):
    for i in range(int(request)):
        yield b"m" * (i * 1000)


def collect(requests, context):
    return b"%d" % sum(1 for _ in requests)


def chat(requests, context):
    yield from requests


def forever(request, context):
    while context.is_active():
        yield b"tick"
        time.sleep(0.01)


def serve(port, key=None, cert=None):
    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary), "Fails": grpc.unary_unary_rpc_method_handler(fails),
        "Slow": grpc.unary_unary_rpc_method_handler(slow), "Many": grpc.unary_stream_rpc_method_handler(many),
        "Collect": grpc.stream_unary_rpc_method_handler(collect), "Chat": grpc.stream_stream_rpc_method_handler(chat),
        "Forever": grpc.unary_stream_rpc_method_handler(forever),
    }
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(32))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    if key:
        pair = (open(key, "rb").read(), open(cert, "rb").read())
        server.add_secure_port(f"127.0.0.1:{port}", grpc.ssl_server_credentials([pair]))
    else:
        server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    print("listening", flush=True)
    server.wait_for_termination()


def call(target, log_name, rounds, streams, cert=None):
    if cert:
        channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(open(cert, "rb").read()),
                                      [("grpc.ssl_target_name_override", "localhost")])
    else:
        channel = grpc.insecure_channel(target)
    log, lock = open(log_name, "a"), threading.Lock()

    def note(method, status, sent, received):
        with lock:
            print(SERVICE + "/" + method, status, sent, received, sep="\t", file=log, flush=True)

    def path(method):
        return f"/{SERVICE}/{method}"

    def status(work):
        try:
            return "OK", work()
        except grpc.RpcError as e:
            return e.code().name, None

    def round_of_calls():
        note("Unary", status(lambda: channel.unary_unary(path("Unary"))(b"x" * 100))[0], 1, 1)
        for code in ("NOT_FOUND", "INTERNAL"):
            note("Fails", status(lambda: channel.unary_unary(path("Fails"))(code.encode()))[0], 1, 0)
        note("None", status(lambda: channel.unary_unary(path("None"))(b""))[0], "-", 0)
        note("Many", *((s := status(lambda: list(channel.unary_stream(path("Many"))(b"20"))))[0], 1, len(s[1])))
        note("Collect", status(lambda: channel.stream_unary(path("Collect"))(iter([b"a", b"b" * 70000, b""])))[0], 3, 1)
        note("Chat", *((s := status(lambda: list(channel.stream_stream(path("Chat"))(iter([b"1", b"2", b"3"])))))[0], 3, len(s[1])))
        note("Slow", status(lambda: channel.unary_unary(path("Slow"))(b"0.5", timeout=0.1))[0], "-", "-")
        ticks = channel.unary_stream(path("Forever"))(b"")
        next(ticks)
        ticks.cancel()
        note("Forever", status(lambda: list(ticks))[0], "-", "-")

    for _ in range(rounds):
        threads = [threading.Thread(target=round_of_calls) for _ in range(streams)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    channel.close()


if sys.argv[1] == "server":
    serve(*sys.argv[2:])
else:
    call(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), *sys.argv[6:])
