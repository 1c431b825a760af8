// SPDX-License-Identifier: Apache-2.0
// node.js PORT BACKEND-PORT: /turn/ID two awaited calls, /parallel/ID three at once, /timer/ID a timer before the call.
'use strict';
const http = require('http');
const [port, backend] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true });

function call(id, n) {
	return new Promise((done, fail) => {
		http.get({ host: '127.0.0.1', port: backend, path: `/d/${id}/${n}`, agent }, (res) => {
			res.resume();
			res.on('end', done);
		}).on('error', fail);
	});
}

const ways = {
	async turn(id) { await call(id, 0); await call(id, 1); },
	async parallel(id) { await Promise.all([call(id, 0), call(id, 1), call(id, 2)]); },
	async timer(id) { await new Promise((done) => setTimeout(done, 3)); await call(id, 0); },
};

http.createServer(async (req, res) => {
	const [, way, id] = req.url.split('/');
	try {
		await ways[way](id);
		res.end('ok');
	} catch (e) {
		res.statusCode = 502;
		res.end();
	}
}).listen(port, '127.0.0.1', () => console.log('ready'));
