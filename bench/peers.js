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

function datadog(data, version) {
	const { AgentEncoder } = require(`./node_modules/dd-trace/packages/dd-trace/src/encode/${version}`);
	const id = require("./node_modules/dd-trace/packages/dd-trace/src/id");
	const traces = new Map();
	let n = 0;
	for (const rs of data.resourceSpans)
		for (const ss of rs.scopeSpans)
			for (const s of ss.spans) {
				const meta = {}, metrics = {};
				for (const { key, value } of s.attributes || []) {
					if ("stringValue" in value) meta[key] = value.stringValue;
					else metrics[key] = Number(value.intValue);
				}
				const span = {
					trace_id: id(s.traceId.slice(16), 16), span_id: id(s.spanId, 16), parent_id: id(s.parentSpanId || "0", 16),
					service: "shop-frontend", name: s.name, resource: s.name, type: "web", error: 0, meta, metrics,
					start: Number(s.startTimeUnixNano), duration: Number(BigInt(s.endTimeUnixNano) - BigInt(s.startTimeUnixNano)),
					links: [],
				};
				if (s.events) meta.events = JSON.stringify(s.events);
				if (!traces.has(s.traceId)) traces.set(s.traceId, []);
				traces.get(s.traceId).push(span);
				n++;
			}
	const encoder = new AgentEncoder({ flush() {} });
	return [() => {
		for (const t of traces.values()) encoder.encode(t);
		return encoder.makePayload();
	}, n];
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
