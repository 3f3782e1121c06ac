package monitor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// UnknownKeyError: a checkpoint of the log is signed by keys that are not among those
// given. It proves nothing wrong: a log may get another key, and nothing in a
// checkpoint vouches for that. errors.Is(err, tlog.ErrSignature) holds.
type UnknownKeyError struct {
	From    string    // who showed the checkpoint
	Origin  id.Origin // of the log
	Size    id.Index  // of its tree, as the checkpoint says
	Signers []string  // who signed as the log, as name and key id; unverified
	Given   []string  // the keys given, likewise
}

// Error says what happened and what to do.
func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("%s: the checkpoint of size %d is signed by %s, and not by %s: no valid signature of the keys given. "+
		"The log may have another key now. Its service lists the keys with the sizes that each signs in /v1/public/orgs/<slug>/transparency/keys, and "+
		"an event ledger_log_key of the log says when it changed. Take the new key from a source that you trust, and give --key for each: the old ones and the new one",
		e.From, e.Size, strings.Join(e.Signers, " and "), strings.Join(e.Given, " or "))
}

// Unwrap returns tlog.ErrSignature.
func (e *UnknownKeyError) Unwrap() error { return tlog.ErrSignature }

// AnotherLogError: a source shows the checkpoint of another log than the one whose
// keys were given.
type AnotherLogError struct {
	From         string
	Shown, Given id.Origin
}

// Error says how the two belong together, if they do.
func (e *AnotherLogError) Error() string {
	text := fmt.Sprintf("%s shows the log %s, and the keys given are of %s", e.From, e.Shown, e.Given)
	shown, n := e.Shown.Split()
	given, m := e.Given.Split()
	switch {
	case shown != given:
	case m > n:
		text += ": that one succeeds it, and its tiles lie under a prefix of its own"
	default:
		text += ": it succeeds that one. Follow it with its own key and a state file of its own, and give what you kept as --predecessor"
	}
	return text
}

// Unwrap returns tlog.ErrSignature.
func (e *AnotherLogError) Unwrap() error { return tlog.ErrSignature }

// explainUnopened says more of a checkpoint that none of the keys opens, if it can: err is
// why.
func (m *Monitor) explainUnopened(note []byte, from string, err error) error {
	c, unreadable := tlog.ReadCheckpoint(note)
	if unreadable != nil || !errors.Is(err, tlog.ErrSignature) {
		return err
	}
	if c.Origin != m.origin {
		return &AnotherLogError{From: from, Shown: c.Origin, Given: m.origin}
	}
	signers := verify.UnknownSigners(note, m.Keys)
	if len(signers) == 0 { // a line of a key given, which does not verify, or none of the log
		return err
	}
	e := &UnknownKeyError{From: from, Origin: m.origin, Size: c.Size, Signers: signers}
	for _, k := range m.Keys {
		e.Given = append(e.Given, verify.Signer(k.Name(), k.Hash()))
	}
	return e
}

// otherSigners returns the lines by which a head's log may have signed it with further
// keys, beside one that was given: so it is while a log key is being rotated.
func (m *Monitor) otherSigners(h signedHead) (signers []string) {
	note, err := tlog.ParseNote(h.note)
	if err != nil {
		return nil // not of a head: it was opened
	}
	for _, line := range note.Signatures {
		given := slices.ContainsFunc(m.Keys, func(k tlog.VerifierKey) bool { return k.Hash() == line.KeyHash })
		if line.Name == string(m.origin) && !given {
			signers = append(signers, verify.Signer(line.Name, line.KeyHash))
		}
	}
	return signers
}
