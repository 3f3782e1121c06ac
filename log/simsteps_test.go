package log_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage"
)

func (s *sim) must(err error) {
	s.t.Helper()
	if err != nil {
		s.fault("%v", err)
	}
}

func (s *sim) tenant() id.Tenant { return s.tenants[s.random.IntN(len(s.tenants))] }

func (s *sim) fresh(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("e", s.names)
		s.names++
	}
	return names
}

func (s *sim) many(n int) int {
	if s.large {
		return n
	}
	return 8
}

func (s *sim) reverify() {
	if s.large {
		auditor := audit.New(audit.Options{Ledgers: s.log.Ledgers, Store: s.store, Clock: s.timeNow})
		_ = auditor.RunOnce(s.t.Context()) // it fails with the store
	}
}

func (s *sim) submit(n int) { s.begin(s.log, &ticket{tenant: s.tenant(), names: s.fresh(n)}) }

func (s *sim) reconfigure() {
	s.begin(s.log, &ticket{tenant: s.tenant(), names: s.fresh(1 + s.random.IntN(2)), change: true, staleIfs: s.random.IntN(3)})
}

// again sends a name or an idempotency key once more, alone or beside a new one.
func (s *sim) again() {
	if s.names == 0 {
		return
	}
	names := []string{fmt.Sprint([]string{"e", "e", "x"}[s.random.IntN(3)], s.random.IntN(s.names))}
	if s.random.IntN(3) == 0 {
		names = append(s.fresh(1), names...)
	}
	s.begin(s.log, &ticket{tenant: s.tenant(), names: names})
}

func (s *sim) begin(l *log.Stepped, t *ticket) {
	s.number++
	t.number, t.by = s.number, l
	s.trace("  ticket %d of %d: %v", t.number, t.tenant, t.names)
	s.tickets = append(s.tickets, t)
	t.call = l.Begin(s.t.Context(), t.tenant, func(_ context.Context, state *log.State) (log.Submission, error) {
		return s.prepare(t, state)
	})
}

// correction brings a ledger back that is ahead.
func (s *sim) correction(t *ticket, state *log.State) (sub log.Submission, err error) {
	if sub.Clock, err = t.by.CorrectClock(s.t.Context(), state); err != nil {
		return sub, err
	}
	d := statement(s.t, state, t.names[0], sub.Clock.Payload(fmt.Sprintf(correctionFormat, state.ConfigVersion(), t.number)))
	d.IdempotencyKey = keyOf(t.names[0])
	sub.Drafts = []log.Draft{d}
	return sub, nil
}

// correctionFormat is the reason of a correction, by which the oracle knows it.
const correctionFormat = "version=%d ticket=%d"

// erasureFormat is the reason of an erasure, by which the oracle knows it.
const erasureFormat = "v%d_t%d"

// erasure erases some events of the agents that follow each other, if there are some.
func (s *sim) erasure(t *ticket, state *log.State) (sub log.Submission) {
	s.applied.replay(s.store.applied)
	events := s.applied.ledger(t.tenant).events[:state.Size()]
	erasure := event.Erasure{Reason: fmt.Sprintf(erasureFormat, state.ConfigVersion(), t.number)}
	begin := s.random.IntN(len(events))
	for i := begin; i < min(begin+s.many(20), len(events)); i++ {
		if !events[i].system {
			erasure.Ranges = append(erasure.Ranges, id.Range{Begin: id.Index(i), End: id.Index(i + 1)})
		}
	}
	if len(erasure.Ranges) == 0 {
		return sub
	}
	d := statementOf(s.t, state, event.KindErasure, t.names[0], erasure.Payload())
	d.IdempotencyKey, d.Erases = keyOf(t.names[0]), erasure.Ranges
	sub.Drafts = []log.Draft{d}
	return sub
}

