// SPDX-License-Identifier: Apache-2.0
// How fast others encode the same spans: peers.js PEER FILE. FILE: OTLP JSON of one batch. Prints ns/span of the fastest
// and of the median chunk. What is timed is 'spans ready -> bytes ready'; strings are reused, which flatters JavaScript.
"use strict";
const fs = require("fs");

const WARM_MS = 500, CHUNK_MS = 10, CHUNKS = 45;

// Returns a function that encodes all spans once.
const peers = {
	"otlp-json": (data) => {
		const { spans, JsonTraceSerializer } = require("./peer.js");
		const s = spans(data);
		return [() => JsonTraceSerializer.serializeRequest(s), s.length];
	},
	"otlp-proto": (data) => {
		const { spans, ProtobufTraceSerializer } = require("./peer.js");
		const s = spans(data);
		return [() => ProtobufTraceSerializer.serializeRequest(s), s.length];
	},
	"datadog-v0.4": (data) => datadog(data, "0.4"),
	"datadog-v0.5": (data) => datadog(data, "0.5"),
};

// The spans as ringspan maps them, so that both sides write the same tags.
function datadog(data, version) {
	const { AgentEncoder } = require(`./node_modules/dd-trace/packages/dd-trace/src/encode/${version}`);
	const id = require("./node_modules/dd-trace/packages/dd-trace/src/id");
	const traces = data.traces.map((t) => t.map((s) => ({
		...s, trace_id: id(s.trace_id, 10), span_id: id(s.span_id, 10), parent_id: id(s.parent_id, 10), start: Number(s.start), links: [],
	})));
	const encoder = new AgentEncoder({ flush() {} }, 64 << 20);
	return [() => {
		for (const t of traces) encoder.encode(t);
		return encoder.makePayload();
	}, traces.reduce((n, t) => n + t.length, 0)];
}

const now = () => Number(process.hrtime.bigint());
const [run, n] = peers[process.argv[2]](JSON.parse(fs.readFileSync(process.argv[3])));
for (const end = now() + WARM_MS * 1e6; now() < end;) run();
const chunks = [];
for (let c = 0; c < CHUNKS; c++) {
	const start = now();
	let calls = 0, end;
	do {
		run();
		calls++;
		end = now();
	} while (end - start < CHUNK_MS * 1e6);
	chunks.push((end - start) / calls / n);
}
chunks.sort((a, b) => a - b);
console.log(`${chunks[0].toFixed(1)}\t${chunks[CHUNKS >> 1].toFixed(1)}`);
