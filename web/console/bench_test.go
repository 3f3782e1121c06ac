package console_test

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

var benchActs = flag.Int("acts", 20_000, "acts of the organization whose pages BenchmarkPages opens")

// BenchmarkPages opens the pages of an organization with many acts, 1,000 open approvals, 300 policies and 500 members. The times are those of a browser that has
// nothing stored: the whole page, over HTTP, with the session's check. There is no warm-up.
//
//	go test ./web/console -run - -bench Pages -benchtime 1x -timeout 1h -args -acts 1000000
func BenchmarkPages(b *testing.B) {
	s := servicetest.New(b)
	ann := s.SignIn(s.Red.Owner)
	ann.Call(http.MethodPut, "/v1/console/columns", map[string]any{"columns": []string{"amount_usd", "order"}}, nil)
	requireApproval(ann, 1, "Refunds are asked.")
	for n := range 300 {
		ann.Call(http.MethodPost, "/v1/console/policies", map[string]any{"policy_id": fmt.Sprintf("p%d", n), "name": fmt.Sprintf("Policy %d", n),
			"rules": []any{map[string]any{"rule_id": "r", "tool": fmt.Sprintf("tool%d.*", n), "decision": "deny"}}}, nil)
	}
	began := time.Now()
	for n := range 500 {
		s.Red.Join(fmt.Sprintf("person%d", n), "approver")
	}
	b.Logf("500 members joined in %v", time.Since(began))
	ann = s.SignIn(s.Red.Owner) // each invitation has begun a session, which ends the oldest
	began = time.Now()
	act := fillActs(s, *benchActs)
	b.Logf("%d acts in %v", *benchActs, time.Since(began))
	began = time.Now()
	approval := askThousand(s, ann)
	b.Logf("1,000 approvals in %v", time.Since(began))
	began = time.Now()
	for !strings.Contains(ann.Get("/console/activity?q=order:A-"+strconv.Itoa(*benchActs-1)).Body, act) {
		if time.Since(began) > 10*time.Minute {
			b.Fatal("the index doesn't have the last act")
		}
		time.Sleep(100 * time.Millisecond)
	}
	const base = "/console"
	for _, page := range []struct{ name, path string }{
		{"overview", base},
		{"activity", base + "/activity"},
		{"activity denied", base + "/activity?q=outcome:denied"},
		{"activity amount", base + "/activity?q=amount_usd:>500"},
		{"activity tool amount", base + "/activity?q=tool:shop.tool7.**+amount_usd:>900"},
		{"activity text", base + "/activity?q=A-19999"},
		{"statistics", base + "/stats"},
		{"act", base + "/acts/" + act},
		{"event", base + "/events/" + act},
		{"agent", base + "/agents/" + s.Red.Agent.AgentID},
		{"agents", base + "/agents"},
		{"approvals", base + "/approvals"},
		{"approval", base + "/approvals/" + approval},
		{"policies", base + "/policies"},
		{"policy", base + "/policies/p"},
		{"members", base + "/members"},
		{"log", "/log/red"},
	} {
		b.Run(strings.ReplaceAll(page.name, " ", "_"), func(b *testing.B) {
			var took []time.Duration
			size, used := 0, s.ProcessorTime()
			wantsActs := strings.HasPrefix(page.name, "activity") && page.name != "activity text" // whose first page may be empty
			for range 200 {
				began := time.Now()
				got := ann.Get(page.path)
				took = append(took, time.Since(began))
				if size = len(got.Body); got.Status != http.StatusOK || wantsActs && !strings.Contains(got.Body, "/console/acts/bench-") {
					b.Fatalf("%s: %d %s", page.path, got.Status, got.Body[:min(300, len(got.Body))])
				}
			}
			used = s.ProcessorTime() - used
			slices.Sort(took)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(took[99])/1e6, "p50-ms")
			b.ReportMetric(float64(took[197])/1e6, "p99-ms")
			b.ReportMetric(float64(used)/1e6/200, "cpu-ms")
			b.ReportMetric(float64(size)/1024, "KiB")
			for range b.N {
			}
		})
	}
}

// askThousand asks for as many approvals as may be open: four agents for 250 each, by two keys. It returns one of them.
func askThousand(s *servicetest.Service, ann *servicetest.Person) (approval string) {
	keys := []*servicetest.Organization{s.Red, s.Red.At(s)}
	var made struct {
		Secret string `json:"secret"`
	}
	ann.Call(http.MethodPost, "/v1/console/ingest-keys", map[string]any{"name": "second", "asks": true}, &made)
	keys[1].IngestKey.Secret = made.Secret
	for agent := range 4 {
		name := fmt.Sprintf("desk-%d", agent)
		ann.Call(http.MethodPost, "/v1/console/agents", map[string]any{"agent_id": name, "display_name": "Desk " + name}, nil)
		for n := range 250 {
			order := fmt.Sprintf("B-%d", 250*agent+n)
			approval = keys[agent/2].Ask(map[string]any{"agent_id": name, "payload": map[string]any{"amount_usd": n, "order": order}}).ID
		}
	}
	return approval
}

// fillActs sends acts of one event in batches, and returns the id of the last one. One of a hundred is denied.
func fillActs(s *servicetest.Service, count int) (last string) {
	const batch = 1000
	var next atomic.Int64
	var all sync.WaitGroup
	name := func(n int) string { return fmt.Sprintf("bench-%07d", n) }
	for range 2 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for at := int(next.Add(batch)) - batch; at < count; at = int(next.Add(batch)) - batch {
				var lines bytes.Buffer
				for n := at; n < min(at+batch, count); n++ {
					decision := "allow"
					if n%100 == 0 {
						decision = "deny"
					}
					lines.Write(s.Red.Sign(name(n), map[string]any{"trace_id": fmt.Sprint("trc-", n/10), "tool_name": fmt.Sprintf("shop.tool%d.run", n%50),
						"policy_decision": decision, "payload": map[string]any{"amount_usd": n % 1000, "order": fmt.Sprint("A-", n)}}))
					lines.WriteByte('\n')
				}
				r, _ := http.NewRequestWithContext(s.Context(), http.MethodPost, s.URL+"/v1/ingest/events/batch", &lines)
				r.Header.Set("Content-Type", "application/x-ndjson")
				r.Header.Set("Authorization", "Bearer "+s.Red.IngestKey.Secret)
				answer, err := http.DefaultClient.Do(r)
				if err != nil || answer.StatusCode != http.StatusOK {
					s.Errorf("batch at %d: %v, %v", at, answer, err)
					return
				}
				_ = answer.Body.Close()
			}
		})
	}
	all.Wait()
	return name(count - 1)
}
