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

// UnknownKeyError is returned when only unknown keys signed a checkpoint of the log. It
// is no proof of misbehaviour, because a log may get another key. errors.Is(err,
// tlog.ErrSignature) holds.
type UnknownKeyError struct {
	From    string    // source of the checkpoint
	Origin  id.Origin // of the log
	Size    id.Index  // of its tree, as the checkpoint says
	Signers []string  // signers with the log's name, as name and key id; unverified
	Given   []string  // the keys given, likewise
}

// Error describes the situation and the remedy.
func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("%s: the checkpoint of size %d is signed by %s, and not by %s: "+
		"no valid signature of the keys given. The log may have another key now. "+
		"Its service lists the keys with the sizes that each signs in /v1/public/orgs/<slug>/transparency/keys, and "+
		"an event ledger_log_key of the log says when it changed. "+
		"Take the new key from a source that you trust, and give --key for each: the old ones and the new one",
		e.From, e.Size, strings.Join(e.Signers, " and "), strings.Join(e.Given, " or "))
}

// Unwrap returns tlog.ErrSignature.
func (e *UnknownKeyError) Unwrap() error { return tlog.ErrSignature }

// AnotherLogError is returned when a source shows the checkpoint of another log than that
// of the given keys.
type AnotherLogError struct {
	From         string
	Shown, Given id.Origin
}

// Error says how the two logs are related.
func (e *AnotherLogError) Error() string {
	text := fmt.Sprintf("%s shows the log %s, and the keys given are of %s", e.From, e.Shown, e.Given)
	shown, n := e.Shown.Split()
	given, m := e.Given.Split()
	switch {
	case shown != given:
	case m > n:
		text += ": that one succeeds it, and its tiles lie under a prefix of its own"
	default:
		text += ": it succeeds that one. Follow it with its own key and a state file of its own, " +
			"and give what you kept as --predecessor"
	}
	return text
}

// Unwrap returns tlog.ErrSignature.
func (e *AnotherLogError) Unwrap() error { return tlog.ErrSignature }

// explainUnopened returns a more specific error for a checkpoint that no key opens, or
// err.
func (m *Monitor) explainUnopened(note []byte, from string, err error) error {
	c, unreadable := tlog.ReadCheckpoint(note)
	if unreadable != nil || !errors.Is(err, tlog.ErrSignature) {
		return err
	}
	if c.Origin != m.origin {
		return &AnotherLogError{From: from, Shown: c.Origin, Given: m.origin}
	}
	signers := verify.UnknownSigners(note, m.Keys)
	if len(signers) == 0 { // an invalid line of a given key, or no line of the log
		return err
	}
	e := &UnknownKeyError{From: from, Origin: m.origin, Size: c.Size, Signers: signers}
	for _, k := range m.Keys {
		e.Given = append(e.Given, verify.Signer(k.Name(), k.Hash()))
	}
	return e
}

// otherSigners returns the signature lines of a head that have the log's name and an
// unknown key. There are such lines during a key rotation.
func (m *Monitor) otherSigners(h signedHead) (signers []string) {
	note, err := tlog.ParseNote(h.note)
	if err != nil {
		return nil // cannot happen: the head's note was opened before
	}
	for _, line := range note.Signatures {
		given := slices.ContainsFunc(m.Keys, func(k tlog.VerifierKey) bool { return k.Hash() == line.KeyHash })
		if line.Name == string(m.origin) && !given {
			signers = append(signers, verify.Signer(line.Name, line.KeyHash))
		}
	}
	return signers
}
