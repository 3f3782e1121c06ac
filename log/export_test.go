package log

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log/anchor"
)

// CounterOf returns the name of the counter of a month.
func CounterOf(year, ofYear int) string { return Month(year*12 + ofYear - 1).CounterName() }

// FlushAnchors writes the anchors of everything published so far.
func (l *Ledgers) FlushAnchors() error { return l.anchors.Flush() }

// AnchorNotes yields the notes of the anchors.
func (l *Ledgers) AnchorNotes() iter.Seq2[anchor.Note, error] { return l.anchors.Notes() }

// Die abandons the anchors of ledgers that are never closed.
func (l *Ledgers) Die() { _ = l.anchors.Abandon() }

// AnchorsLost returns how often the anchors were missing.
func (l *Ledgers) AnchorsLost() uint64 { return l.anchors.TimesLost() }

// CompactWhile compacts, and calls during once while notes are being copied.
func (l *Ledgers) CompactWhile(ctx context.Context, during func()) error {
	return l.anchors.Compact(ctx, func() {
		if during != nil {
			during()
			during = nil
		}
	})
}

// Stepped is ledgers without goroutines: its user decides when the sequencer, the finisher and the repairs do their
// next step.
type Stepped struct {
	*Ledgers
	flights map[int][]appendInFlight // by stream
	repairs []*ledger
}

// OpenStepped is Open for Stepped.
func OpenStepped(ctx context.Context, o Options) (*Stepped, error) {
	if err := o.Store.Barrier(ctx); err != nil {
		return nil, err
	}
	s := &Stepped{Ledgers: newLedgers(o.withDefaults()), flights: make(map[int][]appendInFlight)}
	s.queue.now, s.renewal = s.clock, time.Hour
	return s, nil
}

// Launch runs the sequencer's next round, if something waits and it may run.
func (s *Stepped) Launch() bool {
	s.queue.mu.Lock()
	room, _ := s.queue.hasCapacity()
	var r *appendRound
	if room {
		r = s.queue.gatherRound()
	}
	s.queue.mu.Unlock()
	if r == nil {
		return false
	}
	for f := range s.launchRound(r) {
		s.flights[f.stream.number] = append(s.flights[f.stream.number], f)
	}
	return true
}

// Land ends the oldest append in flight of a stream, if there is one. pick chooses among n streams.
func (s *Stepped) Land(pick func(n int) int) bool {
	var streams []int
	for n, out := range s.flights {
		if len(out) > 0 {
			streams = append(streams, n)
		}
	}
	if len(streams) == 0 {
		return false
	}
	slices.Sort(streams)
	n := streams[pick(len(streams))]
	f := s.flights[n][0]
	s.flights[n] = s.flights[n][1:]
	results := s.awaitAppend(f)
	s.queue.noteOutcome(f)
	s.repairs = append(s.repairs, s.landAppend(f, results)...)
	return true
}

// Repair runs the oldest due repair, if there is one.
func (s *Stepped) Repair() bool {
	if len(s.repairs) == 0 {
		return false
	}
	led := s.repairs[0]
	s.repairs = s.repairs[1:]
	s.repairLedger(led)
	return true
}

// Idle reports whether nothing waits, is in flight or is being repaired.
func (s *Stepped) Idle() bool {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return s.queue.waiting == 0 && s.queue.busy == 0
}

// Published returns the published state of a loaded ledger.
func (s *Stepped) Published(t id.Tenant) (*State, bool) {
	r := s.slots[t]
	if r == nil || r.led == nil {
		return nil, false
	}
	return r.led.published.Load(), true
}

// Call is an Append in flight.
type Call struct {
	appendCall
	sub   *submission
	tries int
}

// Begin starts an Append.
func (s *Stepped) Begin(ctx context.Context, t id.Tenant, prepare Prepare) *Call {
	c := &Call{appendCall: appendCall{ledgers: s.Ledgers, tenant: t, prepares: []Prepare{prepare}, outcomes: make([]Outcome, 1)}}
	c.try(ctx)
	return c
}

func (c *Call) try(ctx context.Context) {
	c.sub = nil
	for ; c.tries < prepareTries; c.tries++ {
		at, err := c.prepareAndQueue(ctx, []int{0})
		if err == nil && at.dropped {
			if len(c.reloadLedger(ctx, at.outcomes)) == 0 {
				return
			}
			continue
		}
		if err != nil {
			c.refuseAll(at.outcomes, err)
		} else if len(at.subs) > 0 {
			c.sub = at.subs[0]
		}
		return
	}
	c.refuseAll([]int{0}, overloaded("The organization's configuration changes too often"))
}

// Poll returns the outcome if it is known.
func (c *Call) Poll(ctx context.Context) (Outcome, bool) {
	for c.sub != nil {
		select {
		case o := <-c.sub.done:
			if !o.stale {
				return o.Outcome, true
			}
			c.tries++
			c.try(ctx)
		default:
			return Outcome{}, false
		}
	}
	return c.outcomes[0], true
}
