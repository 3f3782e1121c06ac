package vectors

import (
	"crypto/sha256"
	"fmt"
	"maps"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

const start id.Instant = 1_795_176_000_000 // 2026-11-20T12:00:00.000Z

// forgery modifies an event while the log accepts it: the log commits to the result and signs it.
type forgery struct {
	form     event.Form // default: digest
	unsigned func(envelope map[string]any)
	signed   func(envelope map[string]any) // and everything derived from it
	record   func(*event.Record)
	text     func(record string) string
	envelope func(text string) string
	entry    func(*event.Entry)
}

// ledger is the log of one organization.
type ledger struct {
	m      *maker
	org    id.Organization
	origin id.Origin
	log    edkey.Private
	agent  edkey.Private
	events []logged
}

type logged struct {
	name     id.Event
	record   []byte
	envelope []byte
	entry    event.Entry
}

// emptyLedger returns a log without events.
func emptyLedger(m *maker, n byte) *ledger {
	org := id.Organization{0: 0xab, 15: n}
	l := &ledger{m: m, org: org, origin: id.Origin("log.example/o/" + org.String())}
	l.log, l.agent = key(m.t, string(l.origin)), key(m.t, fmt.Sprint("agent ", n))
	return l
}

// newLedger returns a log of 7 events; the forgery is of event 4.
func newLedger(m *maker, n byte, f forgery) *ledger {
	l := emptyLedger(m, n)
	for i := range 7 {
		switch i {
		case 4:
			l.add(f)
		case 5:
			l.add(forgery{form: event.FormCanonical})
		default:
			l.add(forgery{})
		}
	}
	return l
}

func (l *ledger) add(f forgery) {
	l.m.t.Helper()
	f.form = max(f.form, event.FormDigest)
	n := len(l.events)
	envelope := map[string]any{
		"schema_version": 1, "event_id": fmt.Sprintf("evt_%d", n), "organization_id": l.org.String(), "trace_id": "trc_1",
		"agent_id": "agt_1", "key_id": "key_1", "emitted_at": start.String(), "actor_type": "agent", "actor_principal": "svc",
		"action_kind": "tool_call", "tool_name": "acme.orders.read", "policy_decision": "allow", "salt": "AAECAwQFBgcICQoLDA0ODw",
		"payload": map[string]any{"n": n, "amount": 1e-7, "€": "ö"},
	}
	apply(f.unsigned, envelope)
	text := l.canonical(envelope)
	digest := sha256.Sum256([]byte("APS1\n" + envelope["key_id"].(string) + "\n" + string(text)))
	message := text
	if f.form == event.FormDigest {
		message = digest[:]
	}
	sig := l.agent.Sign(message)
	sent := maps.Clone(envelope)
	sent["sig_alg"], sent["sig_value_b64"] = "ed25519", b64(sig[:])
	apply(f.signed, sent)
	public := l.agent.Public().Bytes()
	r := event.Record{
		Origin: l.origin, OrganizationID: l.org, SequenceNum: uint64(n) + 1, EventID: id.Event(fmt.Sprintf("evt_%d", n)), AgentID: "agt_1", KeyID: "key_1",
		PublicKey: did.Multikey(public), Signer: event.SignerAgent, Custody: event.CustodyAgent, EventDigest: digest,
		SigForm: f.form.String(), SigValueB64: b64(sig[:]), IngestKeyID: "ik_1", ReceivedAt: start + id.Instant(n),
		Policy: event.Policy{Declared: id.Allow, Effective: id.Allow}, V: 1,
	}
	apply(f.record, &r)
	e := logged{name: r.EventID, record: r.Text(), envelope: l.canonical(sent)}
	if f.text != nil {
		e.record = []byte(f.text(string(e.record)))
	}
	if f.envelope != nil {
		e.envelope = []byte(f.envelope(string(e.envelope)))
	}
	e.entry = event.Entry{Prev: l.last(), Record: sha256.Sum256(e.record), Seq: uint64(n) + 1}
	apply(f.entry, &e.entry)
	l.events = append(l.events, e)
}

func apply[T any](change func(T), to T) {
	if change != nil {
		change(to)
	}
}

func (l *ledger) canonical(v any) []byte {
	l.m.t.Helper()
	text, err := jcs.Marshal(v)
	if err != nil {
		l.m.t.Fatal(err)
	}
	return text
}

func (l *ledger) last() id.Hash {
	if len(l.events) == 0 {
		return event.Genesis(l.origin)
	}
	return l.events[len(l.events)-1].entry.Hash()
}

func (l *ledger) leaves(size int) (all []id.Hash) {
	for _, e := range l.events[:size] {
		all = append(all, e.entry.Hash())
	}
	return all
}

func (l *ledger) vkey() string {
	public := l.log.Public().Bytes()
	return vkey(string(l.origin), 1, public[:])
}

// note returns the checkpoint of the first size events, signed by a key under the log's name.
func (l *ledger) note(by edkey.Private, size int) string {
	root := treeRoot(l.leaves(size))
	text := fmt.Sprintf("%s\n%d\n%s\n", l.origin, size, b64(root[:]))
	public, sig := by.Public().Bytes(), by.Sign([]byte(text))
	return text + "\n" + lineOf(string(l.origin), keyID(string(l.origin), append([]byte{1}, public[:]...)), sig[:])
}

// bundle returns the bundle of an event in the tree of a size.
func (l *ledger) bundle(index, size int, d id.Disclosure) *verify.Bundle {
	l.m.t.Helper()
	e, leaves := l.events[index], l.leaves(size)
	k, err := tlog.ParseVerifierKey(l.vkey())
	if err != nil {
		l.m.t.Fatal(err)
	}
	p := verify.Parts{
		Organization: l.org, Slug: "org", Event: e.name, Index: id.Index(index), Entry: e.entry, Proof: treePath(index, leaves),
		Checkpoint: tlog.Checkpoint{Origin: l.origin, Size: id.Index(size), Root: treeRoot(leaves)}, Note: []byte(l.note(l.log, size)), Key: k,
		Disclosure: id.DiscloseRecord, Record: e.record,
	}
	if index > 0 {
		p.Previous, p.PreviousProof = l.events[index-1].entry, treePath(index-1, leaves)
	}
	b, err := verify.NewBundle(p)
	if err != nil {
		l.m.t.Fatal(err)
	}
	b.Entry, b.Disclosure = string(e.entry.Text()), d // as the log has them, forged or not
	if d == id.DiscloseFull {
		text := string(e.envelope)
		b.Envelope = &text
	}
	if d == id.DiscloseCommitment {
		b.Record = nil
	}
	return b
}

func (m *maker) text(v any) string {
	m.t.Helper()
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(text)
}
