package log

import (
	"bytes"

	"github.com/agentledger/agentledger/chain"
	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/edkey"
	"github.com/agentledger/agentledger/storage"
)

// record checks what a record says against everything stored beside it.
func (x *examiner) record(e storage.Event) string {
	r, err := chain.ParseRecord(e.Record)
	switch {
	case err != nil:
		return "is malformed"
	case r.SequenceNum != e.Index.Sequence() || r.Origin != x.identity.Origin || r.OrganizationID != x.identity.Organization:
		return "belongs to another place"
	case r.EventID != e.ID || r.AgentID != e.Agent || r.ReceivedAt != e.ReceivedAt || r.Policy.Effective != e.Effective:
		return "differs from its columns"
	case r.ReceivedAt < x.before:
		return "was received before the one before it"
	}
	x.before, x.dated = r.ReceivedAt, true
	if r.Signer != chain.SignerSystem {
		x.counted[monthOf(r.ReceivedAt)]++
	}
	if problem := x.envelope(e, &r); problem != "" {
		x.find(Suspect, "envelope", uint64(e.Index), problem)
	}
	return ""
}

func (x *examiner) envelope(e storage.Event, r *chain.Record) string {
	envelope, err := event.Parse(e.Envelope, event.Options{Server: true, MaxBytes: len(e.Envelope) + 1, Organization: x.identity.Organization})
	switch {
	case e.Envelope == nil:
		return "is missing"
	case err != nil || !bytes.Equal(envelope.Canonical, e.Envelope):
		return "is malformed"
	case envelope.Digest != r.EventDigest || envelope.SignatureB64 != r.SigValueB64:
		return "is not the one that the record is about"
	case envelope.EventID != r.EventID || envelope.AgentID != r.AgentID || envelope.KeyID != r.KeyID || envelope.Decision != r.Policy.Declared:
		return "differs from the record"
	case envelope.TraceID != e.Trace || envelope.Tool != e.Tool || envelope.ActionKind != e.ActionKind:
		return "differs from the columns"
	}
	key, err := x.key(r.PublicKey)
	if err != nil {
		return "is signed by a key that is none"
	}
	if form, ok := envelope.Verify(key); !ok || form.String() != r.SigForm {
		return "is not signed as the record says"
	}
	return ""
}

// maxKeys bounds the decoded keys that one examination keeps.
const maxKeys = 4096

func (x *examiner) key(multikey string) (edkey.Public, error) {
	if k, ok := x.keys[multikey]; ok {
		return k, nil
	}
	raw, err := did.ParseMultikey(multikey)
	if err != nil {
		return edkey.Public{}, err
	}
	k, err := edkey.ParsePublic(raw[:])
	if err != nil {
		return edkey.Public{}, err
	}
	if len(x.keys) >= maxKeys {
		clear(x.keys)
	}
	x.keys[multikey] = k
	return k, nil
}
