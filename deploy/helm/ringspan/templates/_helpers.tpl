{{- define "ringspan.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else if contains (default .Chart.Name .Values.nameOverride) .Release.Name -}}
{{ .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (default .Chart.Name .Values.nameOverride) | trunc 53 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "ringspan.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ringspan.labels" -}}
{{ include "ringspan.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: agent
{{- end -}}

{{- define "ringspan.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "ringspan.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{/* What the oldest kernel asks for; see docs/deploy.md. */}}
{{- define "ringspan.capabilities" -}}
{{- $caps := list "BPF" "PERFMON" "SYS_PTRACE" "DAC_READ_SEARCH" -}}
{{- if ne .Values.kernel "6.6" -}}{{- $caps = append $caps "SYS_ADMIN" -}}{{- end -}}
{{- if eq .Values.kernel "5.10" -}}{{- $caps = append $caps "SYS_RESOURCE" -}}{{- end -}}
{{- if .Values.injection -}}{{- $caps = append $caps "NET_ADMIN" -}}{{- end -}}
{{- if .Values.capabilities -}}{{- $caps = .Values.capabilities -}}{{- end -}}
{{- toYaml $caps -}}
{{- end -}}
