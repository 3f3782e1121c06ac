package verify

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// MaxKeyStatements is the maximum number of statements that one call of FindKeyStatements fetches, and so the maximum
// number of rotations that a reader can catch up with in one visit.
const MaxKeyStatements = 16

// MaxKnownKeys is the maximum number of keys of one log that a reader remembers.
const MaxKnownKeys = 256

// AcceptedKey is a log key that the log stated under an earlier known key, in the form that readers
// store.
type AcceptedKey struct {
	Key  string   `json:"vkey"`
	By   string   `json:"by"`        // vkey of the key that signed the statement
	From id.Index `json:"from_size"` // Key signs trees of this size and larger ones, By only smaller ones
}

// String describes the change in a sentence.
func (a AcceptedKey) String() string {
	return fmt.Sprintf("the key %s replaces %s from size %d on: an entry of the log states it, in a tree that %s signed",
		signerFor(a.Key), signerFor(a.By), a.From, signerFor(a.By))
}

// signerFor returns the name and the key ID of a vkey.
func signerFor(vkey string) string {
	key, err := tlog.ParseVerifierKey(vkey)
	if err != nil {
		return "unreadable key"
	}
	return Signer(key.Name(), key.Hash())
}

// AddTo returns the known keys with the accepted one. From then on, By signs only trees smaller than From. If By is not
// a known key, AddTo returns known: what an unknown key vouched for does not count. It returns an error that wraps
// ErrTooManyKeys if MaxKnownKeys keys are known already; other errors wrap ErrMalformed.
func (a AcceptedKey) AddTo(known []LogKey) ([]LogKey, error) {
	key, err := tlog.ParseVerifierKey(a.Key)
	if err != nil {
		return nil, fmt.Errorf("accepted key: %w: %w", ErrMalformed, err)
	}
	by := slices.IndexFunc(known, func(k LogKey) bool { return k.Key.String() == a.By })
	if by < 0 {
		return known, nil
	}
	if key.Name() != known[by].Key.Name() || key == known[by].Key || a.From == 0 || a.From > tlog.MaxSize {
		return nil, fmt.Errorf("accepted key: name or size: %w", ErrMalformed)
	}
	all := slices.Clone(known)
	all[by].To = min(all[by].To, a.From)
	if slices.ContainsFunc(all, func(k LogKey) bool { return k.Key == key }) {
		return all, nil
	}
	if len(all) >= MaxKnownKeys {
		return nil, fmt.Errorf("accepted key: %w: a reader remembers at most %d keys of a log; pin its current key",
			ErrTooManyKeys, MaxKnownKeys)
	}
	return append(all, LogKey{Key: key, From: a.From, To: tlog.MaxSize + 1}), nil
}

// KeyStatement is the statement of a log about its next key.
type KeyStatement struct {
	AcceptedKey
	Checkpoint tlog.Checkpoint // its last entry states the key
	Note       []byte          // the signed checkpoint
}

// CheckKeyStatement checks the bundle of an event by which a log states its next key. The tree must
// end with the event. The stated key and a known key must have signed it. The known key must be
// current: it signs trees of this size and has no end, because a replaced key cannot state another
// one. The event must be one of the service's own events, with its whole content.
//
// The caller must check that the tree of the result and every tree that it knows are of one
// history. Otherwise a thief of the known key could state a key in another history. Errors wrap
// ErrMismatch, ErrMalformed or an error of tlog.
func CheckKeyStatement(b *Bundle, known []LogKey) (KeyStatement, error) {
	s, err := checkKeyStatement(b, known)
	if err != nil {
		return KeyStatement{}, fmt.Errorf("check key statement: %w", err)
	}
	return s, nil
}

func checkKeyStatement(b *Bundle, known []LogKey) (s KeyStatement, err error) {
	note, err := tlog.ParseNote([]byte(b.Checkpoint))
	if err != nil {
		return s, err
	}
	by, c, err := openByCurrentKey(note, known)
	if err != nil {
		return s, err
	}
	if c.Size != b.LogIndex+1 {
		return s, fmt.Errorf("log_index and the end of the tree: %w", ErrMismatch)
	}
	r := Check(b, Options{Key: &by})
	if !r.OK {
		return s, fmt.Errorf("%s: %w", r.Errors[0], ErrMismatch)
	}
	if r.RecordOK == nil || r.SignatureOK == nil || r.EnvelopeOK == nil {
		return s, fmt.Errorf("the event: %w: %w", errUndisclosed, ErrMismatch)
	}
	key, err := readStatedKey(b)
	if err != nil {
		return s, err
	}
	if slices.ContainsFunc(known, func(k LogKey) bool { return k.Key == key }) {
		return s, fmt.Errorf("the stated key is known already: %w", ErrMismatch)
	}
	if _, err := note.OpenCheckpoint(key); err != nil { // checks the key's name too
		return s, fmt.Errorf("the stated key: %w", err)
	}
	return KeyStatement{AcceptedKey{key.String(), by.String(), c.Size}, c, []byte(b.Checkpoint)}, nil
}

