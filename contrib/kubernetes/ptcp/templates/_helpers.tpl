{{- define "ptcp.labels" -}}
app.kubernetes.io/name: ptcp
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "ptcp.selector" -}}
app.kubernetes.io/name: ptcp
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* What every pod of ptcp runs as: the image's user, without any privilege. */ -}}
{{- define "ptcp.pod" -}}
serviceAccountName: {{ .Release.Name }}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 7811
  runAsGroup: 7811
  fsGroup: 7811
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "ptcp.container" -}}
image: {{ printf "%s:%s" .Values.image.repository .Values.image.tag | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
resources:
  {{- toYaml .Values.resources | nindent 2 }}
{{- end }}

{{- define "ptcp.claim" -}}
{{ .Values.data.existingClaim | default .Release.Name }}
{{- end }}
