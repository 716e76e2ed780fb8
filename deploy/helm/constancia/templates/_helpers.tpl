{{- define "constancia.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "constancia.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: node
{{- end }}

{{- define "constancia.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "constancia.keeps" -}}
{{- if or (eq .Values.topology "embedded") .Values.nodes.keepSignerLog }}yes{{ end }}
{{- end }}

{{- define "constancia.conf" -}}
{{- range $section, $entries := .Values.settings }}
[{{ $section }}]
{{- range $key, $value := $entries }}
{{ $key }} = {{ if kindIs "float64" $value }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}
{{- end }}
{{ end }}
{{- end }}

{{- define "constancia.podSecurity" -}}
runAsNonRoot: true
runAsUser: 900
runAsGroup: 900
fsGroup: 900
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "constancia.container" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
env:
  - {name: CREDENTIALS_DIRECTORY, value: /run/secrets/constancia}
  - {name: PGSERVICEFILE, value: /run/secrets/constancia/pg_service.conf}
  - {name: CONSTANCIA_SERVICE_DATA_DIR, value: /var/lib/constancia}
  - {name: CONSTANCIA_SERVICE_LISTEN, value: "0.0.0.0:8080"}
  - {name: CONSTANCIA_SERVICE_ADMIN_LISTEN, value: "0.0.0.0:8081"}
  {{- with .Values.trustedProxies }}
  - {name: CONSTANCIA_SERVICE_TRUSTED_PROXIES, value: {{ join ", " . | quote }}}
  {{- end }}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumeMounts:
  - {name: data, mountPath: /var/lib/constancia}
  - {name: tmp, mountPath: /tmp}
  - {name: config, mountPath: /etc/constancia, readOnly: true}
  - {name: secrets, mountPath: /run/secrets/constancia, readOnly: true}
{{- end }}

{{- define "constancia.volumes" -}}
- name: tmp
  emptyDir: {}
- name: config
  configMap:
    name: {{ .config }}
- name: secrets
  secret:
    secretName: {{ .root.Values.secretName }}
    defaultMode: 0440
{{- end }}
