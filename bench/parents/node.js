// SPDX-License-Identifier: Apache-2.0
// node.js PORT BACKEND-PORT [MS]: /WAY/ID, see `ways`. With MS a call of nobody's (/d/own/N) so often.
'use strict';
const http = require('http');
const [port, backend, often] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true });

function call(id, n) {
	return new Promise((done, fail) => {
		http.get({ host: '127.0.0.1', port: backend, path: `/d/${id}/${n}`, agent }, (res) => {
			res.resume();
			res.on('end', done);
		}).on('error', fail);
	});
}

const wait = (ms) => new Promise((done) => setTimeout(done, ms));

const ways = {
	async turn(id) { await call(id, 0); await call(id, 1); },
	async parallel(id) { await Promise.all([call(id, 0), call(id, 1), call(id, 2)]); },
	async timer(id) { await wait(3); await call(id, 0); },
	// The answer is under way while timers make the calls.
	async stream(id, req, res) { res.write('a'); await wait(3); await call(id, 0); res.write('b'); await wait(2); await call(id, 1); },
	// The body is still coming (slow.py) while a timer makes the call.
	async upload(id, req) {
		const whole = new Promise((done) => req.on('end', done).resume());
		await wait(2);
		await call(id, 0);
		await whole;
		await call(id, 1);
	},
	// Of all kinds, side by side.
	async mixed(id, req, res) { await ways[['turn', 'stream', 'parallel', 'timer'][id.split('x')[1] % 4]](id, req, res); },
};

http.createServer(async (req, res) => {
	const [, way, id] = req.url.split('/');
	try {
		await ways[way](id, req, res);
		res.end('ok');
	} catch (e) {
		res.statusCode = 502;
		res.end();
	}
}).listen(port, '127.0.0.1', () => console.log('ready'));

let own = 0;
if (often)
	setInterval(() => call('own', own++).catch(() => {}), often);