func (s *sim) prepare(t *ticket, state *log.State) (log.Submission, error) {
	if t.correct {
		return s.correction(t, state)
	}
	if t.erase && state.Size() > 0 {
		if sub := s.erasure(t, state); len(sub.Drafts) > 0 {
			return sub, nil
		}
	}
	sub := log.Submission{Reconfigures: t.change}
	for i, name := range t.names {
		kind := "event"
		if t.change && i == len(t.names)-1 {
			kind = "last-of-change"
		}
		e := s.w.get(t.tenant, name)
		a := s.w.agent.Attestation(e)
		a.IngestKeyID = fmt.Sprintf("version=%d ticket=%d kind=%s cap=%d", state.ConfigVersion(), t.number, kind, s.limit)
		a.Cap = s.limit
		d := log.NewDraft(state.Identity(), e, a)
		d.IdempotencyKey = keyOf(name) // the ingest key, by which it is kept apart, is told above
		sub.Drafts = append(sub.Drafts, d)
	}
	if t.change {
		c := storage.Change{Kind: "config", Key: "k", Value: fmt.Append(nil, t.number), If: storage.AnyVersion}
		if t.staleIfs > 0 {
			t.staleIfs--
			c.If = 1 << 40
		}
		sub.Changes = []storage.Change{c}
	}
	return sub, nil
}

// otherWriter has another process append an event between ours.
func (s *sim) otherWriter() {
	other, err := s.opened()
	if err != nil {
		return // the store is broken, which ours is yet to learn
	}
	t := &ticket{tenant: s.tenant(), names: s.fresh(1), change: s.random.IntN(4) == 0}
	if len(s.tickets) > 0 && s.random.IntN(2) == 0 { // a caller that came here with what it sent to us
		again := s.tickets[s.random.IntN(len(s.tickets))]
		t.tenant, t.names = again.tenant, again.names
	}
	s.begin(other, t)
	s.drain(other)
}

// drain lets everything come to its end.
func (s *sim) drain(l *log.Stepped) {
	for l.Repair() || l.Land(s.random.IntN) || l.Launch() {
		s.poll()
	}
	for n := len(s.tickets) + 1; len(s.tickets) != n; {
		n = len(s.tickets)
		s.poll()
		for l.Repair() || l.Land(s.random.IntN) || l.Launch() {
			s.poll()
		}
	}
}

func (s *sim) read() {
	tenant := s.tenant()
	state, err := s.log.State(s.t.Context(), tenant)
	if err != nil {
		return // out of reach
	}
	if state.Size() == 0 {
		return
	}
	at := id.Index(s.random.Uint64N(uint64(state.Size())))
	leaf, root, _, err := s.log.Inclusion(s.t.Context(), state, at, state.Size())
	if errors.Is(err, storage.ErrBroken) {
		return // the process ends as soon as it learns of it
	}
	s.durable.replay(s.store.applied[:s.store.durable])
	if err != nil || root != state.Root() || leaf != s.durable.ledger(tenant).events[at].leaf {
		s.fault("tenant %d: inclusion of %d in %d: %v", tenant, at, state.Size(), err)
	}
	s.applied.replay(s.store.applied)
	e, err := s.log.Event(s.t.Context(), state, at, storage.FieldEnvelope)
	if errors.Is(err, storage.ErrBroken) {
		return // the leaf was in memory, the event is not
	}
	if by := s.applied.ledger(tenant).events[at].erasedBy; err != nil || e.ErasedBy != by || (e.Envelope == nil) != (by != 0) {
		s.fault("tenant %d: event %d: %d bytes of envelope, erased by %d, want %d: %v", tenant, at, len(e.Envelope), e.ErasedBy, by, err)
	}
	name := s.durable.ledger(tenant).events[at].name
	r := s.log.Replays(s.t.Context(), state, []log.Query{{Event: id.Event(name), Digest: s.w.get(tenant, name).Digest}})[0]
	known, err := r.Known, r.Err
	if err == nil && !known {
		s.fault("tenant %d: published event %s is not known", tenant, name)
	}
}

func (s *sim) clock() {
	move := []time.Duration{time.Millisecond, time.Minute, -time.Second, -time.Hour, 8 * 24 * time.Hour, audit.MaxPassAge}
	s.now = s.now.Add(move[s.random.IntN(len(move))])
	if s.latest.Before(s.now) {
		s.latest = s.now
	}
}

// crash ends the process and starts another on what is durable.
func (s *sim) crash() {
	s.trace("  crash: %d of %d appends are durable", s.store.durable, len(s.store.applied))
	s.tickets = nil // what they would have been told is not known
	s.store.crash()
	_ = s.anchors.Abandon()
	s.open()
}