// openByCurrentKey opens a checkpoint with a known key that has no end and signs trees of its size.
func openByCurrentKey(note tlog.Note, known []LogKey) (by tlog.VerifierKey, c tlog.Checkpoint, err error) {
	err = fmt.Errorf("no line of a known key that still signs: %w", tlog.ErrSignature)
	for _, k := range known {
		if k.To <= tlog.MaxSize {
			continue
		}
		opened, failed := note.OpenCheckpoint(k.Key)
		if failed == nil && k.Signed(opened.Size) {
			return k.Key, opened, nil
		}
	}
	return by, c, err
}

// readStatedKey returns the key that the event of a checked bundle states.
func readStatedKey(b *Bundle) (key tlog.VerifierKey, err error) {
	record, err := event.ParseRecord([]byte(*b.Record))
	if err != nil {
		return key, err
	}
	e, err := readEnvelope(*b.Envelope)
	if err != nil {
		return key, err
	}
	var payload struct {
		Transition string `json:"transition"`
		Key        string `json:"vkey"`
	}
	if record.Signer != event.SignerSystem || e.ActionKind != LogKeyKind {
		return key, fmt.Errorf("not the service's event about a log key: %w", ErrMismatch)
	}
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		return key, fmt.Errorf("payload: %w: %w", ErrMalformed, err)
	}
	if payload.Transition != "log_key_created" {
		return key, fmt.Errorf("the event states no new key: %w", ErrMismatch)
	}
	if key, err = tlog.ParseVerifierKey(payload.Key); err != nil {
		return key, fmt.Errorf("vkey: %w: %w", ErrMalformed, err)
	}
	return key, nil
}

// FindKeyStatements follows the rotations of a log from the known keys to the keys that signed a
// checkpoint. It fetches the statement of each unknown key with a line of the log's name, and of
// the keys in between, and checks each with CheckKeyStatement, whose conditions for the caller
// apply to every result. The results are in the order of the rotations. The error names the
// statements that could not be fetched or are wrong; the statements that were found are returned
// with it. The known keys must be of one log.
func FindKeyStatements(note []byte, known []LogKey, fetch func(tlog.KeyHash) (*Bundle, error)) ([]KeyStatement, error) {
	n, err := tlog.ParseNote(note)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	f := keyFinder{known: known, fetch: fetch, fetched: map[tlog.KeyHash]bool{}}
	f.follow(n)
	return f.found, errors.Join(f.errs...)
}

// keyFinder is one run of FindKeyStatements.
type keyFinder struct {
	known   []LogKey
	fetch   func(tlog.KeyHash) (*Bundle, error)
	fetched map[tlog.KeyHash]bool
	found   []KeyStatement
	errs    []error
}

// follow finds the statements of the unknown keys that have a line in a note.
func (f *keyFinder) follow(note tlog.Note) {
	for _, line := range note.Signatures {
		if line.Name != f.known[0].Key.Name() || f.fetched[line.KeyHash] || len(f.fetched) == MaxKeyStatements ||
			slices.ContainsFunc(f.known, func(k LogKey) bool { return k.Key.Hash() == line.KeyHash }) {
			continue
		}
		f.fetched[line.KeyHash] = true
		if err := f.add(line.KeyHash); err != nil {
			f.errs = append(f.errs, fmt.Errorf("the statement of the key %s: %w", line.KeyHash, err))
		}
	}
}

// add fetches and checks the statement of a key, after the statements of the keys that signed it.
func (f *keyFinder) add(hash tlog.KeyHash) error {
	b, err := f.fetch(hash)
	if err != nil {
		return err
	}
	note, err := tlog.ParseNote([]byte(b.Checkpoint))
	if err != nil {
		return err
	}
	if _, _, err := openByCurrentKey(note, f.known); err != nil {
		f.follow(note)
	}
	s, err := CheckKeyStatement(b, f.known)
	if err != nil {
		return err
	}
	if signerFor(s.Key) != Signer(f.known[0].Key.Name(), hash) {
		return fmt.Errorf("it states another key: %w", ErrMismatch)
	}
	if f.known, err = s.AddTo(f.known); err != nil {
		return err
	}
	f.found = append(f.found, s)
	return nil
}
