package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// UnknownKeyError is returned if only unknown keys signed a checkpoint of the log. It is no proof
// of misbehaviour, because a log may get another key. errors.Is(err, tlog.ErrSignature) reports
// true.
type UnknownKeyError struct {
	From    string    // source of the checkpoint
	Origin  id.Origin // of the log
	Size    id.Index  // of its tree, according to the checkpoint
	Signers []string  // name and key ID of the signers with the log's name; unverified
	Given   []string  // name and key ID of the known keys
	// Unstated is why no event of the log vouches for a signer under a known key.
	Unstated error
}

// Error describes the situation and the remedy.
func (e *UnknownKeyError) Error() string {
	unstated := ""
	if e.Unstated != nil {
		unstated = " (" + strings.ReplaceAll(e.Unstated.Error(), "\n", "; ") + ")"
	}
	return fmt.Sprintf("%s: the checkpoint of size %d is signed by %s, and not by %s: "+
		"no valid signature of a known key, and no event ledger_log_key under a known key states another one%s. "+
		"If the log has another key nevertheless, its service lists the keys with the sizes that each signs in "+
		"/v1/public/orgs/<slug>/transparency/keys. "+
		"Take the new key from a source that you trust, and give --key for each: the old ones and the new one",
		e.From, e.Size, strings.Join(e.Signers, " and "), strings.Join(e.Given, " or "), unstated)
}

// Unwrap returns tlog.ErrSignature.
func (e *UnknownKeyError) Unwrap() error { return tlog.ErrSignature }

// AnotherLogError is returned if a source shows the checkpoint of a log other than the log of the
// given keys.
type AnotherLogError struct {
	From         string
	Shown, Given id.Origin
}

// Error describes how the two logs are related.
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
			"and give its state file as --predecessor"
	}
	return text
}

// Unwrap returns tlog.ErrSignature.
func (e *AnotherLogError) Unwrap() error { return tlog.ErrSignature }

// explainUnopened returns a more specific error for a checkpoint that no key opens, or err itself.
func (m *Monitor) explainUnopened(note []byte, from string, err error) error {
	c, unreadable := tlog.ReadCheckpoint(note)
	if unreadable != nil || !errors.Is(err, tlog.ErrSignature) {
		return err
	}
	if c.Origin != m.origin {
		return &AnotherLogError{From: from, Shown: c.Origin, Given: m.origin}
	}
	var known []tlog.VerifierKey
	for _, k := range m.knownKeys() {
		known = append(known, k.Key)
	}
	signers := verify.UnknownSigners(note, known)
	if len(signers) == 0 { // an invalid line of a given key, or no line with the log's name
		return err
	}
	e := &UnknownKeyError{From: from, Origin: m.origin, Size: c.Size, Signers: signers}
	for _, k := range known {
		e.Given = append(e.Given, verify.Signer(k.Name(), k.Hash()))
	}
	return e
}

// knownKeys returns the given keys and the keys that the log stated under one of them.
func (m *Monitor) knownKeys() []verify.LogKey {
	keys, _ := m.addAccepted() // cannot fail: the accepted keys were added before
	return keys
}

func (m *Monitor) addAccepted() (keys []verify.LogKey, err error) {
	for _, k := range m.Keys {
		keys = append(keys, verify.Always(k))
	}
	for _, a := range m.accepted {
		if keys, err = a.AddTo(keys); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// followKeys accepts the unknown keys that signed a checkpoint of the log, if the log stated them
// under a known key in a tree that is of one history with the stored head. The error is a Finding
// or why a key was not accepted; it may be nil although a key was not accepted.
func (m *Monitor) followKeys(ctx context.Context, s *state, note []byte) error {
	statements, unstated := verify.FindKeyStatements(note, m.knownKeys(),
		func(key tlog.KeyHash) (*verify.Bundle, error) { return m.keyStatement(ctx, s, key) })
	for _, st := range statements {
		stated := signedHead{Checkpoint: st.Checkpoint, note: st.Note, from: m.Log.Prefix() + ", the statement of a key"}
		older, newer := stated, s.head
		if newer.Size < older.Size {
			older, newer = newer, older
		}
		if err := m.checkExtends(ctx, older, newer); err != nil {
			return err
		}
		m.accepted, s.stated = append(slices.Clip(m.accepted), st.AcceptedKey), append(s.stated, stated)
	}
	return unstated
}

// keyStatement fetches the statement of a key, once per check.
func (m *Monitor) keyStatement(ctx context.Context, s *state, key tlog.KeyHash) (*verify.Bundle, error) {
	if a, fetched := s.statements[key]; fetched {
		return a.bundle, a.err
	}
	b, err := m.Log.KeyStatement(ctx, key)
	if s.statements == nil {
		s.statements = map[tlog.KeyHash]statementAnswer{}
	}
	s.statements[key] = statementAnswer{b, err}
	return b, err
}

type statementAnswer struct {
	bundle *verify.Bundle
	err    error
}

// findingIn returns err if it is a Finding, or nil.
func findingIn(err error) error {
	if f := (*Finding)(nil); errors.As(err, &f) {
		return f
	}
	return nil
}

// otherSigners returns the signature lines of a head with the log's name and an unknown key.
func (m *Monitor) otherSigners(h signedHead) (signers []string) {
	note, err := tlog.ParseNote(h.note)
	if err != nil {
		return nil // cannot happen: the head's note was parsed before
	}
	for _, line := range note.Signatures {
		known := slices.ContainsFunc(m.knownKeys(), func(k verify.LogKey) bool { return k.Key.Hash() == line.KeyHash })
		if line.Name == string(m.origin) && !known {
			signers = append(signers, verify.Signer(line.Name, line.KeyHash))
		}
	}
	return signers
}
