// Package monitor follows a public log from outside. It stores the latest verified head, reads
// every new entry, and detects if the log shows another history than before, or another history to
// others.
//
// Invariants:
//
//   - A head is stored only after complete verification. One of the caller's keys signed it, or a
//     key that the log stated under one of them. It extends the stored head and each head of other
//     sources. Every new entry was read, hash chain and numbers are unbroken, and the entries lead
//     to the signed root.
//   - The log's next key is accepted if a known key signed the tree with the event that states it,
//     and that tree is in the history of all other trees. The previous key then signs no tree of
//     that size or larger, and cannot state another key.
//   - A Finding is proved by signatures of the log's key, or by content that contradicts the log's
//     own signed tree. Unreadable or malformed content is an ordinary error and proves nothing.
//   - A Finding leaves the state file unchanged, and its evidence is stored.
//   - A view has an age only if there are witnesses. The age is then part of the check: a view that
//     no witness has confirmed recently is an error, so nobody can freeze a monitor unnoticed.
//   - With a trust policy, a head counts as proved only with the policy's quorum. Report.Quorum
//     reports the entries that still wait and since when.
//   - Files are replaced atomically: a crash leaves the old state or the new one.
//   - Memory is bounded by Options.Readers, however much there is to read.
//
// Sources: RFC 6962 (tree), C2SP tlog-tiles and tlog-checkpoint. A monitor needs only the tiles of
// a service, so it can follow a mirror.
//
// The package is stable in the sense of README, section Stability.
package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
	"github.com/agentledger/agentledger/verify"
)

// Options configure New. Log, Keys and State are required.
type Options struct {
	Log   *client.Tiles
	Keys  []tlog.VerifierKey // of one origin; a head counts if one of these keys signed it
	State string             // file with the latest verified head

	// Others serve checkpoints of the same log, for example mirrors and witnesses.
	Others []*client.Tiles
	// Predecessor is the log that this log succeeds; nil if there is none or it is unknown.
	Predecessor *Predecessor
	// AskSuccessor makes Check ask for the log's successor after a check.
	AskSuccessor bool
	// Witnesses are the witnesses whose cosignatures count. MaxLag is the maximum age of the latest
	// cosignature; 0 allows any age and no cosignature.
	Witnesses []tlog.WitnessKey
	MaxLag    time.Duration
	// MaxAge is the maximum age of the view. Without it, anyone between the monitor and the log
	// could answer with one old state permanently. With a Policy the age counts from the time since
	// which a quorum has cosigned; the default is 3 hours unless the quorum is trust.None, and a
	// negative value allows any age. Without a Policy, MaxLag and MaxAge both limit the age of the
	// latest cosignature. Cosignatures from the future (trust.IsAhead) do not count.
	MaxAge time.Duration
	// Policy replaces Witnesses: each head must reach its quorum. MaxLag then limits how long a
	// verified head may wait for the quorum; the default is 10 minutes. The policy's log lines are
	// ignored.
	Policy *trust.Policy
	// Evidence is the folder for the evidence of findings. If "", it is State + ".evidence".
	Evidence string

	Readers int           // number of bundles read concurrently; default 8
	Looks   int           // how often a head that is too small is fetched before it is a finding; default 3
	Pause   time.Duration // between two such fetches; default 2 s
	Clock   func() time.Time

	// Progress, if set, is called in the goroutine of Check with the number of entries read so far.
	Progress func(read, size id.Index)
}

