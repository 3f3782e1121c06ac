package pgstore_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/chain"
	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/edkey"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// BenchmarkLedgers is the whole commit path on each engine: durable, integrated
// appends in process, by the number of callers that wait at once, organizations
// that they write to, and events that each sends together.
func BenchmarkLedgers(b *testing.B) {
	s, err := pgtest.Start("shared_buffers=1GB")
	if err != nil {
		b.Fatal(err)
	}
	defer s.Stop()
	engines := []struct {
		name string
		open func(b *testing.B) storage.Engine
	}{
		{"pebble", func(b *testing.B) storage.Engine {
			e, err := pebblestore.Open(pebblestore.Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			return e
		}},
		{"postgres", func(b *testing.B) storage.Engine { return open(b, pgstore.Options{URL: fresh(b, s)}) }},
	}
	for _, c := range []struct{ callers, organizations, together int }{{1, 1, 1}, {64, 1, 1}, {256, 1, 1}, {256, 200, 1}, {8, 1, 64}, {64, 200, 64}} {
		for _, engine := range engines {
			b.Run(fmt.Sprintf("callers=%d/organizations=%d/together=%d/%s", c.callers, c.organizations, c.together, engine.name), func(b *testing.B) {
				benchmarkLedgers(b, engine.open(b), c.callers, c.organizations, c.together)
			})
		}
	}
}

func benchmarkLedgers(b *testing.B, e storage.Engine, callers, organizations, together int) {
	ledgers := benchLedgers(b, e, organizations)
	public := did.Multikey(edkey.NewPrivate().Public().Bytes())
	var next atomic.Int64
	b.SetParallelism(max(1, callers/2)) // GOMAXPROCS is 2 on the machines that count
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for more := true; more; {
			var prepares []log.Prepare
			tenant := id.Tenant(1 + next.Load()/int64(together)%int64(organizations))
			for more = pb.Next(); more; more = pb.Next() {
				if prepares = append(prepares, benchEvent(next.Add(1), public)); len(prepares) == together {
					break
				}
			}
			for _, o := range ledgers.AppendAll(context.Background(), tenant, prepares) {
				if o.Err != nil {
					b.Error(o.Err)
					return
				}
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	if err := ledgers.Close(); err != nil {
		b.Error(err)
	}
	if err := e.Close(); err != nil {
		b.Error(err)
	}
}

func benchEvent(n int64, public string) log.Prepare {
	name := fmt.Sprint("e", n)
	envelope := []byte(`{"event_id":"` + name + `","payload":"` + strings.Repeat("some words of a payload ", 40) + `"}`)
	e := &event.Envelope{
		EventID: id.Event(name), TraceID: "trc_bench", AgentID: "agt_bench", KeyID: "key_bench", ActionKind: "tool_call",
		Tool: "acme.orders.read", Decision: id.Allow, Canonical: envelope, Digest: sha256.Sum256(envelope),
		SignatureB64: strings.Repeat("A", 86) + "==",
	}
	return func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, log.Attestation{
			Form: event.FormDigest, PublicKey: public, Signer: chain.SignerAgent, Custody: chain.CustodyAgent, IngestKeyID: "ik_bench",
			Policy: chain.Policy{Declared: id.Allow, Effective: id.Allow}, Disclosure: id.DiscloseRecord,
		})}}, nil
	}
}

func benchLedgers(b *testing.B, e storage.Engine, organizations int) *log.Ledgers {
	b.Helper()
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		b.Fatal(err)
	}
	anchors, err := log.OpenAnchors(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	ledgers, err := log.Open(b.Context(), log.Options{Store: e, Keyring: keyring, Anchors: anchors, Fatal: func(err error) { b.Error(err) }})
	if err != nil {
		b.Fatal(err)
	}
	for t := range id.Tenant(organizations) {
		if _, err := ledgers.Create(b.Context(), t+1, genesis(t+1)); err != nil {
			b.Fatal(err)
		}
	}
	return ledgers
}
