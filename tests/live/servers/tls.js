// SPDX-License-Identifier: Apache-2.0
// tls.js serve PORT KEY CERT: an HTTPS server. tls.js get PORT COUNT PREFIX PARALLEL: an HTTPS client.
const https = require("https"), fs = require("fs");
const [how, port, a, b, c] = process.argv.slice(2);
if (how === "serve") {
	https.createServer({ key: fs.readFileSync(a), cert: fs.readFileSync(b) }, (req, res) => {
		const body = `node ${req.url}\n`;
		req.resume();
		req.on("end", () => res.writeHead(200, { "content-length": body.length }).end(body));
	}).listen(+port, "127.0.0.1", () => console.log("listens"));
} else {
	const agent = new https.Agent({ keepAlive: true, maxSockets: +c, rejectUnauthorized: false });
	let next = 0, left = +a, bad = 0;
	const over = (wrong) => {
		bad += wrong;
		if (--left === 0) {
			agent.destroy();
			process.exitCode = bad ? 1 : 0;
		} else {
			one();
		}
	};
	const one = () => {
		if (next === +a)
			return;
		https.get({ host: "127.0.0.1", port, path: `/${b}${next++}`, agent }, (res) => {
			res.resume();
			res.on("end", () => over(res.statusCode !== 200));
		}).on("error", () => over(true));
	};
	for (let i = 0; i < +c; i++)
		one();
}
