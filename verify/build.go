package verify

import (
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Parts is a server's data about one event, all under one checkpoint.
type Parts struct {
	Organization id.Organization
	Slug         id.Slug
	Event        id.Event
	Index        id.Index
	Entry        event.Entry // the sequence number follows from Index
	Proof        []id.Hash   // inclusion of Index

	Previous      event.Entry // the entry at Index-1; both are ignored if Index is 0
	PreviousProof []id.Hash

	Checkpoint tlog.Checkpoint
	Note       []byte // the checkpoint, signed
	Key        tlog.VerifierKey
	Signers    []tlog.VerifierKey // all keys that signed Note, oldest first; may be empty if Key is the only one

	ActionKind string // of the envelope
	Disclosure id.Disclosure
	Record     []byte
	Envelope   []byte      // nil if erased
	ErasedAt   *id.Instant // nil if not erased
}

// NewBundle returns a bundle without the parts that the disclosure does not cover. Disclosed
// returns the disclosure of the service's own events. NewBundle does not check proofs; Check does.
// Errors are those of event.ParseRecord.
func NewBundle(p Parts) (*Bundle, error) {
	p.Entry.Seq = p.Index.Sequence()
	b := &Bundle{
		Version: BundleVersion, OrganizationID: p.Organization, OrganizationSlug: p.Slug,
		Origin: p.Checkpoint.Origin, EventID: p.Event, SequenceNum: p.Entry.Seq, LogIndex: p.Index,
		EventHash: p.Entry.Hash(), Entry: string(p.Entry.Text()), Inclusion: p.newInclusion(p.Index, p.Proof),
		Checkpoint: string(p.Note), LogKey: p.Key.String(), Disclosure: p.Disclosure,
	}
	if len(p.Signers) > 1 {
		for _, k := range p.Signers {
			b.LogKeys = append(b.LogKeys, k.String())
		}
	}
	if p.Index > 0 {
		p.Previous.Seq = p.Entry.Seq - 1
		text, previous := string(p.Previous.Text()), p.newInclusion(p.Index-1, p.PreviousProof)
		b.PreviousEntry, b.PreviousInclusion = &text, &previous
	}
	if err := b.addDisclosed(p); err != nil {
		return nil, fmt.Errorf("build bundle: %w", err)
	}
	return b, nil
}

func (p *Parts) newInclusion(index id.Index, hashes []id.Hash) Inclusion {
	if hashes == nil {
		hashes = []id.Hash{}
	}
	return Inclusion{LogIndex: index, TreeSize: p.Checkpoint.Size, RootHash: p.Checkpoint.Root, Hashes: hashes}
}

// addDisclosed adds record and envelope if the disclosure covers them.
func (b *Bundle) addDisclosed(p Parts) error {
	if p.Disclosure == id.DiscloseFull {
		r, err := event.ParseRecord(p.Record)
		if err != nil {
			return err
		}
		b.Disclosure = Disclosed(p.Disclosure, r.Signer, p.ActionKind)
	}
	if b.Disclosure == id.DiscloseRecord || b.Disclosure == id.DiscloseFull {
		text := string(p.Record)
		b.Record, b.ErasedAt = &text, p.ErasedAt
	}
	if b.Disclosure == id.DiscloseFull && p.Envelope != nil {
		text := string(p.Envelope)
		b.Envelope = &text
	}
	return nil
}

// TlogProof returns the entry's inclusion as C2SP tlog-proof text, without extra
// data. The leaf data is the bundle's entry.
func (b *Bundle) TlogProof() []byte {
	p := tlog.Proof{Index: b.LogIndex, Hashes: b.Inclusion.Hashes, Checkpoint: []byte(b.Checkpoint)}
	return p.Text()
}
