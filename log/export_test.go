package log

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
)

// ReverifyFresh is how old a whole pass of the re-verification may become.
const ReverifyFresh = reverifyFresh

// CounterOf returns the name of the counter of a month.
func CounterOf(year, ofYear int) string { return month(year*12 + ofYear - 1).counter() }

// FlushAnchors writes the anchors of what was published so far.
func (l *Ledgers) FlushAnchors() error { return l.anchors.Flush() }

// Die leaves the anchors of ledgers that nobody closes.
func (l *Ledgers) Die() { _ = l.anchors.Abandon() }

// AnchorsLost is how often the anchors were found to be gone.
func (l *Ledgers) AnchorsLost() uint64 { return l.anchors.TimesLost() }

// CompactWhile compacts, and calls during once, while notes are being copied.
func (l *Ledgers) CompactWhile(ctx context.Context, during func()) error {
	return l.anchors.Compact(ctx, func() {
		if during != nil {
			during()
			during = nil
		}
	})
}

// ReverifyOnce follows what is new in each ledger, makes the whole passes that are due,
// and tells of it.
func (l *Ledgers) ReverifyOnce(ctx context.Context) error {
	r := l.newReverification()
	err := r.lookAtAll(ctx)
	for r.turns(ctx, l.backlog.due(time.Now(), 0)) {
	}
	return errors.Join(err, r.passAll(ctx), r.lookAtAll(ctx))
}

// Stepped is ledgers without goroutines: whoever holds it says when the
// sequencer, the finisher and the repairs do their next piece of work.
type Stepped struct {
	*Ledgers
	flights map[int][]flight // by stream
	repairs []*ledger
}

// OpenStepped is Open for Stepped.
func OpenStepped(ctx context.Context, o Options) (*Stepped, error) {
	if err := o.Store.Barrier(ctx); err != nil {
		return nil, err
	}
	s := &Stepped{Ledgers: newLedgers(o.withDefaults()), flights: make(map[int][]flight)}
	s.queue.now, s.renewal = s.clock, time.Hour
	return s, nil
}

// Launch does the sequencer's next round, if something waits and it may.
func (s *Stepped) Launch() bool {
	s.queue.mu.Lock()
	room, _ := s.queue.room()
	var r *appendRound
	if room {
		r = s.queue.gather()
	}
	s.queue.mu.Unlock()
	if r == nil {
		return false
	}
	for f := range s.launch(r) {
		s.flights[f.stream.number] = append(s.flights[f.stream.number], f)
	}
	return true
}

// Land ends the oldest append that is out of a stream, if there is one; pick chooses
// among n streams.
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
	results := s.wait(f)
	s.queue.ended(f)
	s.repairs = append(s.repairs, s.land(f, results)...)
	return true
}

// Repair does the oldest repair that is due, if there is one.
func (s *Stepped) Repair() bool {
	if len(s.repairs) == 0 {
		return false
	}
	led := s.repairs[0]
	s.repairs = s.repairs[1:]
	s.repair(led)
	return true
}

// Idle reports whether nothing waits, is out or is being repaired.
func (s *Stepped) Idle() bool {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return s.queue.waiting == 0 && s.queue.busy == 0
}

// Published returns the published state of a ledger that is in memory.
func (s *Stepped) Published(t id.Tenant) (*State, bool) {
	r := s.resident[t]
	if r == nil || r.led == nil {
		return nil, false
	}
	return r.led.published.Load(), true
}

// Call is an Append under way.
type Call struct {
	appending
	sub   *submission
	tries int
}

// Begin begins an Append.
func (s *Stepped) Begin(ctx context.Context, t id.Tenant, prepare Prepare) *Call {
	c := &Call{appending: appending{ledgers: s.Ledgers, tenant: t, prepares: []Prepare{prepare}, outcomes: make([]Outcome, 1)}}
	c.try(ctx)
	return c
}

func (c *Call) try(ctx context.Context) {
	c.sub = nil
	for ; c.tries < prepareTries; c.tries++ {
		at, err := c.enqueue(ctx, []int{0})
		if err == nil && at.dropped {
			if len(c.reload(ctx, at.outcomes)) == 0 {
				return
			}
			continue
		}
		if err != nil {
			c.refuse(at.outcomes, err)
		} else if len(at.subs) > 0 {
			c.sub = at.subs[0]
		}
		return
	}
	c.refuse([]int{0}, overloaded("The organization's configuration changes too often"))
}

// Poll returns the outcome if it is there.
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

// ReadAhead is how many events of a ledger Fsck may have read and not placed: those
// of the portions that wait, of the one that is placed, of the one that is read, and
// the names that are looked up together.
func ReadAhead() int { return (runtime.GOMAXPROCS(0)+4)*portionEvents + lookups }

// RestAt is how long the re-verification rests at a lag.
func RestAt(lag uint64) float64 { return restAt(lag) }
