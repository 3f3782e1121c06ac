// Package monitor follows a public log from outside: it keeps the newest head that
// it has verified, reads everything that is new, and finds out when the log shows
// another history than before, or another one to others.
//
// Invariants:
//
//   - A head is kept only after all of it was verified: signed by a key that the
//     caller gave, an extension of the head kept before and of each head that other
//     sources show, every new entry read, the hash chain and the numbers unbroken,
//     and the tree rebuilt from the entries up to the signed root.
//   - A Finding rests on what the log's key has signed, or on content that is not
//     what the log's own signed tree says. What can't be read, or is not in the form
//     of a log at all, is an ordinary error: nothing follows from it.
//   - A Finding leaves the state file as it was, and what it rests on is kept.
//   - A head counts as proved when it has the quorum of the policy given, and not
//     before. What is ahead of the witnesses is told apart, with the time it waits.
//   - Files are replaced whole: a crash leaves the old state or the new one.
//   - Memory is bounded by Options.Readers, however much there is to read.
//
// Sources: RFC 6962 (tree), C2SP tlog-tiles and tlog-checkpoint. Of the service it
// needs the tiles alone, so a mirror can be followed in its place.
package monitor

import (
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
	Keys  []tlog.VerifierKey // of one origin; a head counts when one of them has signed it
	State string             // file of the newest verified head

	// Others serve checkpoints of the same log to others: mirrors, witnesses.
	Others []*client.Tiles
	// Predecessor is the log that this one succeeds; nil when it succeeds none, or when
	// nothing is known of that.
	Predecessor *Predecessor
	// AskSuccessor asks, after a check, whether another log goes on in place of this one.
	AskSuccessor bool
	// Witnesses are those whose cosignatures count, and MaxLag is how old the newest
	// of these may be; 0 for any age, also none.
	Witnesses []tlog.WitnessKey
	MaxLag    time.Duration
	// Policy, in place of Witnesses, is whose quorum of witnesses each head has to reach.
	// MaxLag then is for how long a head that was verified may wait for it; default 10
	// minutes. Its log lines are not looked at.
	Policy *trust.Policy
	// Evidence is the folder for what findings rest on; "" means State + ".evidence".
	Evidence string

	Readers int           // bundles read at a time; default 8
	Looks   int           // how often a head that is too small is looked at before it counts; default 3
	Pause   time.Duration // between two looks; default 2 s
	Clock   func() time.Time

	// Progress, when set, is told how far reading has come, in the goroutine of Check.
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

// Monitor follows one log. It is not safe for concurrent use, and one process at a
// time works on a state file.
type Monitor struct {
	Options
	origin id.Origin

	// What a Fleet adds, each perhaps nil.
	listed []signedHead // what the directory lists of this log, ascending; without notes
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

// Check looks at the log once. A *Finding means that the log is not what it was or
// what others see; every other error that nothing can be told. An error about other
// sources or witnesses alone comes after the head has been verified and kept.
func (m *Monitor) Check(ctx context.Context) (Report, error) {
	r, err := m.checkOnce(ctx)
	if m.AskSuccessor && ctx.Err() == nil {
		if next, asked := m.Log.Successor(ctx); asked == nil && next.Origin == m.origin.Next() {
			r.Successor = &SuccessorReport{Origin: next.Origin, LogKey: next.LogKey}
		}
	}
	return r, err
}

func (m *Monitor) checkOnce(ctx context.Context) (Report, error) {
	r := Report{Origin: m.origin, CheckedAt: id.InstantOf(m.Clock()), RootHash: tlog.EmptyRoot(), Sources: []SourceReport{}, Cosignatures: []verify.Cosignature{}}
	s, err := m.loadState()
	if err != nil {
		return r, fmt.Errorf("read state: %w", err)
	}
	r.KeptSize, r.TreeSize, r.RootHash = s.tree.Size(), s.tree.Size(), s.tree.Root()
	others, unread := m.fetchOtherHeads(ctx, &r)
	others, lost := m.askCosigned(ctx, others)
	if err := m.advanceState(ctx, s, others); err != nil {
		return r, m.keepEvidence(ctx, err)
	}
	succession := m.checkSuccession(ctx, s, &r)
	if f := (*Finding)(nil); errors.As(succession, &f) {
		return r, m.keepEvidence(ctx, succession)
	}
	r.TreeSize, r.RootHash, r.NewEntries = s.tree.Size(), s.tree.Root(), s.tree.Size()-r.KeptSize
	r.OtherSigners = m.otherSigners(s.head)
	heads := append(others, s.head)
	unproved := m.checkQuorum(s, &r, heads, lost)
	if m.Policy != nil {
		lost = nil // it is part of unproved, once that has lasted
	}
	if m.commit != nil {
		if err := m.commit(s.tree.Size()); err != nil {
			return r, fmt.Errorf("write state: %w", err)
		}
	}
	if err := m.saveState(s); err != nil {
		return r, fmt.Errorf("write state: %w", err)
	}
	return r, errors.Join(unread, lost, succession, m.checkCosignatures(&r, heads), unproved)
}

// advanceState takes the state to the log's newest head, which must extend every head
// that is known.
func (m *Monitor) advanceState(ctx context.Context, s *state, others []signedHead) error {
	known := others
	if s.head.note != nil {
		known = append([]signedHead{s.head}, others...)
	}
	below, above := m.listedBeside(s.tree.Size())
	shown, err := m.fetchNewestHead(ctx, slices.Concat(known, m.listed))
	if err != nil {
		return err
	}
	known = append(known, below...)
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

// listedBeside parts what the directory lists: trees that are read already, and those
// that will be come by in reading.
func (m *Monitor) listedBeside(read id.Index) (below, above []signedHead) {
	at := slices.IndexFunc(m.listed, func(h signedHead) bool { return h.Size > read })
	if at < 0 {
		at = len(m.listed)
	}
	return m.listed[:at], m.listed[at:]
}
