// Package packtest makes evidence packs from fixed seeds, valid and invalid ones, for tests and for the published
// corpus of packs.
//
// Invariants:
//
//   - The same calls produce the same bytes: there is no clock and no randomness.
//   - Parts.Bytes writes digests and sizes that match the parts. So an invalid part is found by its content, not by its
//     digest.
package packtest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/storedzip"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

// The origin and the organization of the log.
const (
	origin       = "log.example/o/34929490-47ca-4f7c-b79e-0ac022b29856"
	organization = "34929490-47ca-4f7c-b79e-0ac022b29856"
)

// Policy is a policy document in the pack, and Approval the id of an approval.
const (
	Policy   = `{"default":"allow","name":"orders","policy_id":"pol_1","rules":[],"version":1}`
	Approval = "apr_1"
)

// PolicyDigest returns the digest of Policy.
func PolicyDigest() id.Hash { return sha256.Sum256([]byte(Policy)) }

// Logged is an event in a log together with its documents.
type Logged struct {
	Entry    event.Entry
	Envelope *event.Envelope
	Record   event.Record
	Text     string // of the record
}

// Log is a log in memory.
type Log struct {
	t             testing.TB
	signer        tlog.SignerKey
	agent, system edkey.Private
	Events        []Logged
	described     string         // an approval
	approval      map[string]any // members of its line besides approval_id and events
	tiles         *tiles         // of the log at one size; nil: of none yet
}

