// SPDX-License-Identifier: Apache-2.0
// HTTP/2 with Node: `server PORT LOG [KEY CERT]` or `client URL LOG COUNT STREAMS [DELAY_MS]`. Each answer is a line
// of the log: method, path, status. What the path says: /status/N, /bytes/N, /slow/MS, /sse, /reset (the server resets).
"use strict";
const fs = require("fs");
const http2 = require("http2");

function serve(port, logName, key, cert) {
  const log = fs.createWriteStream(logName, { flags: "a" });
  const options = key ? { key: fs.readFileSync(key), cert: fs.readFileSync(cert) } : {};
  const server = key ? http2.createSecureServer(options) : http2.createServer(options);
  server.on("stream", (stream, headers) => {
    const [, what, arg] = headers[":path"].split("?")[0].split("/");
    const answer = (status, body) => {
      if (stream.destroyed) return;
      stream.respond({ ":status": status, "content-type": "text/plain", "x-n": headers[":path"] });
      stream.end(body);
      log.write(`${headers[":method"]}\t${headers[":path"]}\t${status}\n`);
    };
    stream.on("error", () => {});
    let got = 0;
    stream.on("data", (chunk) => (got += chunk.length));
    stream.on("end", () => {
      if (what === "status") answer(Number(arg), "status\n");
      else if (what === "bytes") answer(200, Buffer.alloc(Number(arg), "b"));
      else if (what === "slow") setTimeout(() => answer(200, "slow\n"), Number(arg));
      else if (what === "reset") stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
      else if (what === "sse") {
        stream.respond({ ":status": 200, "content-type": "text/event-stream" });
        let n = 0;
        const timer = setInterval(() => {
          stream.write(`data: ${n}\n\n`);
          if (++n === 5) {
            clearInterval(timer);
            stream.end();
            log.write(`GET\t${headers[":path"]}\t200\n`);
          }
        }, 20);
      } else answer(200, `got ${got}\n`);
    });
  });
  server.listen(Number(port), "127.0.0.1", () => console.log("listening"));
}

function call(url, logName, count, streams, delay) {
  const log = fs.openSync(logName, "a");
  const client = http2.connect(url, { rejectUnauthorized: false });
  const paths = ["/hello", "/status/404", "/status/503", "/bytes/40000", "/slow/20", "/echo"];
  let started = 0, open = 0;
  const next = () => {
    while (open < streams && started < count) {
      const n = started++;
      const kind = paths[n % paths.length];
      const path = `${kind}?n=${n}`, method = kind === "/echo" ? "POST" : "GET";
      const request = client.request({ ":method": method, ":path": path });
      let status = 0;
      open++;
      request.on("response", (h) => (status = h[":status"]));
      request.on("error", () => {});
      request.on("data", () => {});
      request.on("close", () => {
        fs.writeSync(log, `${method}\t${path}\t${status}\n`);
        open--;
        if (started === count && open === 0) client.close();
        else if (delay) setTimeout(next, delay);
        else next();
      });
      request.end(method === "POST" ? Buffer.alloc(5000, "p") : undefined);
      if (delay) break;
    }
  };
  client.on("error", (e) => { console.error(e); process.exit(1); });
  client.on("connect", () => { console.log("connected"); next(); });
}

const [, , what, ...rest] = process.argv;
if (what === "server") serve(...rest);
else call(rest[0], rest[1], Number(rest[2]), Number(rest[3]), Number(rest[4] || 0));
