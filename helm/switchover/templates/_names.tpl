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
{{- $names := list }}{{ range .Values.kinds }}{{ $names = append $names (printf "%ss" (lower .)) }}{{ end }}{{ toJson $names }}
{{- end }}

{{- define "switchover.statuses" -}}
{{- $names := list }}{{ range .Values.kinds }}{{ $names = append $names (printf "%ss/status" (lower .)) }}{{ end }}{{ toJson $names }}
{{- end }}
