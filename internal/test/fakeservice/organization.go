package fakeservice

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// start is the received_at of every organization's first event.
const start id.Instant = 1_795_176_000_000 // 2026-11-20T12:00:00.000Z

// Organization is an organization of the service with its log and the credentials of its client. A test sets Rules,
// Disclosure and Cap before it sends requests.
type Organization struct {
	ID         id.Organization
	Slug       id.Slug
	Origin     id.Origin
	Token      string
	Agent      id.Agent
	Key        id.Key
	Seed       string // base64
	Rules      map[id.Tool]id.Decision
	Disclosure id.Disclosure
	Cap        int // largest number of events; 0: no limit

	agent  edkey.Private
	signer tlog.SignerKey
	events []stored
	byID   map[id.Event]int
}

// stored is an event as the log stores it.
type stored struct {
	id       id.Event
	digest   id.Hash
	record   []byte
	envelope []byte
	entry    event.Entry
	leaf     id.Hash
}

func newOrganization(t testing.TB, n int) *Organization {
	t.Helper()
	o := &Organization{
		ID: id.Organization{0xab, 15: byte(n + 1)}, Slug: id.Slug(fmt.Sprintf("org-%d", n+1)),
		Token: fmt.Sprintf("apl_test_ik%d_secret", n+1), Agent: id.Agent(fmt.Sprintf("agt_%d", n+1)),
		Key: "key_1", Disclosure: id.DiscloseFull, byID: map[id.Event]int{},
	}
	o.Origin = id.Origin("log.example/o/" + o.ID.String())
	seed := bytes.Repeat([]byte{byte(100 + n)}, edkey.SeedSize)
	o.Seed = base64.StdEncoding.EncodeToString(seed)
	var err error
	if o.agent, err = edkey.PrivateFromSeed(seed); err != nil {
		t.Fatal(err)
	}
	logKey, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{byte(1 + n)}, edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	if o.signer, err = tlog.NewSignerKey(string(o.Origin), logKey); err != nil {
		t.Fatal(err)
	}
	return o
}

// LogKey returns the key that signs the organization's checkpoints.
func (o *Organization) LogKey() tlog.VerifierKey { return o.signer.Verifier() }

// Size returns the number of events in the log. It must not be called while requests are running.
func (o *Organization) Size() int { return len(o.events) }

// Envelope returns the envelope at an index. It must not be called while requests are running.
func (o *Organization) Envelope(index int) []byte { return o.events[index].envelope }

// appendLeaf stores a signed envelope of the organization's agent.
func (o *Organization) appendLeaf(e *event.Envelope, form event.Form, effective id.Decision) stored {
	index := len(o.events)
	record := event.Record{
		Origin: o.Origin, OrganizationID: o.ID, SequenceNum: uint64(index) + 1, EventID: e.EventID, AgentID: e.AgentID,
		KeyID: e.KeyID, PublicKey: did.Multikey(o.agent.Public().Bytes()), Signer: event.SignerAgent,
		Custody: event.CustodyAgent, EventDigest: e.Digest, SigForm: form.String(), SigValueB64: e.SignatureB64,
		IngestKeyID: "ik_1", ReceivedAt: start + id.Instant(index),
		Policy: event.Policy{Declared: e.Decision, Effective: effective},
	}
	if c := e.Call(); c.Phase == event.PhaseResult {
		if _, known := o.byID[c.Parent]; known {
			record.Policy.Intent = c.Parent
		}
	}
	s := stored{id: e.EventID, digest: e.Digest, record: record.Text(), envelope: bytes.Clone(e.Canonical)}
	s.entry = event.Entry{Prev: event.Genesis(o.Origin), Record: event.RecordHash(s.record), Seq: uint64(index) + 1}
	if index > 0 {
		s.entry.Prev = o.events[index-1].leaf
	}
	s.leaf = s.entry.Hash()
	o.byID[s.id] = index
	o.events = append(o.events, s)
	return s
}

func (o *Organization) leafHashes(size int) []id.Hash {
	hashes := make([]id.Hash, size)
	for i := range hashes {
		hashes[i] = o.events[i].leaf
	}
	return hashes
}

func (o *Organization) signCheckpoint() tlog.Checkpoint {
	return tlog.Checkpoint{Origin: o.Origin, Size: id.Index(len(o.events)),
		Root: subtreeRoot(o.leafHashes(len(o.events)))}
}

func (o *Organization) checkpointNote() ([]byte, error) { return o.signer.Sign(o.signCheckpoint()) }

// Receipt returns the COSE receipt of the event at an index, under the newest checkpoint. It must not be called while
// requests are running.
func (o *Organization) Receipt(index int) (tlog.Receipt, error) {
	return o.signer.SignReceipt(o.signCheckpoint(), id.Index(index), inclusionPath(index, o.leafHashes(len(o.events))))
}

// Bundle returns the bundle of the event at an index under the newest checkpoint. It must not be called while requests
// are running.
func (o *Organization) Bundle(index int) (*verify.Bundle, error) {
	note, err := o.checkpointNote()
	if err != nil {
		return nil, err
	}
	leaves, e := o.leafHashes(len(o.events)), o.events[index]
	p := verify.Parts{
		Organization: o.ID, Slug: o.Slug,
		Event: e.id, Index: id.Index(index), Entry: e.entry, Proof: inclusionPath(index, leaves),
		Checkpoint: o.signCheckpoint(), Note: note, Key: o.LogKey(),
		Disclosure: o.Disclosure, Record: e.record, Envelope: e.envelope,
	}
	if index > 0 {
		p.Previous, p.PreviousProof = o.events[index-1].entry, inclusionPath(index-1, leaves)
	}
	return verify.NewBundle(p)
}
