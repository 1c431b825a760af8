// SPDX-License-Identifier: Apache-2.0
// A Node HTTP server for the live tests: server.js LISTEN LOG [BACKEND], LISTEN a port, host:port or a path.
// It writes METHOD\tTARGET\tSTATUS to LOG for each response that was finished.
'use strict';
const http = require('http');
const fs = require('fs');

const [listen, logPath, backend] = process.argv.slice(2);
const log = fs.openSync(logPath, 'a');
const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });

function get(url) {
	return new Promise((resolve, reject) => {
		http.get(url, { agent }, (res) => {
			res.resume();
			res.on('end', () => resolve(res.statusCode));
		}).on('error', reject);
	});
}

const server = http.createServer((req, res) => {
	res.on('finish', () => fs.writeSync(log, `${req.method}\t${req.url}\t${res.statusCode}\n`));
	const [, verb, arg, id] = req.url.split('?')[0].split('/');
	req.on('error', () => {});
	switch (verb) {
	case 's': // /s/CODE
		res.statusCode = +arg;
		res.end(+arg === 204 || +arg === 304 ? undefined : 'x'.repeat(100));
		break;
	case 'slow': // /slow/MS
		setTimeout(() => res.end('late\n'), +arg);
		break;
	case 'chunk': { // /chunk/N: N chunks, no Content-Length
		let n = +arg;
		const next = () => {
			if (n-- > 0) {
				res.write('y'.repeat(1000));
				setImmediate(next);
			} else {
				res.end();
			}
		};
		next();
		break;
	}
	case 'echo': {
		const parts = [];
		req.on('data', (d) => parts.push(d));
		req.on('end', () => res.end(Buffer.concat(parts)));
		break;
	}
	case 'fetch': // /fetch/1/ID or /fetch/2/ID: calls to the backend, one after the other
		(async () => {
			for (let i = 0; i < +arg; i++)
				await get(`${backend}/node/${id}/${i}`);
			res.end('fetched\n');
		})().catch(() => { res.statusCode = 502; res.end(); });
		break;
	case 'die': // half a response, then the process is gone
		res.writeHead(200, { 'Content-Length': 100000 });
		res.write('z'.repeat(1000), () => process.kill(process.pid, 'SIGKILL'));
		break;
	case 'segv':
		setTimeout(() => process.kill(process.pid, 'SIGSEGV'), 20);
		break;
	default:
		res.end('ok\n');
	}
});
server.keepAliveTimeout = 60000;
const ready = () => process.stdout.write('ready\n');
if (/^\d+$/.test(listen))
	server.listen(+listen, '127.0.0.1', ready);
else if (listen.startsWith('/'))
	server.listen(listen, ready);
else
	server.listen(+listen.split(':').pop(), listen.slice(0, listen.lastIndexOf(':')).replace(/[[\]]/g, ''), ready);
