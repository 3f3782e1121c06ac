package publicapi_test

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// bentStore is a store that returns a different entry at an index.
type bentStore struct {
	*storagetest.Model
	from *owner
	at   id.Index
	bent atomic.Bool
}

func (s *bentStore) Events(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		for e, err := range s.Model.Events(ctx, t, begin, end, parts) {
			if s.bent.Load() && t == s.from.tenant && e.Index == s.at {
				e.Entry.Record[31] ^= 1
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// An entry that differs from the leaf in the tree is never sent in a bundle, neither as the event's entry nor as the
// previous one, and is counted. Responses that depend only on the tree are served.
func TestNoBundleOfAnEntryThatIsNotInTheTree(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseFull, names("e", 300)...)
	w.append(&w.blue, id.DiscloseFull, names("e", 300)...)
	if err := w.ledgers.Close(); err != nil {
		t.Fatal(err)
	}
	anchors, err := anchor.Open(w.anchors)
	if err != nil {
		t.Fatal(err)
	}
	store, registry := &bentStore{Model: w.store, from: &w.red, at: 17}, prometheus.NewRegistry()
	w.ledgers, err = log.Open(t.Context(), log.Options{Store: store, Keyring: w.keyring, Anchors: anchors, Clock: w.clock, Metrics: registry})
	if err != nil {
		t.Fatal(err)
	}
	defer w.ledgers.Close()
	w.serve(w.agents)
	w.get("/v1/public/orgs/red/verify/e-17")
	store.bent.Store(true)
	refused := []string{"red/verify/e-17", "red/verify/e-18", "red/verify/e-17?format=tlog-proof", "red/verify/e-17?format=cose"}
	for _, target := range refused {
		answer := w.ask(http.MethodGet, "/v1/public/orgs/"+target)
		if answer.Code != http.StatusInternalServerError || !strings.HasPrefix(answer.Body.String(), `{"error":"Internal error"`) {
			t.Errorf("%s: got %d %s, want 500", target, answer.Code, answer.Body)
		}
	}
	if got := counter(t, registry, "agentledger_bad_proofs_total"); got != len(refused) {
		t.Errorf("got %d bad proofs counted, want %d", got, len(refused))
	}
	for _, target := range []string{"red/verify/e-16", "red/verify/e-19", "blue/verify/e-17", "blue/verify/e-18", "red/transparency/inclusion?log_index=17"} {
		w.get("/v1/public/orgs/" + target)
	}
}

func counter(t *testing.T, r *prometheus.Registry, name string) int {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	return 0
}
