package deploy

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/agentledger/agentledger/tools/release/image"
)

// Each variant has exactly its objects, and never a Secret.
func TestObjects(t *testing.T) {
	all := variants()
	for name, want := range map[string]string{
		"embedded":               "ConfigMap/x-agentledger Service/x-agentledger Service/x-agentledger-pods StatefulSet/x-agentledger",
		"embedded, ingress":      "ConfigMap/x-agentledger Ingress/x-agentledger Service/x-agentledger Service/x-agentledger-pods StatefulSet/x-agentledger",
		"embedded, metrics":      "ConfigMap/x-agentledger NetworkPolicy/x-agentledger Service/x-agentledger Service/x-agentledger-pods StatefulSet/x-agentledger",
		"embedded, everything":   "ConfigMap/x-agentledger Ingress/x-agentledger NetworkPolicy/x-agentledger PrometheusRule/x-agentledger Service/x-agentledger Service/x-agentledger-pods ServiceMonitor/x-agentledger StatefulSet/x-agentledger",
		"PostgreSQL":             "ConfigMap/x-agentledger Deployment/x-agentledger PersistentVolumeClaim/x-agentledger-anchors Service/x-agentledger Service/x-agentledger-pods",
		"nodes":                  "ConfigMap/x-agentledger PodDisruptionBudget/x-agentledger Service/x-agentledger Service/x-agentledger-pods StatefulSet/x-agentledger",
		"nodes, everything":      "ConfigMap/x-agentledger Ingress/x-agentledger NetworkPolicy/x-agentledger PodDisruptionBudget/x-agentledger PrometheusRule/x-agentledger Service/x-agentledger Service/x-agentledger-pods ServiceMonitor/x-agentledger StatefulSet/x-agentledger",
		"PostgreSQL, everything": "ConfigMap/x-agentledger Deployment/x-agentledger Ingress/x-agentledger NetworkPolicy/x-agentledger PersistentVolumeClaim/x-agentledger-anchors PrometheusRule/x-agentledger Service/x-agentledger Service/x-agentledger-pods ServiceMonitor/x-agentledger",
	} {
		names := render(t, all[name], "x").names
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// Names fit into 63 bytes for any release name, and two releases share none.
func TestNames(t *testing.T) {
	label := regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	long := strings.Repeat("long-", 10) + "rel"
	red, blue := render(t, everything(), "red"), render(t, everything(), "blue")
	for _, name := range render(t, everything(), long).names {
		if _, name, _ := strings.Cut(name, "/"); !label.MatchString(name) {
			t.Errorf("got %q", name)
		}
	}
	for _, name := range red.names {
		if slices.Contains(blue.names, name) {
			t.Errorf("two releases have %s", name)
		}
	}
	own := red.pod().Labels
	for name, service := range blue.services {
		if matches(service.Spec.Selector, own) {
			t.Errorf("%s of one release reaches the pod of another one", name)
		}
	}
}

func matches(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}

// Selectors match their pod, and ports have the names that others refer to.
func TestReferences(t *testing.T) {
	for name, v := range variants() {
		m := render(t, v, "red")
		pod := m.pod()
		if set := m.statefulSet; set != nil {
			if !matches(set.Spec.Selector.MatchLabels, pod.Labels) || m.services[set.Spec.ServiceName] == nil || *set.Spec.Replicas > 1 && !m.several() {
				t.Errorf("%s: got selector %v, service %q, %d replicas", name, set.Spec.Selector, set.Spec.ServiceName, *set.Spec.Replicas)
			}
		}
		if d := m.deployment; d != nil {
			if !matches(d.Spec.Selector.MatchLabels, pod.Labels) || *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != "Recreate" {
				t.Errorf("%s: got %+v", name, d.Spec)
			}
		}
		ports := map[string]int32{}
		for _, p := range pod.Spec.Containers[0].Ports {
			ports[p.Name] = p.ContainerPort
		}
		metrics := m.services["red-agentledger-pods"].Spec.Ports
		if len(metrics) != len(ports) || len(m.services["red-agentledger"].Spec.Ports) != 1 {
			t.Errorf("%s: ports of services: got %v, of the pod %v", name, metrics, ports)
		}
		for _, s := range m.services {
			if !matches(s.Spec.Selector, pod.Labels) {
				t.Errorf("%s: service %s selects %v", name, s.Name, s.Spec.Selector)
			}
			for _, p := range s.Spec.Ports {
				if ports[p.TargetPort.StrVal] == 0 || p.Name != p.TargetPort.StrVal {
					t.Errorf("%s: service %s has port %+v", name, s.Name, p)
				}
			}
		}
		checkEdges(t, name, m, ports)
	}
}

// checkEdges checks which peers reach the ports.
func checkEdges(t *testing.T, name string, m manifests, ports map[string]int32) {
	t.Helper()
	if m.ingress != nil {
		rule := m.ingress.Spec.Rules[0]
		back := rule.HTTP.Paths[0].Backend.Service
		if s := m.services[back.Name]; s == nil || s.Spec.Ports[0].Name != back.Port.Name || rule.Host != "log.example" {
			t.Errorf("%s: ingress: got %+v", name, rule)
		}
		for _, tls := range m.ingress.Spec.TLS {
			if tls.Hosts[0] != rule.Host || tls.SecretName == "" {
				t.Errorf("%s: ingress: got %+v", name, tls)
			}
		}
	}
	if m.policy != nil {
		if !matches(m.policy.Spec.PodSelector.MatchLabels, m.pod().Labels) {
			t.Errorf("%s: network policy selects %v", name, m.policy.Spec.PodSelector)
		}
		for _, rule := range m.policy.Spec.Ingress {
			port := rule.Ports[0].Port.StrVal
			if ports[port] == 0 || port != "http" && len(rule.From) == 0 || port == "node" && !matches(rule.From[0].PodSelector.MatchLabels, m.pod().Labels) {
				t.Errorf("%s: network policy: got %+v", name, rule)
			}
		}
	}
	if m.monitor != nil {
		var found []string
		for _, s := range m.services {
			if matches(m.monitor.Spec.Selector.MatchLabels, s.Labels) {
				found = append(found, s.Name)
			}
		}
		if !slices.Equal(found, []string{"red-agentledger-pods"}) || m.monitor.Spec.Endpoints[0].Port != "metrics" {
			t.Errorf("%s: the monitor finds %v", name, found)
		}
	}
}

// Every volume has a source and is mounted once, at the configured place.
func TestVolumes(t *testing.T) {
	for name, v := range variants() {
		m := render(t, v, "red")
		pod := m.pod().Spec
		sources := map[string]string{}
		for _, v := range pod.Volumes {
			switch {
			case v.ConfigMap != nil && v.ConfigMap.Name == m.configMap.Name:
				sources[v.Name] = "settings"
			case v.EmptyDir != nil:
				sources[v.Name] = "empty"
			case v.PersistentVolumeClaim != nil && m.claims[v.PersistentVolumeClaim.ClaimName].AccessModes != nil:
				sources[v.Name] = "claim"
			}
		}
		want := map[string]string{"settings": "settings", "data": "empty", "anchors": "claim"}
		if m.statefulSet != nil {
			for _, c := range m.statefulSet.Spec.VolumeClaimTemplates {
				sources[c.Name] = "claim"
			}
			if m.embedded() {
				want["data"] = "claim"
			}
		}
		if !maps.Equal(sources, want) {
			t.Errorf("%s: got %v, want %v", name, sources, want)
		}
		mounts := map[string]string{}
		for _, mount := range pod.Containers[0].VolumeMounts {
			mounts[mount.Name] = mount.MountPath
		}
		want = map[string]string{"settings": "/etc/agentledger", "data": image.DataDir, "anchors": image.AnchorsDir}
		if !maps.Equal(mounts, want) {
			t.Errorf("%s: got %v, want %v", name, mounts, want)
		}
	}
}

// The pod has no more rights than it needs, and secrets are only references.
func TestSecurity(t *testing.T) {
	for name, v := range variants() {
		pod := render(t, v, "red").pod().Spec
		p, c := pod.SecurityContext, pod.Containers[0].SecurityContext
		for field, good := range map[string]bool{
			"one container":            len(pod.Containers) == 1 && len(pod.InitContainers) == 0,
			"no token":                 pod.AutomountServiceAccountToken != nil && !*pod.AutomountServiceAccountToken,
			"no links":                 pod.EnableServiceLinks != nil && !*pod.EnableServiceLinks,
			"host":                     !pod.HostNetwork && !pod.HostPID && !pod.HostIPC,
			"runAsNonRoot":             p.RunAsNonRoot != nil && *p.RunAsNonRoot,
			"user":                     *p.RunAsUser == image.User && *p.RunAsGroup == image.User && *p.FSGroup == image.User,
			"modes of files stay":      *p.FSGroupChangePolicy == corev1.FSGroupChangeOnRootMismatch,
			"seccomp":                  p.SeccompProfile != nil && p.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
			"allowPrivilegeEscalation": c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation,
			"privileged":               c.Privileged != nil && !*c.Privileged,
			"readOnlyRootFilesystem":   c.ReadOnlyRootFilesystem != nil && *c.ReadOnlyRootFilesystem,
			"capabilities":             c.Capabilities != nil && slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) && c.Capabilities.Add == nil,
			"a stop in time":           *pod.TerminationGracePeriodSeconds > 10,
		} {
			if !good {
				t.Errorf("%s: %s: got %+v, %+v", name, field, p, c)
			}
		}
		for _, e := range pod.Containers[0].Env {
			secret := strings.Contains(e.Name, "SECRET") || strings.Contains(e.Name, "KEY") || strings.Contains(e.Name, "PASSWORD") || strings.Contains(e.Name, "STORAGE")
			if secret != (e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && e.ValueFrom.SecretKeyRef.Name != "" && e.ValueFrom.SecretKeyRef.Key != "") {
				t.Errorf("%s: got %+v", name, e)
			}
		}
	}
}

// The settings contain the values, and no value overrides a setting of the chart.
func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		values values
		want   string
	}{
		"embedded": {with(nil), `{"anchors":"/var/lib/agentledger-anchors/anchors","data":"/var/lib/agentledger/data","id_listen":"127.0.0.1:8091",` +
			`"listen":":8080","log_format":"json","metrics_listen":"127.0.0.1:9464","public_url":"https://log.example"}`},
		"everything": {everything(), `{"anchors":"/var/lib/agentledger-anchors/anchors","client_address_header":"X-Real-IP","data":"/var/lib/agentledger/data","id_listen":"127.0.0.1:8091",` +
			`"listen":":8080","log_format":"json","metrics_listen":":9464","plans":{"enterprise":0,"free":10},"public_url":"https://log.example","signup":"members","tuning":{"cache_mib":64,"drain":"5s"}}`},
		"log_format": {with(values{"settings": values{"log_format": "text"}, "ingress": values{"enabled": true, "host": "a.example"}}),
			`{"anchors":"/var/lib/agentledger-anchors/anchors","client_address_header":"X-Forwarded-For","data":"/var/lib/agentledger/data","id_listen":"127.0.0.1:8091",` +
				`"listen":":8080","log_format":"text","metrics_listen":"127.0.0.1:9464","public_url":"https://log.example"}`},
	} {
		m := render(t, c.values, "red")
		var parsed any
		if err := json.Unmarshal([]byte(m.configMap.Data["agentledger.json"]), &parsed); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(parsed)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, c.want)
		}
	}
	first, second := render(t, with(nil), "red"), render(t, everything(), "red")
	if first.pod().Annotations["checksum/settings"] == second.pod().Annotations["checksum/settings"] {
		t.Error("other settings do not restart the pod")
	}
}