func key(t testing.TB, seed byte) edkey.Private {
	t.Helper()
	k, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{seed}, edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// NewLog returns an empty log.
func NewLog(t testing.TB) *Log {
	t.Helper()
	signer, err := tlog.NewSignerKey(origin, key(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	return &Log{t: t, signer: signer, agent: key(t, 2), system: key(t, 3), described: Approval, approval: map[string]any{"agent_id": "agt_1"}}
}

// Key returns the log's key.
func (l *Log) Key() tlog.VerifierKey { return l.signer.Verifier() }

// EventSpec describes an event to log. Zero fields get default values.
type EventSpec struct {
	Agent     id.Agent
	Tool      id.Tool
	Trace     id.Trace
	Payload   map[string]any
	Kind      string // action_kind; one that begins with ledger_ is the service's own
	Judged    bool   // by Policy
	Approval  string // that was used
	Canonical bool   // the form of the signature
	Principal string // actor_principal

	ID      id.Event       // of the event
	Renamed id.Event       // event_id of the record, if it is another one
	Members map[string]any // of the envelope
	Bridge  bool           // signed by a key of the service for a tool without a key
	Intent  id.Event       // of a result: the event that it belongs to
	Decided id.Decision    // by Policy; zero for allow
}

// Append logs an event.
func (l *Log) Append(w EventSpec) *Logged {
	l.t.Helper()
	seq := uint64(len(l.Events) + 1)
	private, signer, actor := l.agent, event.SignerAgent, "agent"
	switch {
	case w.Bridge:
		private, signer = l.system, event.SignerBridge
	case len(w.Kind) > 7 && w.Kind[:7] == "ledger_":
		private, signer, actor = l.system, event.SignerSystem, "system"
		w.Agent = "system"
	}
	e := l.sign(w, seq, actor, private)
	r := event.Record{
		Origin: origin, OrganizationID: e.OrganizationID, SequenceNum: seq, EventID: e.EventID,
		AgentID: e.AgentID, KeyID: e.KeyID, PublicKey: did.Multikey(private.Public().Bytes()),
		Signer: signer, Custody: event.CustodyAgent,
		EventDigest: e.Digest, SigForm: event.FormDigest.String(), SigValueB64: e.SignatureB64,
		ReceivedAt: receivedAt(seq), Policy: event.Policy{Declared: e.Decision, Effective: e.Decision}, V: 1,
	}
	if w.Canonical {
		r.SigForm = event.FormCanonical.String()
	}
	if signer == event.SignerAgent {
		r.IngestKeyID = "ik_1"
	}
	if w.Judged {
		r.Policy = event.Policy{Evaluated: true, Declared: id.Allow, Effective: id.Allow,
			PolicyID: "pol_1", PolicyVersion: 1, PolicyDigest: PolicyDigest(), RuleID: "default",
			Engine: "rules", InputDigest: id.Hash{1},
			EvaluatedAt: receivedAt(seq), ApprovalID: w.Approval}
	}
	if w.Renamed != "" {
		r.EventID = w.Renamed
	}
	if w.Decided != 0 {
		r.Policy.Effective = w.Decided
	}
	if w.Intent != "" {
		r.Policy = event.Policy{Declared: id.Allow, Effective: id.Allow, PolicyID: "pol_1", PolicyVersion: 1, PolicyDigest: PolicyDigest(),
			RuleID: "default", Engine: "rules", Intent: w.Intent}
	}
	text := r.Text()
	entry := event.Entry{Prev: event.Genesis(origin), Record: event.RecordHash(text), Seq: seq}
	if seq > 1 {
		entry.Prev = l.Events[seq-2].Entry.Hash()
	}
	l.Events = append(l.Events, Logged{entry, e, r, string(text)})
	return &l.Events[seq-1]
}

func receivedAt(seq uint64) id.Instant { return id.Instant(1_795_000_000_000 + 1000*int64(seq)) }

// sign returns the signed envelope of an event.
func (l *Log) sign(w EventSpec, seq uint64, actor string, private edkey.Private) *event.Envelope {
	l.t.Helper()
	members := map[string]any{
		"schema_version": 1, "event_id": or(string(w.ID), fmt.Sprintf("e%d", seq)), "organization_id": organization,
		"trace_id": or(w.Trace, "trc"), "agent_id": or(w.Agent, "agt_1"), "key_id": "key_" + or(w.Agent, "agt_1"),
		"emitted_at": receivedAt(seq), "actor_type": actor, "actor_principal": or(w.Principal, "svc"),
		"action_kind": or(w.Kind, "tool_call"), "policy_decision": "allow", "payload": w.Payload,
	}
	if w.Payload == nil {
		members["payload"] = map[string]any{"n": seq}
	}
	if w.Tool != "" {
		members["tool_name"] = w.Tool
	}
	maps.Copy(members, w.Members)
	if w.Intent != "" {
		members["parent_event_id"] = w.Intent
	}
	unsigned, err := jcs.Marshal(members)
	if err != nil {
		l.t.Fatal(err)
	}
	e, err := event.SignEnvelope(unsigned, private)
	if err != nil {
		l.t.Fatal(err)
	}
	if !w.Canonical {
		return e
	}
	signature := private.Sign(e.Signed())
	members["sig_alg"], members["sig_value_b64"] = "ed25519", signature[:]
	signed, err := jcs.Marshal(members)
	if err != nil {
		l.t.Fatal(err)
	}
	if e, err = event.Parse(signed, event.Options{Server: true}); err != nil {
		l.t.Fatal(err)
	}
	return e
}

func or[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

// leaves returns the first n leaf hashes.
func (l *Log) leaves(n id.Index) []id.Hash {
	all := make([]id.Hash, n)
	for i := range all {
		all[i] = l.Events[i].Entry.Hash()
	}
	return all
}

// File is a file of a pack before the pack is written.
type File struct{ Name, Content string }

// Parts is a pack before it is written.
type Parts struct {
	Manifest pack.Manifest
	Files    []File // without the manifest
	Text     string // of the manifest; "" for the text of Manifest
	spare    string // a line of an erasure of other events
}

// File returns the content of a file, which the caller may change.
func (p *Parts) File(name string) *string { return &p.named(name).Content }

func (p *Parts) named(name string) *File {
	for i := range p.Files {
		if p.Files[i].Name == name {
			return &p.Files[i]
		}
	}
	panic("no file " + name)
}

func (p *Parts) remove(name string) {
	p.Files = slices.DeleteFunc(p.Files, func(f File) bool { return f.Name == name })
}

// addDigests adds the digests of the files to the manifest.
func (p *Parts) addDigests() {
	p.Manifest.Files = nil
	for _, f := range p.Files {
		p.Manifest.Files = append(p.Manifest.Files, pack.File{
			Name: f.Name, SHA256: sha256.Sum256([]byte(f.Content)), Size: uint64(len(f.Content))})
	}
}

// Bytes returns the written pack, with the digests of its files.
func (p *Parts) Bytes(t testing.TB) []byte {
	t.Helper()
	p.addDigests()
	text, err := p.Manifest.Text()
	if err != nil {
		t.Fatal(err)
	}
	manifest := File{pack.FileManifest, or(p.Text, string(text))}
	return WriteZIP(t, append(p.Files[:len(p.Files):len(p.Files)], manifest))
}

// WriteZIP writes the files of a pack unchanged.
func WriteZIP(t testing.TB, files []File) []byte {
	t.Helper()
	var b bytes.Buffer
	z := storedzip.NewWriter(&b)
	for _, f := range files {
		w, err := z.Create(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.Content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// OtherKey returns a key with the log's name that has signed nothing.
func OtherKey(t testing.TB) tlog.VerifierKey {
	t.Helper()
	signer, err := tlog.NewSignerKey(origin, key(t, 9))
	if err != nil {
		t.Fatal(err)
	}
	return signer.Verifier()
}
