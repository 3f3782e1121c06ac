// Package frompage checks bundles by the page "Verification" alone. Its author had seen nothing else of the project,
// and it shares no code with it: on the first run it agreed with all vectors of kind bundle. It changes with the page.
// Comments quote the heading that they implement.
package frompage

import (
	"errors"
	"fmt"
)

// ErrInputs means that the pinned key or the list of keys is malformed ("The rules of a verifier").
var ErrInputs = errors.New("not a key or list to check with")

// Verdict is one of the answers of "The verdicts": true, false, or null if too little is shown to decide.
type Verdict int

// The three verdicts of "The verdicts".
const (
	Null Verdict = iota
	True
	False
)

// verdictOf converts a condition to a verdict.
func verdictOf(ok bool) Verdict {
	if ok {
		return True
	}
	return False
}

// String returns the verdict as "The verdicts" writes it, which is also JSON.
func (v Verdict) String() string {
	switch v {
	case True:
		return "true"
	case False:
		return "false"
	}
	return "null"
}

// MarshalJSON writes true, false or null, as in the reports of "The verdicts".
func (v Verdict) MarshalJSON() ([]byte, error) { return []byte(v.String()), nil }

// Verdicts are the six of "The verdicts".
type Verdicts struct {
	Inclusion  Verdict `json:"inclusion_ok"`
	Checkpoint Verdict `json:"checkpoint_ok"`
	Chain      Verdict `json:"chain_ok"`
	Record     Verdict `json:"record_ok"`
	Signature  Verdict `json:"signature_ok"`
	Envelope   Verdict `json:"envelope_ok"`

	// SecondProof reports that the bundle has a second proof, which this package reads but does not check ("The
	// bundle").
	SecondProof bool `json:"-"`
}

// Right implements "The bundle is right" of "The verdicts": none of the six is false.
func (v Verdicts) Right() bool {
	for _, verdict := range []Verdict{v.Inclusion, v.Checkpoint, v.Chain, v.Record, v.Signature, v.Envelope} {
		if verdict == False {
			return false
		}
	}
	return true
}

// Verify implements the check of "The rules of a verifier": it reads the text of a bundle, and returns the six verdicts
// under the pinned key. keys is the saved list of keys, or nil. It returns ErrInputs, without checking anything, if the
// pinned key or the list is malformed; any other error means that the bundle is malformed, without a statement about
// its parts.
func Verify(bundle []byte, key string, keys []byte) (Verdicts, error) {
	mine, ok := readVerifierKey(key)
	if !ok {
		return Verdicts{}, fmt.Errorf("pinned key: %w", ErrInputs)
	}
	var list []listedKey
	if keys != nil {
		if list, ok = readKeys(string(keys), key, mine.name); !ok {
			return Verdicts{}, fmt.Errorf("list of keys: %w", ErrInputs)
		}
	}
	b, err := readBundle(string(bundle))
	if err != nil {
		return Verdicts{}, fmt.Errorf("the bundle can't be read: %w", err)
	}
	s := read(b)
	return Verdicts{
		Inclusion:   verdictOf(s.inclusionIsRight()),
		Checkpoint:  verdictOf(s.checkpointIsRight(key, list)),
		Chain:       verdictOf(s.chainIsRight()),
		Record:      s.recordVerdict(),
		Signature:   s.signatureVerdict(),
		Envelope:    s.envelopeVerdict(),
		SecondProof: b.secondProof,
	}, nil
}