// Values that the chart cannot use are rejected before anything is rendered.
func TestSchema(t *testing.T) {
	for name, bad := range map[string]values{
		"no public URL":               {"secrets": values{"name": "s"}},
		"no secret":                   {"publicURL": "https://log.example"},
		"a public URL with a query":   with(values{"publicURL": "https://log.example/?a=b"}),
		"a public URL without scheme": with(values{"publicURL": "log.example"}),
		"an unknown value":            with(values{"replicas": 2}),
		"an unknown part of a value":  with(values{"image": values{"repository": "a", "tags": "1"}}),
		"two replicas":                with(values{"replicaCount": 2}),
		"a secret in the values":      with(values{"secrets": values{"name": "s", "masterKey": "k", "platformSecret": "p", "value": "x"}}),
		"a key in place of its name":  with(values{"secrets": values{"name": "s", "masterKey": "kD+/fHqN=", "platformSecret": "p"}}),
		"a digest that is none":       with(values{"image": values{"repository": "a", "digest": "sha256:12"}}),
		"a size without a unit":       with(values{"data": values{"size": "50"}}),
		"a number as text":            with(values{"stopSeconds": "60"}),
		"a stop that is too short":    with(values{"stopSeconds": 5}),
		"an ingress without a host":   with(values{"ingress": values{"enabled": true}}),
		"a monitor without metrics":   with(values{"metrics": values{"enabled": false, "serviceMonitor": values{"enabled": true}}}),
		"alerts without metrics":      with(values{"metrics": values{"enabled": false, "prometheusRule": values{"enabled": true}}}),
		"a setting of the chart":      with(values{"settings": values{"data": "/tmp"}}),
		"listen as a setting":         with(values{"settings": values{"listen": ":1"}}),
		"storage as a setting":        with(values{"settings": values{"storage": "postgres://u:p@h/d"}}),
		"a setting by its flag":       with(values{"settings": values{"log-level": "debug"}}),
		"a variable of the chart":     with(values{"extraEnv": []any{values{"name": "AGENTLEDGER_DATA", "value": "/tmp"}}}),
		"nodes on the embedded store": with(values{"nodes": 2}),
		"no node":                     with(values{"nodes": 0}),
		"half a node":                 with(values{"nodes": 1.5}),
		"a name for all nodes":        with(values{"nodeHost": "ledger.example"}),
		"a listener of nodes":         with(values{"settings": values{"node_listen": ":1"}}),
		"a URL of nodes":              with(values{"extraEnv": []any{values{"name": "AGENTLEDGER_NODE_URL", "value": "https://a:1"}}}),
		"an archive without a secret": with(values{"archive": values{"url": "s3://bucket/x?region=r"}}),
		"a secret without an archive": with(values{"archive": values{"url": "", "secretName": "s"}}),
		"an archive in a folder":      with(values{"archive": values{"url": "file:///archive", "secretName": "s"}}),
		"a key in the archive's URL":  with(values{"archive": values{"url": "s3://k:s@bucket/x?region=r", "secretName": "s"}}),
		"archive as a setting":        with(values{"settings": values{"archive": "s3://bucket?region=r"}}),
		"a header with a line break":  with(values{"clientAddressHeader": "X\nY"}),
		"a port of none":              with(values{"service": values{"type": "ClusterIP", "port": 0}}),
		"a type of service":           with(values{"service": values{"type": "ExternalName", "port": 80}}),
	} {
		if _, err := renderFiles(loadChart(t, version), bad, "red", oldest); err == nil {
			t.Errorf("%s: accepted", name)
		} else if !strings.Contains(err.Error(), "values don't meet the specifications of the schema") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The notes name the objects of the release.
func TestNotes(t *testing.T) {
	for name, want := range map[string][]string{
		"embedded":               {"statefulset/red-agentledger", "Secret ledger-secrets", "set clientAddressHeader"},
		"embedded, ingress":      {"statefulset/red-agentledger"},
		"embedded, metrics":      {"statefulset/red-agentledger", "set clientAddressHeader"},
		"PostgreSQL, everything": {"deployment/red-agentledger", "from PostgreSQL."},
		"nodes":                  {"statefulset/red-agentledger", "from PostgreSQL by 3 nodes.", "set clientAddressHeader"},
		"nodes, everything":      {"statefulset/red-agentledger", "by 5 nodes"},
	} {
		notes := render(t, variants()[name], "red").notes
		for _, text := range append(want, "https://log.example", "port-forward", "--namespace ledger") {
			if !strings.Contains(notes, text) {
				t.Errorf("%s: want %q in\n%s", name, text, notes)
			}
		}
		if strings.Contains(notes, "clientAddressHeader") && !slices.Contains(want, "set clientAddressHeader") {
			t.Errorf("%s: got\n%s", name, notes)
		}
	}
}

// Chart and image have the version of the release.
func TestVersion(t *testing.T) {
	packed := loadChart(t, version)
	if err := packed.Validate(); err != nil || packed.Metadata.Version != version || packed.Metadata.AppVersion != version {
		t.Errorf("got %+v, %v", packed.Metadata, err)
	}
	if got, want := render(t, with(nil), "red").pod().Spec.Containers[0].Image, "agentledger:"+version; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	want := "registry.example:5000/ledger@sha256:" + strings.Repeat("0", 64)
	if got := render(t, everything(), "red").pod().Spec.Containers[0].Image; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// An upgrade to another version and other values changes no immutable member of a Kubernetes object.
func TestUpgrade(t *testing.T) {
	more := everything()
	more["data"], more["anchors"] = values{"size": "50Gi"}, values{"size": "1Gi"} // claims are immutable
	old, upgraded := renderVersion(t, with(nil), "red", "1.0.0"), renderVersion(t, more, "red", "2.0.0")
	fixed := func(m manifests) any {
		s := m.statefulSet.Spec
		return []any{m.statefulSet.Name, s.Selector, s.ServiceName, s.PodManagementPolicy, s.VolumeClaimTemplates,
			m.services[s.ServiceName].Spec.ClusterIP}
	}
	if !reflect.DeepEqual(fixed(old), fixed(upgraded)) {
		t.Errorf("got %+v, before %+v", fixed(upgraded), fixed(old))
	}
	database := values{"secretName": "ledger-database"}
	more["postgresql"] = database
	old, upgraded = renderVersion(t, with(values{"postgresql": database}), "red", "1.0.0"), renderVersion(t, more, "red", "2.0.0")
	if !reflect.DeepEqual(old.deployment.Spec.Selector, upgraded.deployment.Spec.Selector) || !reflect.DeepEqual(old.claims, upgraded.claims) {
		t.Errorf("got %+v, before %+v", upgraded.deployment.Spec.Selector, old.deployment.Spec.Selector)
	}
	more["nodes"] = 5
	old, upgraded = renderVersion(t, with(values{"postgresql": database, "nodes": 3}), "red", "1.0.0"), renderVersion(t, more, "red", "2.0.0")
	if !reflect.DeepEqual(fixed(old), fixed(upgraded)) {
		t.Errorf("got %+v, before %+v", fixed(upgraded), fixed(old))
	}
}

// The alert rules are the ones of the tree, without rendered parts.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("../../deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want alertFile
	if err := yaml.UnmarshalStrict(text, &want); err != nil {
		t.Fatal(err)
	}
	got := render(t, everything(), "red").rules
	if got == nil || len(want.Groups) == 0 || !reflect.DeepEqual(got.Spec, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
