package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
	"github.com/agentledger/agentledger/verify"
)

// trustFlags name the keys and the policy that an auditor relies on.
type trustFlags struct {
	Key    string `placeholder:"VKEY" help:"The log's verifier key, from a source that you trust. Without it a bundle can be consistent, but nothing shows whose it is." type:"vkey"`
	Policy string `placeholder:"FILE" help:"A C2SP tlog-policy: logs that you trust and witnesses, of whom a quorum must have cosigned. With --key only the witnesses count." type:"input" expected:"a file with a C2SP tlog-policy"`
	Keys   string `placeholder:"FILE" help:"The saved answer of transparency/keys, for bundles signed by a key of the log before or after yours." type:"input" expected:"a file with a saved answer of transparency/keys"`
}

// directoryFlags are the same for the service's directory. If one of these flags is set, the directory must have listed the
// log.
type directoryFlags struct {
	Key    string `placeholder:"VKEY" help:"The log key of the service's directory, which must have listed the bundle's log: a second proof. Without it such a proof can be consistent, but nothing shows whose directory it is." type:"vkey"`
	Policy string `placeholder:"FILE" help:"A C2SP tlog-policy of the directory: its log, and witnesses of whom a quorum must have cosigned the directory's checkpoint in the second proof." type:"input" expected:"a file with a C2SP tlog-policy"`
	Keys   string `placeholder:"FILE" help:"The saved answer of the directory's transparency/keys." type:"input" expected:"a file with a saved answer of transparency/keys"`
}

// auditorTrust is the keys and the policy that an auditor relies on.
type auditorTrust struct {
	keys   []tlog.VerifierKey // one of them must have signed
	others []verify.LogKey    // of the same logs
	policy *trust.Policy      // whose quorum is required, or nil
	now    id.Instant         // when the check began
}

// readTrust reads the keys and the policy that the flags name. prefix begins the names of the flags in errors.
func (f trustFlags) readTrust(s *streams, prefix string) (t auditorTrust, err error) {
	t.now = id.InstantOf(time.Now())
	if f.Policy != "" {
		text, err := s.readSettings(f.Policy, trust.MaxText)
		if err != nil {
			return t, fmt.Errorf("%spolicy: %w", prefix, err)
		}
		if t.policy, err = parsePolicy(f.Policy, text); err != nil {
			return t, fmt.Errorf("%spolicy: %w", prefix, err)
		}
		for _, l := range t.policy.Logs {
			t.keys = append(t.keys, l.Key)
		}
	}
	if f.Key != "" {
		key, err := tlog.ParseVerifierKey(strings.TrimSpace(f.Key))
		if err != nil {
			return t, fmt.Errorf("%skey: %w", prefix, err)
		}
		t.keys = []tlog.VerifierKey{key}
	}
	if f.Keys != "" {
		if t.others, err = t.readOtherKeys(s, f.Keys); err != nil {
			return t, fmt.Errorf("%skeys: %w", prefix, err)
		}
	}
	return t, nil
}

// parsePolicy parses the policy of a file.
func parsePolicy(file string, text []byte) (*trust.Policy, error) {
	p, err := trust.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("expected a C2SP tlog-policy in %s, with lines such as log VKEY, witness NAME VKEY, and quorum NAME: %w", file, err)
	}
	return p, nil
}

// readOtherKeys reads further keys of a log. The list must contain a trusted key, because names alone do not prove that the
// list belongs to that log.
func (t auditorTrust) readOtherKeys(s *streams, file string) ([]verify.LogKey, error) {
	text, err := s.readSettings(file, maxProven)
	if err != nil {
		return nil, err
	}
	if len(t.keys) == 0 {
		return nil, errors.New("it needs --key or --policy too: a list says nothing about whose keys they are")
	}
	others, err := verify.ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("expected a saved answer of transparency/keys in %s: %w", file, err)
	}
	at := slices.IndexFunc(others, func(k verify.LogKey) bool { return slices.Contains(t.keys, k.Key) })
	if at < 0 {
		return nil, errors.New("the list does not hold the key that you trust")
	}
	name := others[at].Key.Name()
	if slices.ContainsFunc(others, func(k verify.LogKey) bool { return k.Key.Name() != name }) {
		return nil, errors.New("the list has keys of several logs")
	}
	return others, nil
}

