package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/tlog"
)

const testStart id.Instant = 1_795_176_000_000 // 2026-11-20T12:00:00.000Z

// testLog is one organization's log with real keys. Its tree, proofs, digests and notes
// are computed here by the formulas of their specifications, not by the packages that Check
// uses.
type testLog struct {
	t      testing.TB
	org    id.Organization
	slug   id.Slug
	origin id.Origin
	key    edkey.Private // the log key
	agent  edkey.Private
	events []testEvent
}

// testEvent is one event of the log.
type testEvent struct {
	record     event.Record
	recordText []byte
	envelope   []byte
	entry      event.Entry
	leaf       id.Hash
}

// forgery changes one event while it is built: each function, if set, modifies what an
// honest server would produce at that step.
type forgery struct {
	form     event.Form
	unsigned func(envelope map[string]any)
	signed   func(envelope map[string]any)
	record   func(r *event.Record)
	text     func(record []byte) []byte
	entry    func(e *event.Entry)
}

func testKey(t testing.TB, fill byte) edkey.Private {
	t.Helper()
	k, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{fill}, edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// newTestLog returns the log of the nth organization with size events, whose signatures
// alternate between the digest and the canonical form.
func newTestLog(t testing.TB, n byte, size int) *testLog {
	t.Helper()
	org := id.Organization{0xab, 15: n}
	l := &testLog{
		t: t, org: org, slug: id.Slug(fmt.Sprintf("org-%d", n)), origin: id.Origin("log.example/o/" + org.String()),
		key: testKey(t, n), agent: testKey(t, 100+n),
	}
	for i := range size {
		l.add(forgery{form: formFor(i)})
	}
	return l
}

func formFor(i int) event.Form {
	if i%2 == 1 {
		return event.FormCanonical
	}
	return event.FormDigest
}

// add appends one event.
func (l *testLog) add(f forgery) {
	l.t.Helper()
	index := len(l.events)
	f.form = max(f.form, event.FormDigest)
	envelope := map[string]any{
		"schema_version": 1, "event_id": fmt.Sprintf("evt_%d", index), "organization_id": l.org.String(),
		"trace_id": "trc_1", "agent_id": "agt_1", "key_id": "key_1", "emitted_at": testStart.String(),
		"actor_type": "agent", "actor_principal": "svc", "action_kind": "tool_call", "policy_decision": "allow",
		"payload": map[string]any{"n": index}, "salt": "AAECAwQFBgcICQoLDA0ODw",
	}
	apply(f.unsigned, envelope)
	digest, signature := l.sign(f.form, envelope)
	envelope["sig_alg"], envelope["sig_value_b64"] = "ed25519", signature
	apply(f.signed, envelope)
	r := l.newRecord(index, envelope, f.form, digest, signature)
	apply(f.record, &r)
	e := testEvent{record: r, recordText: r.Text(), envelope: l.canonical(envelope)}
	if f.text != nil {
		e.recordText = f.text(e.recordText)
	}
	e.entry = event.Entry{Prev: l.last(), Record: sha256.Sum256(e.recordText), Seq: uint64(index) + 1}
	apply(f.entry, &e.entry)
	e.leaf = leafHash(e.entry)
	l.events = append(l.events, e)
}

func apply[T any](change func(T), to T) {
	if change != nil {
		change(to)
	}
}

func (l *testLog) canonical(v any) []byte {
	l.t.Helper()
	text, err := jcs.Marshal(v)
	if err != nil {
		l.t.Fatal(err)
	}
	return text
}

// sign returns event_digest and sig_value_b64 of an envelope without signature members.
func (l *testLog) sign(form event.Form, envelope map[string]any) (id.Hash, string) {
	message := l.canonical(envelope)
	digest := sha256.Sum256([]byte("APS1\n" + envelope["key_id"].(string) + "\n" + string(message)))
	if form == event.FormDigest {
		message = digest[:]
	}
	signature := l.agent.Sign(message)
	return digest, base64.StdEncoding.EncodeToString(signature[:])
}

func (l *testLog) newRecord(index int, envelope map[string]any, form event.Form, digest id.Hash, signature string) event.Record {
	declared, err := id.ParseDecision(envelope["policy_decision"].(string))
	if err != nil {
		l.t.Fatal(err)
	}
	return event.Record{
		Origin: l.origin, OrganizationID: l.org, SequenceNum: uint64(index) + 1,
		EventID: id.Event(envelope["event_id"].(string)), AgentID: id.Agent(envelope["agent_id"].(string)),
		KeyID: id.Key(envelope["key_id"].(string)), PublicKey: did.Multikey(l.agent.Public().Bytes()),
		Signer: event.SignerAgent, Custody: event.CustodyAgent, EventDigest: digest, SigForm: form.String(),
		SigValueB64: signature, IngestKeyID: "ik_1", ReceivedAt: testStart + id.Instant(index),
		Policy: event.Policy{Declared: declared, Effective: declared}, V: 1,
	}
}

// last returns the value that the next entry names as its predecessor.
func (l *testLog) last() id.Hash {
	if len(l.events) == 0 {
		return sha256.Sum256([]byte("agentledger/genesis/v1\n" + string(l.origin) + "\n"))
	}
	return l.events[len(l.events)-1].leaf
}

func (l *testLog) leaves(size int) []id.Hash {
	hashes := make([]id.Hash, size)
	for i := range hashes {
		hashes[i] = l.events[i].leaf
	}
	return hashes
}

func (l *testLog) checkpoint(size int) tlog.Checkpoint {
	return tlog.Checkpoint{Origin: l.origin, Size: id.Index(size), Root: treeRoot(l.leaves(size))}
}

// bundle returns the bundle of the event at index under the checkpoint of size.
func (l *testLog) bundle(index, size int, d id.Disclosure) *Bundle {
	l.t.Helper()
	leaves, c := l.leaves(size), l.checkpoint(size)
	e := l.events[index]
	p := Parts{
		Organization: l.org, Slug: l.slug, Event: e.record.EventID, Index: id.Index(index), Entry: e.entry,
		Proof: treePath(index, leaves), Checkpoint: c, Note: []byte(l.note(l.key, c)), Key: l.verifier(l.key),
		Disclosure: d, Record: e.recordText, Envelope: e.envelope,
	}
	if index > 0 {
		p.Previous, p.PreviousProof = l.events[index-1].entry, treePath(index-1, leaves)
	}
	b, err := NewBundle(p)
	if err != nil {
		l.t.Fatal(err)
	}
	b.Entry = string(e.entry.Text()) // with the number of a forged one
	return b
}

// options returns options that pin the log's key.
func (l *testLog) options() Options {
	key := l.verifier(l.key)
	return Options{Key: &key, CheckedAt: testStart}
}

func (l *testLog) verifier(key edkey.Private) tlog.VerifierKey {
	l.t.Helper()
	v, err := tlog.ParseVerifierKey(vkey(string(l.origin), publicBytes(key)))
	if err != nil {
		l.t.Fatal(err)
	}
	return v
}

func (l *testLog) note(key edkey.Private, c tlog.Checkpoint) string {
	return signNote(string(l.origin), key, checkpointBody(c))
}

func checkpointBody(c tlog.Checkpoint) string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]))
}

