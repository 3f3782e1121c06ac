package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

// ledgers is our log in this process, below HTTP, in a data directory as the
// server has it.
type ledgers struct {
	*log.Ledgers
	store storage.Engine
}

// openLedgers opens or creates a data directory. cache is the size of the store's cache in bytes; 0 means the default.
func openLedgers(ctx context.Context, dir string, key seal.Key, cache int64) (*ledgers, error) {
	store, err := pebblestore.Open(pebblestore.Options{Dir: filepath.Join(dir, "db"), CacheBytes: cache})
	if err != nil {
		return nil, err
	}
	return openLedgersOn(ctx, store, dir, key)
}

// openLedgersOn opens ledgers on a store, which they close. The anchors are in dir.
func openLedgersOn(ctx context.Context, store storage.Engine, dir string, key seal.Key) (*ledgers, error) {
	keyring, err := seal.NewKeyring(key)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	anchors, err := anchor.Open(filepath.Join(dir, "anchors"))
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	l, err := log.Open(ctx, log.Options{Store: store, Keyring: keyring, Anchors: anchors})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &ledgers{Ledgers: l, store: store}, nil
}

func (l *ledgers) Close() error { return errors.Join(l.Ledgers.Close(), l.store.Close()) }

// found creates the organizations with the tenant handles 1 to n.
func (l *ledgers) found(ctx context.Context, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(256) // so that they share syncs
	for i := range n {
		group.Go(func() error {
			o := id.NewOrganization()
			_, err := l.Create(ctx, id.Tenant(i+1), log.Genesis{Organization: o, Origin: id.Origin("bench.example/o/" + o.String())})
			return err
		})
	}
	return group.Wait()
}

// entrySize is the length of every measured event in bytes.
const entrySize = 1024

// text returns n bytes that compress about as prose does.
func text(r *rand.Rand, n int) string {
	words := []string{"invoice", "customer", "the", "payment", "of", "reminder", "please", "overdue", "account", "sent", "to", "by", "and", "amount", "due", "contract"}
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%s %04x ", words[r.IntN(len(words))], r.IntN(1<<16))
	}
	return b.String()[:n]
}

// entry returns an event of entrySize bytes. It looks like an envelope; nothing in this process parses it.
func entry(name, payload string) []byte {
	e := make([]byte, 0, entrySize)
	e = append(append(append(e, `{"event_id":"`...), name...), `","payload":"`...)
	e = append(e, payload[:entrySize-len(e)-2]...)
	return append(e, `"}`...)
}

// add appends one event of entrySize bytes and returns when it is durable,
// integrated and under a checkpoint.
func (l *ledgers) add(ctx context.Context, t id.Tenant, name, payload string) (id.Index, error) {
	receipts, err := l.Append(ctx, t, func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{draft(s.Identity(), "agt_bench", "key_bench", benchKey, name, entry(name, payload))}}, nil
	})
	if err != nil {
		return 0, err
	}
	return receipts[0].Index, nil
}

// benchKey is the public key of events whose organization has no agent.
const benchKey = "z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK"

// draft has a record of the size that an evaluated event has.
func draft(identity *log.Identity, agent id.Agent, key id.Key, public, name string, envelope []byte) log.Draft {
	e := &event.Envelope{
		EventID: id.Event(name), TraceID: "trc_bench", AgentID: agent, KeyID: key, ActionKind: "tool_call",
		Tool: "acme.orders.read", Decision: id.Allow, Canonical: envelope, Digest: sha256.Sum256(envelope),
		SignatureB64: strings.Repeat("A", 86) + "==",
	}
	return log.NewDraft(identity, e, log.Attestation{
		Form: event.FormDigest, PublicKey: public,
		Signer: event.SignerAgent, Custody: event.CustodyServer, IngestKeyID: "ik_bench", Disclosure: id.DiscloseRecord,
		Policy: event.Policy{
			Evaluated: true, Declared: id.Allow, Effective: id.Allow, PolicyID: "pol_bench", PolicyVersion: 1,
			PolicyDigest: e.Digest, RuleID: "orders", Engine: "rules", InputDigest: e.Digest, EvaluatedAt: identity.CreatedAt,
		},
	})
}
