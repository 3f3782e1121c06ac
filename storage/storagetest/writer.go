package storagetest

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Writer generates consecutive batches of realistic events, with envelopes of 1 KiB, for benchmarks and for tests that
// need data of realistic size and compressibility. The texts depend only on the tenant, so every run writes the same
// bytes.
type Writer struct {
	tenant id.Tenant
	head   storage.Head
	random *rand.ChaCha8
	words  *rand.Rand
	hashes []byte
}

// NewWriter returns a writer for a ledger that does not exist yet.
func NewWriter(t id.Tenant) *Writer {
	w := &Writer{tenant: t, random: rand.NewChaCha8([32]byte{byte(t)})}
	w.words = rand.New(w.random)
	return w
}

func (w *Writer) randomHash() (h id.Hash) {
	w.random.Read(h[:])
	return h
}

func (w *Writer) base64(n int) string {
	raw := make([]byte, n)
	w.random.Read(raw)
	return base64.StdEncoding.EncodeToString(raw)
}

func (w *Writer) hex(n int) string {
	raw := make([]byte, n)
	w.random.Read(raw)
	return hex.EncodeToString(raw)
}

// Next returns a batch of n events. The first batch creates the ledger.
func (w *Writer) Next(n int) storage.Batch {
	b := storage.Batch{Tenant: w.tenant, Expect: w.head, Head: w.head}
	for i := range n {
		e := w.makeEvent(w.head.Size+id.Index(i), i)
		b.Events = append(b.Events, e)
		leaf := w.randomHash()
		if w.hashes = append(w.hashes, leaf[:]...); len(w.hashes) == storage.TileSize {
			b.Tiles = append(b.Tiles, storage.Tile{Index: uint64(e.Index) / 256, Hashes: w.hashes,
				Root: w.randomHash()})
			w.hashes = nil
		}
	}
	b.Head.Size += id.Index(n)
	b.Head.Root, b.Head.Last, b.Head.Epoch, b.Head.ConfigVersion = w.randomHash(), w.randomHash(), 1, 1
	b.Counters = []storage.Counter{{Name: "events/2026-01", Value: uint64(b.Head.Size)}}
	w.head = b.Head
	return b
}

func (w *Writer) makeEvent(i id.Index, item int) storage.Event {
	event, trace, sig := "evt_"+w.hex(16), "trc_"+w.hex(16), w.base64(64)
	at := id.Instant(1_780_000_000_000 + int64(i)*7)
	return storage.Event{
		Index: i, ID: id.Event(event), Item: item,
		Entry: storage.Entry{Prev: w.randomHash(), Record: w.randomHash()},
		Columns: storage.Columns{
			ReceivedAt: at, Agent: "billing-agent", Trace: id.Trace(trace), Tool: "mail.send",
			ActionKind: "tool_call", Effective: id.Allow, Disclosure: id.DiscloseRecord,
		},
		Record:   w.makeRecord(i, at, event, sig),
		Envelope: w.makeEnvelope(at, event, trace, sig),
	}
}

func (w *Writer) makeRecord(i id.Index, at id.Instant, event, sig string) []byte {
	return fmt.Appendf(nil, `{"agent_id":"billing-agent","custody":"agent","event_digest":"%s","event_id":"%s",`+
		`"ingest_key_id":"ik_5f2c8e1a","key_id":"billing-agent#1",`+
		`"organization_id":"7d1f0a52-3c7e-4a86-9b1d-2f6f4a7f7c11",`+
		`"origin":"log.example.com/o/7d1f0a52-3c7e-4a86-9b1d-2f6f4a7f7c11","policy":{"approval_id":null,`+
		`"declared":"allow","effective":"allow","engine":"rules/1","evaluated":true,"evaluated_at":"%s",`+
		`"input_digest":"%s","limits":[],`+
		`"policy_digest":"0f343b0931126a20f133d67c2b018a3b5d1ab5b1f2a1c0d5d0c3e3b1e9a4f7c2",`+
		`"policy_id":"pol_default","policy_version":3,"rule_id":"r_mail"},`+
		`"public_key":"z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK","received_at":"%s",`+
		`"sequence_num":%d,"sig_form":"digest","sig_value_b64":"%s","signer":"agent","v":1}`,
		w.hex(32), event, at, w.hex(32), at, i.Sequence(), sig)
}

// makeEnvelope returns an envelope that is filled up to 1 KiB with words.
func (w *Writer) makeEnvelope(at id.Instant, event, trace, sig string) []byte {
	words := []string{"invoice", "customer", "the", "payment", "of", "reminder", "please", "overdue", "account",
		"sent", "to", "by", "and", "amount", "due", "contract"}
	body := fmt.Appendf(nil, `{"action_kind":"tool_call","actor_principal":"ops@example.com","actor_type":"agent",`+
		`"agent_id":"billing-agent","emitted_at":"%s","event_id":"%s","key_id":"billing-agent#1",`+
		`"organization_id":"7d1f0a52-3c7e-4a86-9b1d-2f6f4a7f7c11","payload":{"amount_cents":%d,`+
		`"customer_id":"cus_%s","text":"`,
		at, event, w.words.IntN(1_000_000), w.hex(8))
	tail := fmt.Appendf(nil, `"},"policy_decision":"allow","salt":"%s","schema_version":1,"sig_alg":"ed25519",`+
		`"sig_value_b64":"%s","tool_name":"mail.send","trace_id":"%s"}`,
		w.base64(16), sig, trace)
	for len(body)+len(tail) < 1024 {
		body = append(append(body, words[w.words.IntN(len(words))]...), ' ')
	}
	return append(body, tail...)
}
