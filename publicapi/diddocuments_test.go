package publicapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/publicapi"
	"github.com/agentledger/agentledger/storage"
)

// counted counts the reads of all keys of an agent, by agent.
type counted struct {
	publicapi.Agents
	mu    sync.Mutex
	reads map[id.Agent]int
}

func (c *counted) DIDKeys(ctx context.Context, owner id.Tenant, a id.Agent) ([]did.Key, error) {
	c.mu.Lock()
	c.reads[a]++
	c.mu.Unlock()
	return c.Agents.DIDKeys(ctx, owner, a)
}

func (c *counted) of(a id.Agent) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads[a]
}

// storeKeys stores n more keys of an agent, as before the number of keys was bounded.
func (w *world) storeKeys(o *owner, n int) {
	w.Helper()
	var changes []storage.Change
	for i := range n {
		value, err := json.Marshal(map[string]any{
			"key_id": fmt.Sprintf("k%05d", i), "public_key": did.Multikey(edkey.NewPrivate().Public().Bytes()),
			"custody": "agent", "status": "active", "order": 1, "registered_at": id.InstantOf(w.now),
		})
		if err != nil {
			w.Fatal(err)
		}
		changes = append(changes, storage.Change{Kind: "agent_key", Key: fmt.Sprintf("%s/k%05d", o.agent.Agent, i), Value: value})
	}
	if err := w.store.Write(context.Background(), o.tenant, changes); err != nil {
		w.Fatal(err)
	}
}

// However many clients request the documents of an agent with many keys, its keys are read once per form and config
// version. The other organization's document costs only its own reads.
func TestDocumentsAreMadeOnce(t *testing.T) {
	w := newWorld(t)
	w.storeKeys(&w.red, 3000)
	c := &counted{Agents: w.agents, reads: map[id.Agent]int{}}
	w.serve(c)
	web := did.Web("ledger.example:8443", "helper-red")
	attack := []string{"/v1/public/agents/helper-red/did.json", "/v1/public/did/" + strings.ReplaceAll(web, "%", "%25"), "/v1/public/agents/helper-red/did"}
	var group sync.WaitGroup
	var wrong atomic.Int64
	for range 16 {
		group.Go(func() {
			for range 5 {
				for _, target := range append(attack, "/v1/public/agents/helper-blue/did") {
					if !answered(w.fast, target) {
						wrong.Add(1)
					}
				}
			}
		})
	}
	group.Wait()
	if n := wrong.Load(); n > 0 {
		t.Errorf("%d requests were not answered", n)
	}
	for name, want := range map[id.Agent]int{"helper-red": 2, "helper-blue": 1} { // did.json and did; did
		if got := c.of(name); got != want {
			t.Errorf("keys of %s: got %d reads, want %d", name, got, want)
		}
	}
	w.register(&w.blue)
	for range 3 {
		answered(w.fast, attack[0])
		answered(w.fast, "/v1/public/agents/helper-blue/did")
	}
	for name, want := range map[id.Agent]int{"helper-red": 2, "helper-blue": 2} {
		if got := c.of(name); got != want {
			t.Errorf("keys of %s after a change of blue's: got %d reads, want %d", name, got, want)
		}
	}
}

func answered(h http.Handler, target string) bool {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, target, nil))
	return answer.Code == http.StatusOK
}

// A cached document costs as much for 3,000 keys as for one.
func TestKeptDocumentsCostTheSame(t *testing.T) {
	w := newWorld(t)
	w.storeKeys(&w.red, 3000)
	cost := func(slug string) float64 {
		target := "/v1/public/agents/helper-" + slug + "/did.json"
		request := httptest.NewRequest(http.MethodGet, target, nil)
		etag := w.get(target).Header().Get("ETag")
		request.Header.Set("If-None-Match", etag)
		return testing.AllocsPerRun(100, func() {
			answer := httptest.NewRecorder()
			w.fast.ServeHTTP(answer, request)
			if answer.Code != http.StatusNotModified {
				t.Errorf("got %d", answer.Code)
			}
		})
	}
	red, blue := cost("red"), cost("blue")
	if red > blue+20 {
		t.Errorf("got %.0f allocations for 3,001 keys and %.0f for one", red, blue)
	}
}

// A change of keys is in the next response, with another ETag. The absence of an active key is cached until the next
// change, too.
func TestDocumentsFollowChanges(t *testing.T) {
	w := newWorld(t)
	c := &counted{Agents: w.agents, reads: map[id.Agent]int{}}
	w.serve(c)
	const target = "/v1/public/agents/helper-red/did"
	first := w.get(target).Header().Get("ETag")
	if _, err := w.agents.RevokeKey(t.Context(), w.red.tenant, "acc", w.red.agent.Agent, w.red.agent.Key, agent.Revocation{}); err != nil {
		t.Fatal(err)
	}
	before := c.of("helper-red")
	for range 3 {
		w.missing(target)
	}
	if got := c.of("helper-red") - before; got != 1 {
		t.Errorf("without an active key: got %d reads, want 1", got)
	}
	w.register(&w.red)
	if second := w.get(target).Header().Get("ETag"); second == first {
		t.Error("another key has the same tag")
	}
}

// The documents of many agents stay within the bound in bytes.
func TestDocumentsHaveABound(t *testing.T) {
	w := newWorld(t)
	w.storeKeys(&w.red, 100) // about 30 KiB
	c := &counted{Agents: w.agents, reads: map[id.Agent]int{}}
	w.documentBytes = 8 << 10
	w.serve(c)
	for range 3 {
		w.get("/v1/public/agents/helper-red/did.json")
		w.get("/v1/public/agents/helper-blue/did.json")
	}
	if red, blue := c.of("helper-red"), c.of("helper-blue"); red < 3 || blue != 1 {
		t.Errorf("got %d and %d reads, want that what is larger than all room is not kept, and does not push out what is", red, blue)
	}
}

// BenchmarkDocuments requests the documents of an agent with 1,000 keys, cached and not cached.
func BenchmarkDocuments(b *testing.B) {
	for name, keys := range map[string]int{"one-key": 0, "1000-keys": 999} {
		w := newWorld(b)
		w.storeKeys(&w.red, keys)
		b.Run(name+"/kept", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.timed("/v1/public/agents/helper-red/did.json", "")
			}
		})
		b.Run(name+"/made", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				w.serve(w.agents)
				b.StartTimer()
				w.timed("/v1/public/agents/helper-red/did.json", "")
			}
		})
	}
}
