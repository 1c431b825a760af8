// SPDX-License-Identifier: Apache-2.0

// ddagent: the Datadog agent's own code, for tests/diff/check_ddagent.py.
//
// Reads lines from standard input, writes a line of JSON for each:
//
//	v0.4 BASE64, v0.5 BASE64, v1 BASE64   the payload as the agent's decoder understands it: [chunk of spans]
//	map BASE64                            OTLP protobuf through the agent's OTLP mapping: [span]
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace/idx"
	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/datadog-agent/pkg/trace/transform"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

type object = map[string]any

// Numbers that JSON cannot hold exactly are text.
func span(s *trace.Span) object {
	metrics := object{}
	for k, v := range s.Metrics {
		metrics[k] = fmt.Sprint(v)
	}
	return object{"service": s.Service, "name": s.Name, "resource": s.Resource, "type": s.Type, "trace_id": fmt.Sprint(s.TraceID),
		"span_id": fmt.Sprint(s.SpanID), "parent_id": fmt.Sprint(s.ParentID), "start": s.Start, "duration": s.Duration, "error": s.Error,
		"meta": s.Meta, "metrics": metrics, "links": len(s.SpanLinks), "events": len(s.SpanEvents)}
}

func chunks(traces trace.Traces) any {
	out := []any{}
	for _, t := range traces {
		c := []any{}
		for _, s := range t {
			c = append(c, span(s))
		}
		out = append(out, c)
	}
	return out
}

func v1(data []byte) (any, []byte, error) {
	tp := idx.InternalTracerPayload{Strings: idx.NewStringTable()}
	rest, err := tp.UnmarshalMsg(data)
	if err != nil {
		return nil, rest, err
	}
	out := []any{}
	for _, c := range tp.Chunks {
		spans := []any{}
		for _, s := range c.Spans {
			attrs := object{}
			for k, v := range s.Attributes() {
				attrs[tp.Strings.Get(k)] = v.AsString(tp.Strings)
			}
			spans = append(spans, object{"service": s.Service(), "name": s.Name(), "resource": s.Resource(), "type": s.Type(),
				"span_id": fmt.Sprint(s.SpanID()), "parent_id": fmt.Sprint(s.ParentID()), "start": s.Start(), "duration": s.Duration(),
				"error": s.Error(), "env": s.Env(), "version": s.Version(), "component": s.Component(), "kind": s.SpanKind(),
				"attributes": attrs, "links": len(s.Links()), "events": len(s.Events()), "trace_id": fmt.Sprint(c.LegacyTraceID()),
				"tid": fmt.Sprintf("%016x", c.TraceIDHigh()), "priority": c.Priority, "mechanism": c.SamplingMechanism()})
		}
		out = append(out, spans)
	}
	return out, rest, nil
}

func mapped(data []byte, conf *config.AgentConfig) (any, error) {
	traces, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(data)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for i := 0; i < traces.ResourceSpans().Len(); i++ {
		rs := traces.ResourceSpans().At(i)
		for j := 0; j < rs.ScopeSpans().Len(); j++ {
			ss := rs.ScopeSpans().At(j)
			for k := 0; k < ss.Spans().Len(); k++ {
				out = append(out, span(transform.OtelSpanToDDSpan(ss.Spans().At(k), rs.Resource(), ss.Scope(), conf)))
			}
		}
	}
	return out, nil
}

func decode(kind string, data []byte, conf *config.AgentConfig) (any, error) {
	var traces trace.Traces
	var rest []byte
	var err error
	var out any

	switch kind {
	case "map":
		return mapped(data, conf)
	case "v0.4":
		rest, err = traces.UnmarshalMsg(data)
		out = chunks(traces)
	case "v0.5":
		err = traces.UnmarshalMsgDictionary(data)
		out = chunks(traces)
	case "v1":
		out, rest, err = v1(data)
	default:
		err = fmt.Errorf("unknown kind %q", kind)
	}
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%d bytes left over", len(rest))
	}
	return out, err
}

func main() {
	conf := config.New()
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		kind, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		data, err := base64.StdEncoding.DecodeString(text)
		var v any
		if err == nil {
			v, err = decode(kind, data, conf)
		}
		if err != nil {
			v = object{"error": err.Error()}
		}
		if err := out.Encode(v); err != nil {
			out.Encode(object{"error": err.Error()})
		}
	}
}
