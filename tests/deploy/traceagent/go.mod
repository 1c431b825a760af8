module ringspan.example/traceagent

go 1.26

replace github.com/DataDog/datadog-agent/pkg/config/setup/constants => ./constants

require (
	github.com/DataDog/datadog-agent/comp/core/secrets/noop-impl v0.82.3
	github.com/DataDog/datadog-agent/comp/trace/compression/impl-gzip v0.82.3
	github.com/DataDog/datadog-agent/pkg/config/model v0.82.3
	github.com/DataDog/datadog-agent/pkg/config/setup v0.82.3
	github.com/DataDog/datadog-agent/pkg/proto v0.82.3
	github.com/DataDog/datadog-agent/pkg/trace v0.82.3
	github.com/DataDog/datadog-agent/pkg/util/log v0.82.3
	github.com/DataDog/datadog-go/v5 v5.9.0
)

require (
	github.com/DataDog/datadog-agent/comp/api/api/def v0.82.3 // indirect
	github.com/DataDog/datadog-agent/comp/core/delegatedauth v0.82.3 // indirect
	github.com/DataDog/datadog-agent/comp/core/flare/builder v0.82.3 // indirect
	github.com/DataDog/datadog-agent/comp/core/flare/types v0.82.3 // indirect
	github.com/DataDog/datadog-agent/comp/core/secrets/def v0.82.3 // indirect
	github.com/DataDog/datadog-agent/comp/core/status v0.82.3 // indirect
	github.com/DataDog/datadog-agent/comp/core/tagger/origindetection v0.82.3 // indirect
	github.com/DataDog/datadog-agent/comp/core/telemetry v0.82.3 // indirect
	github.com/DataDog/datadog-agent/comp/trace/compression/def v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/api v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/collector/check/defaults v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/config/basic v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/config/buildschema v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/config/create v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/config/env v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/config/helper v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/config/nodetreemodel v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/config/structure v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/fips v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/obfuscate v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/opentelemetry-mapping-go/otlp/attributes v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/remoteconfig/state v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/template v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/trace/log v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/trace/stats v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/trace/traceutil v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/util/cgroups v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/util/defaultpaths v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/util/executable v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/util/filesystem v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/util/pointer v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/util/scrubber v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/util/system v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/util/winutil v0.82.3 // indirect
	github.com/DataDog/datadog-agent/pkg/version v0.82.3 // indirect
	github.com/DataDog/go-acl v1.0.1 // indirect
	github.com/DataDog/go-sqllexer v0.2.3 // indirect
	github.com/DataDog/go-tuf v1.1.1-0.5.2 // indirect
	github.com/DataDog/sketches-go v1.4.8 // indirect
	github.com/Microsoft/go-winio v0.6.2 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/ebitengine/purego v0.10.0 // indirect
	github.com/fatih/color v1.19.0 // indirect
	github.com/go-ole/go-ole v1.3.0 // indirect
	github.com/go-viper/mapstructure/v2 v2.5.0 // indirect
	github.com/gofrs/flock v0.13.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/go-version v1.9.0 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/lufia/plan9stats v0.0.0-20260330125221-c963978e514e // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.22 // indirect
	github.com/mdlayher/socket v0.6.0 // indirect
	github.com/mdlayher/vsock v1.3.0 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee // indirect
	github.com/mohae/deepcopy v0.0.0-20170929034955-c48cc78d4826 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/open-telemetry/opentelemetry-collector-contrib/pkg/sampling v0.155.0 // indirect
	github.com/outcaste-io/ristretto v0.2.3 // indirect
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/planetscale/vtprotobuf v0.6.1-0.20240319094008-0393e58bdf10 // indirect
	github.com/power-devops/perfstat v0.0.0-20240221224432-82ca36839d55 // indirect
	github.com/prometheus/client_golang v1.23.3-0.20251103151724-a5ae20370e5e // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.69.0 // indirect
	github.com/prometheus/procfs v0.21.1 // indirect
	github.com/secure-systems-lab/go-securesystemslib v0.11.0 // indirect
	github.com/shirou/gopsutil/v4 v4.26.6 // indirect
	github.com/spf13/cast v1.10.0 // indirect
	github.com/tinylib/msgp v1.6.4 // indirect
	github.com/tklauser/go-sysconf v0.3.16 // indirect
	github.com/tklauser/numcpus v0.11.0 // indirect
	github.com/yusufpapurcu/wmi v1.2.4 // indirect
	go.opentelemetry.io/collector/component v1.61.0 // indirect
	go.opentelemetry.io/collector/featuregate v1.61.0 // indirect
	go.opentelemetry.io/collector/pdata v1.61.0 // indirect
	go.opentelemetry.io/otel v1.44.0 // indirect
	go.opentelemetry.io/otel/metric v1.44.0 // indirect
	go.opentelemetry.io/otel/trace v1.44.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	go.uber.org/dig v1.19.0 // indirect
	go.uber.org/fx v1.24.0 // indirect
	go.uber.org/mock v0.6.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.28.0 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	go.yaml.in/yaml/v3 v3.0.4 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.40.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260618152121-87f3d3e198d3 // indirect
	google.golang.org/grpc v1.82.1 // indirect
	google.golang.org/protobuf v1.36.12-0.20260116114154-8c4c4ae446ca // indirect
)
