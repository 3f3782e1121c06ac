// Package frompage checks bundles by the page "Verification" alone. It was written from that page by somebody who had
// seen nothing else of the project, and shares no code with it: on the first run it agreed with all vectors of kind bundle. It
// changes with the page. Comments quote the heading that they implement.
package frompage

import (
	"errors"
	"fmt"
)

// ErrInputs says that the pinned key or the list of keys can't be read ("The rules of a verifier").
var ErrInputs = errors.New("not a key or list to check with")

// Verdict is one of the answers of "The verdicts": true, false, or null where too little is shown to tell.
type Verdict int

// The three verdicts of "The verdicts".
const (
	Null Verdict = iota
	True
	False
)

// told makes a verdict of what was found.
func told(ok bool) Verdict {
	if ok {
		return True
	}
	return False
}

// String is the verdict as "The verdicts" writes it, which is JSON, too.
func (v Verdict) String() string {
	switch v {
	case True:
		return "true"
	case False:
		return "false"
	}
	return "null"
}

// MarshalJSON writes true, false or null, as reports of "The verdicts" have them.
func (v Verdict) MarshalJSON() ([]byte, error) { return []byte(v.String()), nil }

// Verdicts are the six of "The verdicts".
type Verdicts struct {
	Inclusion  Verdict `json:"inclusion_ok"`
	Checkpoint Verdict `json:"checkpoint_ok"`
	Chain      Verdict `json:"chain_ok"`
	Record     Verdict `json:"record_ok"`
	Signature  Verdict `json:"signature_ok"`
	Envelope   Verdict `json:"envelope_ok"`

	// SecondProof says that the bundle has a second proof, which this package reads and does not check ("The bundle").
	SecondProof bool `json:"-"`
}

// Right is "The bundle is right" of "The verdicts": none of the six is false.
func (v Verdicts) Right() bool {
	for _, verdict := range []Verdict{v.Inclusion, v.Checkpoint, v.Chain, v.Record, v.Signature, v.Envelope} {
		if verdict == False {
			return false
		}
	}
	return true
}

// Verify is the check of "The rules of a verifier": it reads the text of a bundle, and tells the six verdicts under the
// pinned key. keys is the saved list of keys, nil if there is none. The error is ErrInputs when there is no check, since
// the pinned key is no verifier key or the list is no list; any other error means that the bundle can't be read, and that
// nothing is said of its parts.
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
		Inclusion:   told(s.inclusionIsRight()),
		Checkpoint:  told(s.checkpointIsRight(key, list)),
		Chain:       told(s.chainIsRight()),
		Record:      s.recordVerdict(),
		Signature:   s.signatureVerdict(),
		Envelope:    s.envelopeVerdict(),
		SecondProof: b.secondProof,
	}, nil
}
