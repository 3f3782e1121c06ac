package deploy

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/agentledger/agentledger/tools/release/chart"
)

const version = "1.2.3-rc.1"

type values = map[string]any

// archiveURL names an object store at an endpoint that the tests of starts put their own into.
const (
	archiveEndpoint = "https://store.example"
	archiveURL      = "s3://bucket/ledger?endpoint=" + archiveEndpoint
)

// with returns the smallest values that the chart takes, and more.
func with(more values) values {
	v := values{"publicURL": "https://log.example", "secrets": values{"name": "ledger-secrets"}}
	maps.Copy(v, more)
	return v
}

// everything turns on all optional parts.
func everything() values {
	podsOf := func(name string) []any {
		return []any{values{"podSelector": values{"matchLabels": values{"app": name}}}}
	}
	return with(values{
		"image":            values{"repository": "registry.example:5000/ledger", "digest": "sha256:" + strings.Repeat("0", 64)},
		"imagePullSecrets": []any{values{"name": "registry"}},
		"data":             values{"size": "100Gi", "storageClass": "fast"},
		"anchors":          values{"size": "2Gi", "storageClass": "other"},
		"settings":         values{"plans": values{"free": 10, "enterprise": 0}, "signup": "members", "tuning": values{"cache_mib": 64, "drain": "5s"}},
		"service":          values{"type": "NodePort", "port": 8443, "annotations": values{"a": "b"}},
		"ingress":          values{"enabled": true, "className": "nginx", "host": "log.example", "tlsSecretName": "log-tls", "annotations": values{"c": "d"}},
		"metrics": values{"enabled": true, "serviceMonitor": values{"enabled": true, "interval": "15s", "labels": values{"release": "prometheus"}},
			"prometheusRule": values{"enabled": true, "labels": values{"release": "prometheus"}}},
		"networkPolicy":       values{"enabled": true, "from": podsOf("ingress"), "metricsFrom": podsOf("prometheus"), "egress": podsOf("postgres")},
		"resources":           values{"limits": values{"memory": "4Gi", "cpu": "2"}},
		"podAnnotations":      values{"e": "f"},
		"podLabels":           values{"g": "h"},
		"nodeSelector":        values{"disk": "nvme"},
		"tolerations":         []any{values{"key": "ledger", "operator": "Exists"}},
		"affinity":            values{"nodeAffinity": values{}},
		"priorityClassName":   "high",
		"extraEnv":            []any{values{"name": "GOMEMLIMIT", "value": "3GiB"}},
		"startSeconds":        600,
		"stopSeconds":         90,
		"clientAddressHeader": "X-Real-IP",
	})
}

