package deploy

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// Each node has a volume. Nodes are spread, and are stopped one at a time, after the proxies have removed them.
func TestNodes(t *testing.T) {
	for name, topologies := range map[string]string{"nodes": "kubernetes.io/hostname topology.kubernetes.io/zone", "nodes, everything": "rack"} {
		m := renderOn(t, variants()[name], "red", version, "v1.30.0")
		pod, set, pods := m.pod(), m.statefulSet, m.services["red-agentledger-pods"]
		var spread []string
		for _, c := range pod.Spec.TopologySpreadConstraints {
			spread = append(spread, c.TopologyKey)
			if c.LabelSelector != nil && !matches(c.LabelSelector.MatchLabels, pod.Labels) {
				t.Errorf("%s: spreads %v", name, c.LabelSelector)
			}
		}
		stop, grace := pod.Spec.Containers[0].Lifecycle, int64(60+5)
		if seconds, is := variants()[name]["stopSeconds"].(int); is {
			grace = int64(seconds + 5) // the time before SIGTERM counts
		}
		for what, good := range map[string]bool{
			"replicas":    fmt.Sprint(*set.Spec.Replicas) == fmt.Sprint(variants()[name]["nodes"]),
			"in order":    set.Spec.PodManagementPolicy == "OrderedReady",
			"claims":      len(set.Spec.VolumeClaimTemplates) == 1 && set.Spec.VolumeClaimTemplates[0].Name == "anchors",
			"names":       pods.Spec.ClusterIP == "None" && pods.Spec.PublishNotReadyAddresses,
			"disruption":  m.disruption.Spec.MaxUnavailable.IntValue() == 1 && matches(m.disruption.Spec.Selector.MatchLabels, pod.Labels),
			"spread":      strings.Join(spread, " ") == topologies,
			"stop":        stop != nil && stop.PreStop.Sleep.Seconds == 5 && *pod.Spec.TerminationGracePeriodSeconds == grace,
			"older":       render(t, variants()[name], "red").pod().Spec.Containers[0].Lifecycle == nil,
			"one process": renderOn(t, variants()["PostgreSQL"], "red", version, "v1.30.0").pod().Spec.Containers[0].Lifecycle == nil,
		} {
			if !good {
				t.Errorf("%s: %s: not as it should be", name, what)
			}
		}
	}
}

// The chart's pods find each other: each node sees all of them.
func TestChartNodesSeeEachOther(t *testing.T) {
	server := startDatabase(t)
	v := variants()["nodes"]
	v["metrics"] = values{"enabled": true}
	m := render(t, v, "red")
	var all []start
	for range *m.statefulSet.Spec.Replicas {
		p := newMachine(t)
		settings := p.local(m.configMap.Data["agentledger.json"])
		if err := os.WriteFile(p.root+"/etc/agentledger/agentledger.json", []byte(settings), 0o644); err != nil {
			t.Fatal(err)
		}
		container := m.pod().Spec.Containers[0]
		all = append(all, start{p, []string{"--config", p.local(container.Args[1]), container.Args[2]}, environmentOf(t, p, container, map[string]string{
			"ledger-secrets/master-key": masterKey, "ledger-secrets/platform-secret": "a platform secret",
			"ledger-database/url": server.URL(), "ledger-database/password": "secret"})})
	}
	serveTogether(t, all, time.Duration(*m.pod().Spec.TerminationGracePeriodSeconds)*time.Second)
}

const masterKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// startDatabase starts a server that the image's user can reach.
func startDatabase(t *testing.T) *pgtest.Server {
	t.Helper()
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	if err := os.Chmod(server.Dir(), 0o755); err != nil { // it contains the socket
		t.Fatal(err)
	}
	return server
}

// start describes how a node is started.
type start struct {
	machine   machine
	args, env []string
}

// serveTogether starts nodes one after the other, checks that each sees all of them, and stops them.
func serveTogether(t *testing.T, all []start, stop time.Duration) {
	t.Helper()
	var metrics []string
	var serve func(waiting []start)
	serve = func(waiting []start) {
		if len(waiting) == 0 {
			for _, url := range metrics {
				wantNodes(t, url, len(all))
			}
			return
		}
		one := waiting[0]
		one.machine.serve(t, one.args, one.env, stop, func(urls map[string]string) {
			if got := statusOf(t, urls["main"]+"/readyz"); got != http.StatusOK {
				t.Errorf("/readyz: got %d", got)
			}
			metrics = append(metrics, urls["metrics"])
			serve(waiting[1:])
		})
	}
	serve(all)
}

// wantNodes waits until a node sees the given number of nodes.
func wantNodes(t *testing.T, metrics string, want int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get(metrics + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err == nil && strings.Contains(string(text), fmt.Sprintf("\nagentledger_nodes %d\n", want)) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not see %d nodes: %v", metrics, want, err)
		}
	}
}

// addressOfNode returns an address at which no other program of this machine listens: its IP address is random.
func addressOfNode() string {
	return fmt.Sprintf("127.%d.%d.%d:8092", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}
