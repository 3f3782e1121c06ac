{{- define "agentledger.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "agentledger.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "agentledger.labels" -}}
{{ include "agentledger.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "agentledger.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* "several" where several nodes serve from one database, and nothing otherwise. */}}
{{- define "agentledger.several" -}}
{{- if gt (int .Values.nodes) 1 -}}
{{- if not .Values.postgresql.secretName -}}
{{- fail "several nodes need PostgreSQL: set postgresql.secretName" -}}
{{- end -}}
several
{{- end -}}
{{- end -}}

{{/* The content of agentledger.json. Folders lie below the mounts, so that the service makes them with its own modes. */}}
{{- define "agentledger.settings" -}}
{{- $made := dict
  "public_url" .Values.publicURL
  "data" "/var/lib/agentledger/data"
  "anchors" "/var/lib/agentledger-anchors/anchors"
  "listen" ":8080"
  "id_listen" "127.0.0.1:8091"
  "metrics_listen" (ternary ":9464" "127.0.0.1:9464" .Values.metrics.enabled) -}}
{{- $header := .Values.clientAddressHeader | default (ternary "X-Forwarded-For" "" .Values.ingress.enabled) -}}
{{- if $header -}}
{{- $_ := set $made "client_address_header" $header -}}
{{- end -}}
{{- with .Values.archive.url -}}
{{- $_ := set $made "archive" . -}}
{{- end -}}
{{- if include "agentledger.several" . -}}
{{- $_ := set $made "node_listen" ":8092" -}}
{{- end -}}
{{- mergeOverwrite (dict "log_format" "json") (deepCopy .Values.settings) $made | toPrettyJson -}}
{{- end -}}

{{- define "agentledger.claim" -}}
accessModes: [ReadWriteOnce]
{{- with .storageClass }}
storageClassName: {{ . | quote }}
{{- end }}
resources:
  requests:
    storage: {{ .size }}
{{- end -}}

{{/* The pod, without its volumes of claims. */}}
{{- define "agentledger.pod" -}}
metadata:
  labels:
    {{- include "agentledger.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/settings: {{ include "agentledger.settings" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  # The time before SIGTERM counts too.
  terminationGracePeriodSeconds: {{ add .Values.stopSeconds (ternary 5 0 (ne (include "agentledger.several" .) "")) }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch # a later change would give the group rights to private files
    seccompProfile:
      type: RuntimeDefault
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: agentledger
      image: {{ include "agentledger.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: ["--config", "/etc/agentledger/agentledger.json", "serve"]
      env:
        - name: AGENTLEDGER_MASTER_KEY
          valueFrom:
            secretKeyRef:
              name: {{ .Values.secrets.name | quote }}
              key: {{ .Values.secrets.masterKey | quote }}
        - name: AGENTLEDGER_PLATFORM_SECRET
          valueFrom:
            secretKeyRef:
              name: {{ .Values.secrets.name | quote }}
              key: {{ .Values.secrets.platformSecret | quote }}
        # The image sets this variable, and a variable overrides the file.
        - name: AGENTLEDGER_DATA
          value: /var/lib/agentledger/data
        {{- with .Values.postgresql }}
        {{- if .secretName }}
        - name: AGENTLEDGER_STORAGE
          valueFrom:
            secretKeyRef:
              name: {{ .secretName | quote }}
              key: {{ .url | quote }}
        - name: PGPASSWORD
          valueFrom:
            secretKeyRef:
              name: {{ .secretName | quote }}
              key: {{ .password | quote }}
        {{- end }}
        {{- end }}
        {{- with .Values.archive }}
        {{- if .url }}
        - name: AWS_ACCESS_KEY_ID
          valueFrom:
            secretKeyRef:
              name: {{ .secretName | quote }}
              key: {{ .accessKeyID | quote }}
        - name: AWS_SECRET_ACCESS_KEY
          valueFrom:
            secretKeyRef:
              name: {{ .secretName | quote }}
              key: {{ .secretAccessKey | quote }}
        {{- end }}
        {{- end }}
        {{- if include "agentledger.several" . }}
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        - name: AGENTLEDGER_NODE_URL
          value: {{ printf "https://%s:8092" .Values.nodeHost | quote }}
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - name: http
          containerPort: 8080
        {{- if .Values.metrics.enabled }}
        - name: metrics
          containerPort: 9464
        {{- end }}
        {{- if include "agentledger.several" . }}
        - name: node
          containerPort: 8092
        {{- end }}
      {{- if and (include "agentledger.several" .) (semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version) }}
      lifecycle:
        preStop:
          sleep:
            seconds: 5 # until no proxy sends requests here any more; then the node gives its organizations away
      {{- end }}
      startupProbe:
        httpGet:
          path: /livez
          port: http
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: {{ max 1 (div .Values.startSeconds 2) }}
      livenessProbe:
        httpGet:
          path: /livez
          port: http
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet:
          path: /readyz
          port: http
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 2
      securityContext:
        allowPrivilegeEscalation: false
        privileged: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - name: settings
          mountPath: /etc/agentledger
          readOnly: true
        - name: data
          mountPath: /var/lib/agentledger
        - name: anchors
          mountPath: /var/lib/agentledger-anchors
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if include "agentledger.several" . }}
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - topologyKey: {{ . }}
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway # a machine that is gone must not keep a node from starting
      labelSelector:
        matchLabels:
          {{- include "agentledger.selector" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  volumes:
    - name: settings
      configMap:
        name: {{ include "agentledger.name" . }}
{{- end -}}
