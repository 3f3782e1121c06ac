package pgstore_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/log/anchor"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// BenchmarkAnchorFirst measures the cost of writing the anchor before the response: events of 1 KiB, one by one, by
// senders that wait, on a server on this machine.
func BenchmarkAnchorFirst(b *testing.B) {
	s, err := pgtest.Start()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Stop()
	for _, organizations := range []int{1, 64} {
		for _, senders := range []int{1, 64} {
			for _, first := range []bool{false, true} {
				b.Run(fmt.Sprintf("organizations=%d/senders=%d/first=%v", organizations, senders, first), func(b *testing.B) {
					e := open(b, pgstore.Options{URL: fresh(b, s)})
					defer e.Close()
					benchmarkAnchorFirst(b, e, organizations, senders, first)
				})
			}
		}
	}
}

func benchmarkAnchorFirst(b *testing.B, store log.Store, organizations, senders int, first bool) {
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		b.Fatal(err)
	}
	anchors, err := anchor.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	ledgers, err := log.Open(b.Context(), log.Options{Store: store, Keyring: keyring, Anchors: anchors, AnchorFirst: func() bool { return first }})
	if err != nil {
		b.Fatal(err)
	}
	defer ledgers.Close()
	for i := range organizations {
		g := log.Genesis{Organization: id.NewOrganization(), Origin: id.Origin(fmt.Sprint("bench.example/o/", i))}
		if _, err := ledgers.Create(b.Context(), id.Tenant(1+i), g); err != nil {
			b.Fatal(err)
		}
	}
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var group sync.WaitGroup
	b.ResetTimer()
	for range senders {
		group.Go(func() {
			for n := next.Add(1) - 1; n < int64(b.N); n = next.Add(1) - 1 {
				began := time.Now()
				if _, err := ledgers.Append(context.Background(), id.Tenant(1+n%int64(organizations)), anyEvent(n)); err != nil {
					b.Error(err)
					return
				}
				took[n] = time.Since(began)
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	slices.Sort(took)
	b.ReportMetric(took[b.N/2].Seconds()*1e3, "p50-ms")
	b.ReportMetric(took[b.N*99/100].Seconds()*1e3, "p99-ms")
}

var benchKey = sync.OnceValue(func() string { return did.Multikey(edkey.NewPrivate().Public().Bytes()) })

// anyEvent prepares event n, which is not signed.
func anyEvent(n int64) log.Prepare {
	name := fmt.Sprint("e", n)
	envelope := []byte(`{"event_id":"` + name + `","payload":"` + strings.Repeat("x", 700) + `"}`)
	e := &event.Envelope{
		EventID: id.Event(name), TraceID: "trc_bench", AgentID: "agt_bench", KeyID: "key_bench", ActionKind: "tool_call",
		Decision: id.Allow, Canonical: envelope, Digest: sha256.Sum256(envelope), SignatureB64: strings.Repeat("A", 86) + "==",
	}
	return func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, log.Attestation{
			Form: event.FormDigest, PublicKey: benchKey(), Signer: event.SignerAgent, Custody: event.CustodyAgent, IngestKeyID: "ik_bench",
			Policy: event.Policy{Declared: id.Allow, Effective: id.Allow}, Disclosure: id.DiscloseRecord,
		})}}, nil
	}
}
