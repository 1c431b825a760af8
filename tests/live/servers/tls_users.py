# SPDX-License-Identifier: Apache-2.0
"""HTTPS by what Python programs use: requests, aiohttp, curl_cffi (libcurl with BoringSSL inside), obstore (reqwest with rustls
inside), and a uvicorn server.

tls_users.py uvicorn PORT KEY CERT; tls_users.py requests|aiohttp|curl_cffi|obstore PORT COUNT PREFIX. A client asks for /warm
on a connection of its own for each line it reads, and says so; with the line "go" it asks for the rest on another one.
"""
import sys


def with_requests(url, paths):
    import requests
    import urllib3
    urllib3.disable_warnings()
    with requests.Session() as session:
        for path in paths:
            assert session.get(url + path, verify=False).status_code == 200


def with_curl_cffi(url, paths):
    from curl_cffi import requests
    with requests.Session(verify=False) as session:
        for path in paths:
            assert session.get(url + path).status_code == 200


def with_aiohttp(url, paths):
    import asyncio
    import aiohttp

    async def get():
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
            for path in paths:
                async with session.get(url + path) as response:
                    assert response.status == 200
                    await response.read()

    asyncio.run(get())


def with_obstore(url, paths):
    import obstore
    store = obstore.store.HTTPStore.from_url(url, client_options={"allow_invalid_certificates": True})
    for path in paths:
        assert bytes(obstore.get(store, path).bytes())


async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
    await send({"type": "http.response.body", "body": b"ok\n"})


def main():
    how, port, *rest = sys.argv[1:]
    if how == "uvicorn":
        import uvicorn
        print("starts", flush=True)
        uvicorn.run(app, host="127.0.0.1", port=int(port), ssl_keyfile=rest[0], ssl_certfile=rest[1], log_level="error",
                    lifespan="off")
        return
    get = {"requests": with_requests, "aiohttp": with_aiohttp, "curl_cffi": with_curl_cffi, "obstore": with_obstore}[how]
    url = f"https://127.0.0.1:{port}/"
    print("starts", flush=True)
    while sys.stdin.readline() != "go\n":
        get(url, ["warm"])
        print("warm", flush=True)
    get(url, [f"{rest[1]}{i}" for i in range(int(rest[0]))])


main()