// bundleOptions returns the options for a bundle: among the trusted keys, one that the bundle names, or else one of its log.
func (t auditorTrust) bundleOptions(b *verify.Bundle) verify.Options {
	o := verify.Options{CheckedAt: t.now, Retired: t.others, Witnesses: t.witnessKeys()}
	for _, k := range t.keys {
		switch {
		case k.String() == b.LogKey || slices.Contains(b.LogKeys, k.String()):
			o.Key = &k
			return o
		case o.Key == nil || o.Key.Name() != string(b.Origin):
			o.Key = &k
		}
	}
	return o
}

// witnessKeys returns the keys of the policy's witnesses.
func (t auditorTrust) witnessKeys() (all []tlog.WitnessKey) {
	if t.policy != nil {
		for _, w := range t.policy.Witnesses {
			all = append(all, w.Key)
		}
	}
	return all
}

// addDirectoryTrust adds the trust in the service's directory to the options for a
// bundle. Witnesses of the log's policy are named on the directory's checkpoint too.
func addDirectoryTrust(o verify.Options, d auditorTrust, second *verify.Directory) verify.Options {
	if second == nil || len(d.keys) == 0 && d.policy == nil {
		return o
	}
	inner := d.bundleOptions(second.Bundle)
	for _, w := range o.Witnesses {
		if !slices.Contains(inner.Witnesses, w) {
			inner.Witnesses = append(inner.Witnesses, w)
		}
	}
	o.Directory = &inner
	return o
}

// openCheckpoint opens a checkpoint with whichever key of its log signed it.
func (t auditorTrust) openCheckpoint(note []byte) (tlog.Checkpoint, error) {
	c, err := tlog.ReadCheckpoint(note)
	if err != nil {
		return tlog.Checkpoint{}, err
	}
	keys := slices.Clone(t.keys)
	for _, k := range t.others {
		if k.Signed(c.Size) && !slices.Contains(t.keys, k.Key) {
			keys = append(keys, k.Key)
		}
	}
	for _, k := range keys {
		if c, err = tlog.OpenCheckpoint(note, k); !errors.Is(err, tlog.ErrSignature) {
			return c, err
		}
	}
	return tlog.Checkpoint{}, err
}

// knownKeys returns all given keys, for trees of any size.
func (t auditorTrust) knownKeys() []tlog.VerifierKey {
	keys := slices.Clone(t.keys)
	for _, k := range t.others {
		keys = append(keys, k.Key)
	}
	return keys
}

// checkQuorum returns whether enough witnesses have cosigned a checkpoint, or nil if none are required or the log did not
// sign it.
func (t auditorTrust) checkQuorum(signed bool, note []byte) *bool {
	if t.policy == nil || !t.policy.AsksForWitnesses() || !signed {
		return nil
	}
	n, err := tlog.ParseNote(note)
	reached := err == nil && t.policy.Reached(t.policy.Cosignatures(n))
	return &reached
}

// validCosignatures returns the valid cosignatures of the policy's witnesses.
func (t auditorTrust) validCosignatures(note []byte) []verify.Cosignature {
	all := []verify.Cosignature{}
	n, err := tlog.ParseNote(note)
	if t.policy == nil || err != nil {
		return all
	}
	for _, c := range t.policy.Cosignatures(n) {
		all = append(all, verify.Cosignature{Name: c.Witness.Key.Name(), Time: c.Time,
			InFuture: trust.IsAhead(c.Time, t.now)})
	}
	return all
}

// quorumTime returns the time by which a quorum of the policy had cosigned a checkpoint,
// or nil if the cosignatures prove none.
func (t auditorTrust) quorumTime(signed bool, note []byte) *id.Instant {
	n, err := tlog.ParseNote(note)
	if t.policy == nil || !signed || err != nil {
		return nil
	}
	times := t.policy.Times(t.policy.Cosignatures(n), t.now)
	if !times.Known {
		return nil
	}
	return &times.By
}