func publicBytes(key edkey.Private) []byte {
	b := key.Public().Bytes()
	return b[:]
}

// keyHash returns the C2SP signed-note key ID of an Ed25519 key.
func keyHash(name string, public []byte) uint32 {
	h := sha256.Sum256(append([]byte(name+"\n\x01"), public...))
	return binary.BigEndian.Uint32(h[:])
}

func vkey(name string, public []byte) string {
	return fmt.Sprintf("%s+%08x+%s", name, keyHash(name, public), base64.StdEncoding.EncodeToString(append([]byte{1}, public...)))
}

// signNote returns body, an empty line and one signature line.
func signNote(name string, key edkey.Private, body string) string {
	return body + "\n" + signatureLine(name, key, body)
}

func signatureLine(name string, key edkey.Private, body string) string {
	signature := key.Sign([]byte(body))
	blob := binary.BigEndian.AppendUint32(nil, keyHash(name, publicBytes(key)))
	return "— " + name + " " + base64.StdEncoding.EncodeToString(append(blob, signature[:]...)) + "\n"
}

// verdicts returns the six verdicts of a report as +, - and 0, in the order inclusion,
// checkpoint, chain, record, signature, envelope.
func verdicts(r Report) string {
	sign := func(ok bool) byte {
		if ok {
			return '+'
		}
		return '-'
	}
	text := []byte{sign(r.InclusionOK), sign(r.CheckpointOK), sign(r.ChainOK)}
	for _, v := range []*bool{r.RecordOK, r.SignatureOK, r.EnvelopeOK} {
		if v == nil {
			text = append(text, '0')
		} else {
			text = append(text, sign(*v))
		}
	}
	return string(text)
}
