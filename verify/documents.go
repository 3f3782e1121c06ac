package verify

import (
	"fmt"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
)

// Documents are a record and its envelope, for checks of many events without bundles (package pack).
type Documents struct {
	Record   event.Record
	Envelope *event.Envelope // nil: not there
}

// ParseEnvelope reads the envelope, and checks that it is in canonical form and passes envelope_ok with the
// record. Errors wrap ErrMalformed or ErrMismatch.
func (d *Documents) ParseEnvelope(text string) error {
	e, err := readEnvelope(text)
	if err == nil {
		err = checkEnvelopeOf(&d.Record, e)
	}
	if err != nil {
		return err
	}
	d.Envelope = e
	return nil
}

// PublicKey parses the public_key of the record. Parsing costs more than a signature's check, so callers with
// many records keep the keys. Errors wrap ErrMalformed.
func (d *Documents) PublicKey() (edkey.Public, error) {
	key, err := parsePublicKey(d.Record.PublicKey)
	if err != nil {
		return key, fmt.Errorf("public_key: %w: %w", ErrMalformed, err)
	}
	return key, nil
}

// SignatureNeedsEnvelope reports whether the signature can't be checked because the envelope is not there.
func (d *Documents) SignatureNeedsEnvelope() bool {
	return d.Envelope == nil && d.Record.SigForm == event.FormCanonical.String()
}

// CheckSignature checks that key, which the caller MUST have from PublicKey, signed the record's event_digest,
// or the envelope where the record's form says so. Errors wrap ErrMalformed or ErrMismatch, the latter also when
// SignatureNeedsEnvelope.
func (d *Documents) CheckSignature(key edkey.Public) error {
	return checkSignatureOf(key, &d.Record, d.Envelope)
}
