{{- define "switchover.selector" -}}
app.kubernetes.io/name: switchover
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "switchover.labels" -}}
{{ include "switchover.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- define "switchover.name" -}}
{{- $own := .Values.nameOverride | default "switchover" }}
{{- $name := .Release.Name }}
{{- if not (contains $own $name) }}{{ $name = printf "%s-%s" $name $own }}{{ end }}
{{- .Values.fullnameOverride | default $name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* Of what belongs to the cluster, and so has no namespace to be told apart by. */ -}}
{{- define "switchover.clusterwide" -}}
{{ .Release.Namespace }}-{{ include "switchover.name" . }}
{{- end }}

{{- /* The namespaces that are served, with commas between them; of all of them, nothing. */ -}}
{{- define "switchover.watched" -}}
{{- with .Values.watch }}
{{- if and .all .namespaces }}{{ fail "watch.all serves every namespace: let watch.namespaces be empty" }}{{ end }}
{{- if not .all }}{{ .namespaces | default (list $.Release.Namespace) | join "," }}{{ end }}
{{- end }}
{{- end }}

{{- /* A role for people, as whoever binds it names it; the list is the chart's context and which role. */ -}}
{{- define "switchover.peoplesRole" -}}
{{- $root := index . 0 }}
{{- if include "switchover.watched" $root }}role {{ include "switchover.name" $root }}-{{ index . 1 }}
{{- else }}clusterrole {{ include "switchover.clusterwide" $root }}-{{ index . 1 }}
{{- end }}
{{- end }}

{{- /* Where a policy of the API server holds. */ -}}
{{- define "switchover.matchWatched" -}}
{{- with include "switchover.watched" . }}
matchResources:
  namespaceSelector:
    matchExpressions:
      - {key: kubernetes.io/metadata.name, operator: In, values: {{ splitList "," . | toJson }}}
{{- end }}
{{- end }}

{{- define "switchover.account" -}}
{{- $account := .Values.serviceAccount }}
{{- if not (or $account.create $account.name) }}
{{- fail "serviceAccount.name must name the account that exists already where serviceAccount.create is false" }}
{{- end }}
{{- $account.name | default (include "switchover.name" .) }}
{{- end }}

{{- define "switchover.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* Labels and the like: strings, also where a value is written as a number or a word such as true. */ -}}
{{- define "switchover.strings" -}}
{{- range $key, $value := . }}
{{- $key | quote }}: {{ if kindIs "float64" $value }}{{ int64 $value | quote }}{{ else }}{{ $value | quote }}{{ end }}
{{ end }}
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