// variants are the values that the tests render.
func variants() map[string]values {
	database := values{"secretName": "ledger-database"}
	databaseAndAll := everything()
	databaseAndAll["postgresql"] = database
	nodesAndAll := everything()
	maps.Copy(nodesAndAll, values{"postgresql": database, "nodes": 5, "nodeHost": "$(POD_NAME).red-agentledger-pods.ledger.svc",
		"topologySpreadConstraints": []any{values{"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}}})
	return map[string]values{
		"embedded":                      with(nil),
		"embedded, ingress":             with(values{"ingress": values{"enabled": true, "host": "log.example"}}),
		"embedded, metrics":             with(values{"metrics": values{"enabled": true}, "networkPolicy": values{"enabled": true}}),
		"embedded, everything":          everything(),
		"PostgreSQL":                    with(values{"postgresql": database}),
		"PostgreSQL, everything":        databaseAndAll,
		"nodes":                         with(values{"postgresql": database, "nodes": 3}),
		"nodes, everything":             nodesAndAll,
		"embedded, archive":             with(values{"archive": values{"url": archiveURL, "secretName": "ledger-archive"}}),
		"PostgreSQL, archive":           with(values{"postgresql": database, "archive": values{"url": archiveURL, "secretName": "y", "accessKeyID": "id", "secretAccessKey": "key"}}),
		"PostgreSQL, keys of its own":   with(values{"postgresql": values{"secretName": "x", "url": "uri", "password": "pw"}}),
		"embedded, names of keys, path": with(values{"publicURL": "http://localhost:8080/ledger", "secrets": values{"name": "s", "masterKey": "k", "platformSecret": "p.q"}}),
	}
}

// monitor is the part of a ServiceMonitor that the chart makes.
type monitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// rules is the part of a PrometheusRule that the chart makes.
type rules struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              alertFile `json:"spec"`
}

// alertFile is a file of alert rules of Prometheus.
type alertFile struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			For         string            `json:"for"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

// manifests are the objects of one rendering.
type manifests struct {
	configMap   *corev1.ConfigMap
	claims      map[string]corev1.PersistentVolumeClaimSpec // of the Deployment, and the templates of the StatefulSet
	statefulSet *appsv1.StatefulSet
	deployment  *appsv1.Deployment
	services    map[string]*corev1.Service
	ingress     *networkingv1.Ingress
	policy      *networkingv1.NetworkPolicy
	disruption  *policyv1.PodDisruptionBudget
	monitor     *monitor
	rules       *rules
	names       []string // kind/name
	notes       string
}

// packChart returns the packed chart of that version.
func packChart(t *testing.T, version string) (file string) {
	t.Helper()
	dir := t.TempDir()
	if err := chart.Write(dir, "../..", version, time.Unix(1_800_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, chart.Name(version))
}

func loadChart(t *testing.T, version string) *chartv2.Chart {
	t.Helper()
	c, err := loader.Load(packChart(t, version))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// oldest is the oldest cluster that the chart is for.
const oldest = "v1.25.0"

func renderFiles(c *chartv2.Chart, v values, release, cluster string) (map[string]string, error) {
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = common.KubeVersion{Version: cluster}
	all, err := util.ToRenderValues(c, v, common.ReleaseOptions{Name: release, Namespace: "ledger", IsInstall: true, Revision: 1}, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.RenderWithContext(context.Background(), c, all)
}

// render renders the chart. Every object must be of a known kind, with known members only.
func render(t *testing.T, v values, release string) manifests {
	t.Helper()
	return renderVersion(t, v, release, version)
}

func renderVersion(t *testing.T, v values, release, version string) manifests {
	t.Helper()
	return renderOn(t, v, release, version, oldest)
}

// renderOn renders the chart for a version of Kubernetes.
func renderOn(t *testing.T, v values, release, version, cluster string) manifests {
	t.Helper()
	files, err := renderFiles(loadChart(t, version), v, release, cluster)
	if err != nil {
		t.Fatal(err)
	}
	m := manifests{services: map[string]*corev1.Service{}, claims: map[string]corev1.PersistentVolumeClaimSpec{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch filepath.Ext(name) {
		case ".txt":
			m.notes = files[name]
		case ".yaml":
			for _, document := range strings.Split("\n"+files[name], "\n---\n") {
				if strings.TrimSpace(document) == "" {
					continue
				}
				if err := m.read(document); err != nil {
					t.Errorf("%s: %v\n%s", name, err, document)
				}
			}
		}
	}
	return m
}

func (m *manifests) read(document string) error {
	var head struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := yaml.Unmarshal([]byte(document), &head); err != nil {
		return err
	}
	m.names = append(m.names, head.Kind+"/"+head.Name)
	strict := func(into any) error { return yaml.UnmarshalStrict([]byte(document), into) }
	switch head.APIVersion + " " + head.Kind {
	case "v1 ConfigMap":
		m.configMap = new(corev1.ConfigMap)
		return strict(m.configMap)
	case "v1 Service":
		s := new(corev1.Service)
		m.services[head.Name] = s
		return strict(s)
	case "v1 PersistentVolumeClaim":
		var c corev1.PersistentVolumeClaim
		err := strict(&c)
		m.claims[head.Name] = c.Spec
		return err
	case "apps/v1 StatefulSet":
		m.statefulSet = new(appsv1.StatefulSet)
		return strict(m.statefulSet)
	case "apps/v1 Deployment":
		m.deployment = new(appsv1.Deployment)
		return strict(m.deployment)
	case "networking.k8s.io/v1 Ingress":
		m.ingress = new(networkingv1.Ingress)
		return strict(m.ingress)
	case "networking.k8s.io/v1 NetworkPolicy":
		m.policy = new(networkingv1.NetworkPolicy)
		return strict(m.policy)
	case "policy/v1 PodDisruptionBudget":
		m.disruption = new(policyv1.PodDisruptionBudget)
		return strict(m.disruption)
	case "monitoring.coreos.com/v1 ServiceMonitor":
		m.monitor = new(monitor)
		return strict(m.monitor)
	case "monitoring.coreos.com/v1 PrometheusRule":
		m.rules = new(rules)
		return strict(m.rules)
	}
	return fmt.Errorf("unknown kind %s %s", head.APIVersion, head.Kind)
}

// embedded reports whether the pod has the embedded store.
func (m manifests) embedded() bool {
	return m.statefulSet != nil && len(m.statefulSet.Spec.VolumeClaimTemplates) == 2
}

// several reports whether the pods are nodes.
func (m manifests) several() bool { return m.disruption != nil }

// pod returns the template of the pods.
func (m manifests) pod() corev1.PodTemplateSpec {
	if m.statefulSet != nil {
		return m.statefulSet.Spec.Template
	}
	return m.deployment.Spec.Template
}

// The strict linter has nothing to say about any variant.
func TestLint(t *testing.T) {
	dir := t.TempDir()
	if err := chartutil.ExpandFile(dir, packChart(t, version)); err != nil {
		t.Fatal(err)
	}
	for name, v := range variants() {
		for _, message := range lint.RunAll(filepath.Join(dir, "agentledger"), v, "ledger").Messages {
			t.Errorf("%s: %v", name, message)
		}
	}
}
