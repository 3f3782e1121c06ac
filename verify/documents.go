package verify

import (
	"fmt"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
)

// Documents is a record and its envelope, for checks of many events without bundles (package pack).
type Documents struct {
	Record   event.Record
	Envelope *event.Envelope // may be nil
}

// ParseEnvelope parses the envelope and checks that it is canonical and agrees with the record, as
// envelope_ok requires. Errors wrap ErrMalformed or ErrMismatch.
func (d *Documents) ParseEnvelope(text string) error {
	e, err := readEnvelope(text)
	if err == nil {
		err = checkRecordEnvelope(&d.Record, e)
	}
	if err != nil {
		return err
	}
	d.Envelope = e
	return nil
}

// PublicKey parses the public_key of the record. Parsing costs more than verifying a signature, so
// callers with many records should cache the keys. Errors wrap ErrMalformed.
func (d *Documents) PublicKey() (edkey.Public, error) {
	key, err := parsePublicKey(d.Record.PublicKey)
	if err != nil {
		return key, fmt.Errorf("public_key: %w: %w", ErrMalformed, err)
	}
	return key, nil
}

// SignatureNeedsEnvelope reports whether the signature cannot be checked because the envelope is
// missing.
func (d *Documents) SignatureNeedsEnvelope() bool {
	return d.Envelope == nil && d.Record.SigForm == event.FormCanonical.String()
}

// CheckSignature checks that key signed the record's event_digest or the envelope, depending on the
// record's form. key MUST be the result of PublicKey. Errors wrap ErrMalformed or ErrMismatch, the
// latter also if SignatureNeedsEnvelope.
func (d *Documents) CheckSignature(key edkey.Public) error {
	return checkRecordSignature(key, &d.Record, d.Envelope)
}