func (o Options) withDefaults() Options {
	if o.Evidence == "" {
		o.Evidence = o.State + ".evidence"
	}
	if o.Policy != nil {
		o.Witnesses = nil
		for _, w := range o.Policy.Witnesses {
			o.Witnesses = append(o.Witnesses, w.Key)
		}
	}
	if o.Policy != nil && o.MaxLag <= 0 {
		o.MaxLag = defaultQuorumLag
	}
	if o.Policy != nil && o.MaxAge == 0 && o.Policy.Quorum != trust.None {
		o.MaxAge = DefaultMaxAge
	}
	if o.Readers <= 0 {
		o.Readers = 8
	}
	if o.Looks <= 0 {
		o.Looks = 3
	}
	if o.Pause <= 0 {
		o.Pause = 2 * time.Second
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Progress == nil {
		o.Progress = func(id.Index, id.Index) {}
	}
	return o
}

// Monitor follows one log. It is not safe for concurrent use, and only one process at a time may
// use a state file.
type Monitor struct {
	Options
	origin   id.Origin
	accepted []verify.AcceptedKey // stated by the log under a known key, oldest first

	// Set by a Fleet; each may be nil.
	listed []signedHead // the log's trees in the directory, ascending; without notes
	attach func(ctx context.Context, known Evidence) (map[string][]byte, error)
	visit  func(ctx context.Context, begin id.Index, entries []event.Entry) error // every new entry, in order
	commit func(to id.Index) error                                                // before the state is written
}

// New checks options and returns a monitor. It does no I/O.
func New(o Options) (*Monitor, error) {
	if o.Log == nil || o.State == "" || len(o.Keys) == 0 {
		return nil, errors.New("monitor: log, keys and state file are required")
	}
	name := o.Keys[0].Name()
	if slices.ContainsFunc(o.Keys, func(k tlog.VerifierKey) bool { return k.Name() != name }) {
		return nil, errors.New("monitor: the keys are of different origins")
	}
	return &Monitor{Options: o.withDefaults(), origin: id.Origin(name)}, nil
}

// Check checks the log once. A *Finding proves misbehaviour of the log; any other error proves
// nothing. An error that concerns only other sources or witnesses is returned after the head was
// verified and stored. Errors are *Finding, *UnknownKeyError, *AnotherLogError, ErrState, ErrLag,
// ErrQuorum, and those of client, tlog and verify.
func (m *Monitor) Check(ctx context.Context) (Report, error) {
	r, err := m.checkOnce(ctx)
	if m.AskSuccessor && ctx.Err() == nil {
		if next, err := m.Log.Successor(ctx); err == nil && next.Origin == m.origin.Next() {
			r.Successor = &SuccessorReport{Origin: next.Origin, LogKey: next.LogKey}
		}
	}
	return r, err
}

func (m *Monitor) checkOnce(ctx context.Context) (Report, error) {
	r := Report{Origin: m.origin, CheckedAt: id.InstantOf(m.Clock()), RootHash: tlog.EmptyRoot(),
		Sources: []SourceReport{}, Cosignatures: []verify.Cosignature{}}
	s, err := m.loadState()
	if err != nil {
		return r, fmt.Errorf("read state: %w", err)
	}
	r.KeptSize, r.TreeSize, r.RootHash = s.tree.Size(), s.tree.Size(), s.tree.Root()
	known := len(m.accepted)
	others, unread := m.fetchOtherHeads(ctx, s, &r)
	others, lost := m.askCosigned(ctx, s, others)
	if err := cmp.Or(findingIn(unread), findingIn(lost)); err != nil {
		return r, m.keepEvidence(ctx, err)
	}
	if err := m.advanceState(ctx, s, others); err != nil {
		return r, m.keepEvidence(ctx, err)
	}
	if len(m.accepted) > known {
		r.AcceptedKeys = m.accepted[known:]
	}
	succession := m.checkSuccession(ctx, s, &r)
	if f := (*Finding)(nil); errors.As(succession, &f) {
		return r, m.keepEvidence(ctx, succession)
	}
	r.TreeSize, r.RootHash, r.NewEntries = s.tree.Size(), s.tree.Root(), s.tree.Size()-r.KeptSize
	r.OtherSigners = m.otherSigners(s.head)
	heads := append(others, s.head)
	unproved := m.checkQuorum(s, &r, heads, lost)
	old := m.checkAge(s, &r, append(heads, s.proven))
	if m.Policy != nil {
		lost = nil // part of unproved, after MaxLag
	}
	if m.commit != nil {
		if err := m.commit(s.tree.Size()); err != nil {
			return r, fmt.Errorf("write state: %w", err)
		}
	}
	if err := m.saveState(s); err != nil {
		return r, fmt.Errorf("write state: %w", err)
	}
	return r, errors.Join(unread, lost, succession, old, unproved)
}

// advanceState advances the state to the log's latest head, which must extend every known head.
func (m *Monitor) advanceState(ctx context.Context, s *state, others []signedHead) error {
	known := others
	if s.head.note != nil {
		known = append([]signedHead{s.head}, others...)
	}
	below, above := m.listedBeside(s.tree.Size())
	shown, err := m.fetchNewestHead(ctx, s, slices.Concat(known, m.listed))
	if err != nil {
		return err
	}
	known = slices.Concat(known, s.stated, below)
	for _, k := range known {
		if err := m.checkExtends(ctx, k, shown); err != nil {
			return err
		}
	}
	if err := m.readEntries(ctx, s, shown, above); err != nil {
		return err
	}
	s.head = shown
	return nil
}

// listedBeside splits the listed trees into trees up to the read size and larger trees, which
// reading will reach.
func (m *Monitor) listedBeside(read id.Index) (below, above []signedHead) {
	at := slices.IndexFunc(m.listed, func(h signedHead) bool { return h.Size > read })
	if at < 0 {
		at = len(m.listed)
	}
	return m.listed[:at], m.listed[at:]
}
