{{- define "switchover.selector" -}}
app.kubernetes.io/name: switchover
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "switchover.labels" -}}
{{ include "switchover.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "switchover.name" -}}
{{- if contains "switchover" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-switchover{{ end }}
{{- end }}

{{- define "switchover.resources" -}}
[{{ range $n, $kind := .Values.kinds }}{{ if $n }}, {{ end }}{{ lower $kind }}s{{ end }}]
{{- end }}

{{- define "switchover.statuses" -}}
[{{ range $n, $kind := .Values.kinds }}{{ if $n }}, {{ end }}{{ lower $kind }}s/status{{ end }}]
{{- end }}

{{- define "switchover.bindsApprovers" -}}
{{- $policies := .Values.admissionPolicies }}
{{- if eq (toString $policies.bindApprovers) "auto" }}
{{- if or $policies.fourEyes (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy") }}true{{ end }}
{{- else if $policies.bindApprovers }}true{{ end }}
{{- end }}
