// SPDX-License-Identifier: Apache-2.0

// traceagent CONFIG: the Datadog agent's own code. Its configuration package loads CONFIG, its trace agent (receiver,
// normalizer, samplers, writer) runs by it, and what would go to Datadog comes to a server in here.
//
// Lines of JSON on standard output: first all keys that the agent knows, with the values that CONFIG and DD_* variables
// give them; then each span that it sent. Its log goes to standard error. Ends by SIGTERM.
//
// The step between both packages (comp/trace/config) is in no module that can be had: settings() is ours.
package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"sync"
	"syscall"

	nosecrets "github.com/DataDog/datadog-agent/comp/core/secrets/noop-impl"
	gzipcomp "github.com/DataDog/datadog-agent/comp/trace/compression/impl-gzip"
	"github.com/DataDog/datadog-agent/pkg/config/model"
	"github.com/DataDog/datadog-agent/pkg/config/setup"
	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/trace/agent"
	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/datadog-agent/pkg/trace/telemetry"
	"github.com/DataDog/datadog-agent/pkg/util/log"
	logslog "github.com/DataDog/datadog-agent/pkg/util/log/slog"
	"github.com/DataDog/datadog-go/v5/statsd"
)

type object = map[string]any

var out = struct {
	sync.Mutex
	*json.Encoder
}{Encoder: json.NewEncoder(os.Stdout)}

func say(o object) {
	out.Lock()
	defer out.Unlock()
	out.Encode(o)
}

// Datadog's intake.
func intake(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(body)
	}
	data, err := io.ReadAll(body)
	if err != nil || r.URL.Path != "/api/v0.2/traces" {
		return
	}
	var p pb.AgentPayload
	if err := p.UnmarshalVT(data); err != nil {
		say(object{"error": err.Error()})
	}
	for _, t := range p.TracerPayloads {
		for _, c := range t.Chunks {
			for _, s := range c.Spans {
				say(object{"service": s.Service, "name": s.Name, "resource": s.Resource, "trace_id": fmt.Sprint(s.TraceID),
					"error": s.Error, "meta": s.Meta, "container": t.ContainerID, "key": r.Header.Get("DD-Api-Key")})
			}
		}
	}
}

func settings(c model.Reader, intake string) *config.AgentConfig {
	conf := config.New()
	conf.Enabled = c.GetBool("apm_config.enabled")
	conf.Site = c.GetString("site")
	conf.Endpoints[0].APIKey = c.GetString("api_key")
	conf.Endpoints[0].Host = intake
	conf.ReceiverPort = c.GetInt("apm_config.receiver_port")
	conf.ReceiverSocket = c.GetString("apm_config.receiver_socket")
	if c.GetBool("apm_config.apm_non_local_traffic") {
		conf.ReceiverHost = "0.0.0.0"
	}
	conf.TargetTPS = c.GetFloat64("apm_config.max_traces_per_second")
	conf.MaxRequestBytes = c.GetInt64("apm_config.max_payload_size")
	conf.DecoderTimeout = c.GetInt("apm_config.decoder_timeout")
	conf.MaxConnections = c.GetInt("apm_config.max_connections")
	conf.Hostname = "check"
	conf.StatsdEnabled = false
	conf.TraceWriter.FlushPeriodSeconds = 0.2
	return conf
}

func main() {
	log.SetupLogger(logslog.NewWrapper(slog.NewTextHandler(os.Stderr, nil)), "info")
	server := httptest.NewServer(http.HandlerFunc(intake))

	c := setup.GlobalConfigBuilder()
	c.SetConfigFile(os.Args[1])
	if err := setup.LoadDatadog(c, nosecrets.NewComponent().Comp, nil, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	conf := settings(c, server.URL)
	known := object{}
	for key := range c.GetKnownKeysLowercased() {
		known[key] = c.Get(key)
	}
	say(known)
	ctx, cancel := context.WithCancel(context.Background())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() { <-stop; cancel() }()
	agent.NewAgent(ctx, conf, telemetry.NewNoopCollector(), &statsd.NoOpClient{}, gzipcomp.NewComponent()).Run()
}
