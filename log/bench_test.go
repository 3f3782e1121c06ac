package log_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/log/anchor"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

// Durable, integrated appends in process on the embedded engine, with envelopes of 1 KiB, by the number of concurrent
// senders and of organizations.
func BenchmarkAppend(b *testing.B) {
	for _, organizations := range []int{1, 200, 1000} {
		for _, senders := range []int{1, 16, 64, 256, 1024} {
			b.Run(fmt.Sprintf("organizations=%d/senders=%d", organizations, senders), func(b *testing.B) {
				benchmarkAppend(b, organizations, senders)
			})
		}
	}
}

func benchmarkAppend(b *testing.B, organizations, senders int) {
	ledgers := openBench(b, organizations)
	public := did.Multikey(edkey.NewPrivate().Public().Bytes())
	payload := strings.Repeat("x", 700)
	var next atomic.Int64
	var bytes atomic.Int64
	b.SetParallelism(max(1, senders/2)) // GOMAXPROCS is 2 on the reference machines
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := next.Add(1)
			name := fmt.Sprint("e", n)
			envelope := []byte(`{"event_id":"` + name + `","payload":"` + payload + `"}`)
			bytes.Add(int64(len(envelope)))
			e := &event.Envelope{
				EventID: id.Event(name), TraceID: "trc_bench", AgentID: "agt_bench", KeyID: "key_bench", ActionKind: "tool_call",
				Tool: "acme.orders.read", Decision: id.Allow, Canonical: envelope, Digest: sha256.Sum256(envelope),
				SignatureB64: strings.Repeat("A", 86) + "==",
			}
			_, err := ledgers.Append(context.Background(), id.Tenant(1+n%int64(organizations)), func(_ context.Context, s *log.State) (log.Submission, error) {
				return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, log.Attestation{
					Form: event.FormDigest, PublicKey: public, Signer: event.SignerAgent, Custody: event.CustodyAgent, IngestKeyID: "ik_bench",
					Policy: event.Policy{Declared: id.Allow, Effective: id.Allow}, Disclosure: id.DiscloseRecord,
				})}}, nil
			})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func openBench(b *testing.B, organizations int) *log.Ledgers {
	b.Helper()
	store, err := pebblestore.Open(pebblestore.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		b.Fatal(err)
	}
	anchors, err := anchor.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	ledgers, err := log.Open(b.Context(), log.Options{Store: store, Keyring: keyring, Anchors: anchors})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ledgers.Close()
		store.Close()
	})
	for i := range organizations {
		t := id.Tenant(1 + i)
		g := log.Genesis{Organization: id.NewOrganization(), Origin: id.Origin(fmt.Sprint("bench.example/o/", i))}
		if _, err := ledgers.Create(b.Context(), t, g); err != nil {
			b.Fatal(err)
		}
	}
	return ledgers
}

// A proof of a random leaf at the head, with decoded tiles cached.
func BenchmarkInclusion(b *testing.B) {
	ledgers := openBench(b, 1)
	const size = 20_000
	public := did.Multikey(edkey.NewPrivate().Public().Bytes())
	for first := 0; first < size; first += 500 {
		_, err := ledgers.Append(b.Context(), 1, func(_ context.Context, s *log.State) (log.Submission, error) {
			var sub log.Submission
			for i := range 500 {
				name := fmt.Sprint("e", first+i)
				e := &event.Envelope{EventID: id.Event(name), Canonical: []byte(name), Digest: sha256.Sum256([]byte(name)), Decision: id.Allow}
				sub.Drafts = append(sub.Drafts, log.NewDraft(s.Identity(), e, log.Attestation{
					Form: event.FormDigest, PublicKey: public, Signer: event.SignerAgent, Custody: event.CustodyAgent,
					Policy: event.Policy{Declared: id.Allow, Effective: id.Allow},
				}))
			}
			return sub, nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	s, err := ledgers.State(b.Context(), 1)
	if err != nil {
		b.Fatal(err)
	}
	var at atomic.Uint64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := id.Index(at.Add(7919) % size)
			if _, _, _, err := ledgers.Inclusion(b.Context(), s, i, s.Size()); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
