// SPDX-License-Identifier: Apache-2.0
// OTLP JSON on standard input, through @opentelemetry/otlp-transformer's serializers: peer.js json|proto
"use strict";
const { JsonTraceSerializer, ProtobufTraceSerializer } = require("@opentelemetry/otlp-transformer");
const { resourceFromAttributes } = require("@opentelemetry/resources");

const hrTime = (ns) => [Number(BigInt(ns) / 1000000000n), Number(BigInt(ns) % 1000000000n)];

function value(v) {
	if ("stringValue" in v) return v.stringValue;
	if ("boolValue" in v) return v.boolValue;
	if ("intValue" in v) return Number(v.intValue);
	if ("doubleValue" in v) return Number(v.doubleValue);
	return new Uint8Array(Buffer.from(v.bytesValue, "base64"));
}

const attributes = (list) => Object.fromEntries((list || []).map((a) => [a.key, value(a.value)]));

function span(s, resource, scope) {
	const context = { traceId: s.traceId, spanId: s.spanId, traceFlags: 0 };
	return {
		name: s.name || "",
		kind: (s.kind || 1) - 1,
		spanContext: () => context,
		parentSpanContext: s.parentSpanId ? { traceId: s.traceId, spanId: s.parentSpanId, traceFlags: 0 } : undefined,
		startTime: hrTime(s.startTimeUnixNano || 0),
		endTime: hrTime(s.endTimeUnixNano || 0),
		status: { code: (s.status && s.status.code) || 0, message: s.status && s.status.message },
		attributes: attributes(s.attributes),
		links: (s.links || []).map((l) => ({
			context: { traceId: l.traceId, spanId: l.spanId, traceFlags: 0 },
			attributes: attributes(l.attributes),
			droppedAttributesCount: l.droppedAttributesCount || 0,
		})),
		events: (s.events || []).map((e) => ({
			time: hrTime(e.timeUnixNano || 0),
			name: e.name || "",
			attributes: attributes(e.attributes),
			droppedAttributesCount: e.droppedAttributesCount || 0,
		})),
		duration: [0, 0],
		ended: true,
		resource,
		instrumentationScope: scope,
		droppedAttributesCount: s.droppedAttributesCount || 0,
		droppedEventsCount: s.droppedEventsCount || 0,
		droppedLinksCount: s.droppedLinksCount || 0,
	};
}

function spans(data) {
	const out = [];
	for (const rs of data.resourceSpans || []) {
		const resource = resourceFromAttributes(attributes((rs.resource || {}).attributes));
		for (const ss of rs.scopeSpans || []) {
			const scope = { name: (ss.scope || {}).name || "", version: (ss.scope || {}).version };
			for (const s of ss.spans || []) out.push(span(s, resource, scope));
		}
	}
	return out;
}

module.exports = { spans, JsonTraceSerializer, ProtobufTraceSerializer };

if (require.main === module) {
	const serializer = process.argv[2] === "json" ? JsonTraceSerializer : ProtobufTraceSerializer;
	// Not readFileSync(0): a pipe that has nothing yet may answer EAGAIN.
	require("stream/consumers").json(process.stdin)
		.then((data) => process.stdout.write(serializer.serializeRequest(spans(data))));
}
