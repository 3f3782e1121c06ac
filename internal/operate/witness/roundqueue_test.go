package witness

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
)

var testStart = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const step = time.Second

// begins returns the tenants of the rounds that begin at a time.
func begins(t *testing.T, a *roundQueue, now time.Time, want ...id.Tenant) []*queuedLedger {
	t.Helper()
	rounds, _ := a.takeDueRounds(now)
	if len(rounds) != len(want) {
		t.Fatalf("at %v: %d rounds begin, want %v", now.Sub(testStart), len(rounds), want)
	}
	for i, e := range rounds {
		if e.tenant != want[i] {
			t.Fatalf("at %v: got %d, want %v", now.Sub(testStart), e.tenant, want)
		}
	}
	return rounds
}

func TestAgendaCoalesces(t *testing.T) {
	a, now := newRoundQueue(10, 10), testStart
	for range 1000 {
		a.enqueueMoved(1, now)
	}
	e := begins(t, a, now, 1)[0]
	begins(t, a, now)
	for range 1000 {
		a.enqueueMoved(1, now) // it moves during the round
	}
	begins(t, a, now)
	a.finishRound(e, 0, retryTimes{}, now.Add(step))
	begins(t, a, now.Add(step-1))
	e = begins(t, a, now.Add(step), 1)[0]
	a.finishRound(e, 0, retryTimes{}, now.Add(2*step))
	if n, since := a.countAndOldest(); n != 0 || !since.IsZero() {
		t.Errorf("%d ledgers wait, since %v", n, since)
	}
	begins(t, a, now.Add(2*step)) // it has not moved
	if n := len(a.entries); n != 0 {
		t.Errorf("an idle ledger is kept: %d", n)
	}
}

// A ledger for which a round found everything cosigned does not wait.
func TestWaits(t *testing.T) {
	a, now := newRoundQueue(10, 10), testStart
	for i, tenant := range []id.Tenant{5, 3, 4} {
		a.enqueueMoved(tenant, now.Add(time.Duration(i)*time.Second))
	}
	e := begins(t, a, now.Add(time.Minute), 5, 3, 4)
	a.finishRound(e[1], 0, retryTimes{}, now.Add(time.Hour))
	if got, want := a.listWaits(), map[id.Tenant]time.Time{5: now, 4: now.Add(2 * time.Second)}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A ledger without witnesses does not wait, however often it moves. It does once its organization has witnesses.
func TestNothingToWaitFor(t *testing.T) {
	a, now := newRoundQueue(10, 10), testStart
	a.alone = true
	a.enqueueMoved(1, now)
	waiting := func(want int) {
		t.Helper()
		n, since := a.countAndOldest()
		if n != want || len(a.listWaits()) != want || since.IsZero() != (want == 0) {
			t.Errorf("%d ledgers wait since %v, %v, want %d", n, since, a.listWaits(), want)
		}
	}
	waiting(0)
	e := begins(t, a, now, 1)[0]
	a.noteWitnesses(e, false)
	a.finishRound(e, 0, retryTimes{}, now.Add(step))
	a.enqueueMoved(1, now)
	waiting(0)
	begins(t, a, now.Add(step), 1)
	a.noteWitnesses(e, true)
	waiting(1)
}

// A ledger whose witness is paused is asked about late, unless it moves: then the other witnesses are asked as soon as
// possible.
func TestAgendaRepeats(t *testing.T) {
	a, now := newRoundQueue(10, 10), testStart
	a.enqueueMoved(1, now)
	e := begins(t, a, now, 1)[0]
	a.finishRound(e, 0, retryTimes{behind: now.Add(100 * step)}, now.Add(step))
	if _, next := a.takeDueRounds(now); next != now.Add(100*step) {
		t.Errorf("next at %v", next)
	}
	begins(t, a, now.Add(99*step))
	e = begins(t, a, now.Add(100*step), 1)[0]
	now = now.Add(100 * step)
	a.finishRound(e, 0, retryTimes{behind: now.Add(100 * step)}, now.Add(step))
	a.enqueueMoved(1, now)
	begins(t, a, now)
	e = begins(t, a, now.Add(step), 1)[0]

	a.enqueueMoved(1, now.Add(step)) // it moves during a round that will be repeated late
	a.finishRound(e, 0, retryTimes{behind: now.Add(100 * step)}, now.Add(2*step))
	begins(t, a, now.Add(2*step), 1)
}

func TestAgendaHasBounds(t *testing.T) {
	a, now := newRoundQueue(20, 8), testStart
	for i := range 30 {
		if got, want := a.enqueueMoved(id.Tenant(i), now), i < 20; got != want {
			t.Errorf("%d: got %v", i, got)
		}
	}
	if a.overflow != 10 || a.hasSweepCapacity() {
		t.Errorf("%d found no room", a.overflow)
	}
	running, _ := a.takeDueRounds(now)
	if len(running) != 8 {
		t.Fatalf("%d rounds at a time", len(running))
	}
	for _, e := range running { // all of them have witnesses of their own
		e.own = true
		a.finishRound(e, 0, retryTimes{}, now)
	}
	rounds, _ := a.takeDueRounds(now)
	own := 0
	for _, e := range rounds {
		own += readyQueueIndex(e)
	}
	if own != 2 || len(rounds) != 10 {
		t.Errorf("%d rounds, of which %d of own witnesses: these must not take the others' places", len(rounds), own)
	}
}

// Compared with a naive model: no ledger is in two rounds at once, none begins too early, and each that moved is in a
// round that began after it moved.
func TestAgendaAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	a, now := newRoundQueue(1000, 5), testStart
	moved, soonest := map[id.Tenant]bool{}, map[id.Tenant]time.Time{}
	var running []*queuedLedger
	for range 20_000 {
		now = now.Add(time.Duration(random.IntN(300)) * time.Millisecond)
		switch random.IntN(3) {
		case 0:
			tenant := id.Tenant(random.IntN(40))
			a.enqueueMoved(tenant, now)
			moved[tenant] = true
		case 1:
			rounds, _ := a.takeDueRounds(now)
			for _, e := range rounds {
				for _, other := range running {
					if other == e || other.tenant == e.tenant {
						t.Fatal("two rounds of one ledger")
					}
				}
				if now.Before(soonest[e.tenant]) {
					t.Fatalf("a round of %d begins too early", e.tenant)
				}
				running = append(running, e)
				delete(moved, e.tenant)
			}
		default:
			if len(running) == 0 {
				continue
			}
			i := random.IntN(len(running))
			e := running[i]
			running = append(running[:i], running[i+1:]...)
			line := readyQueueIndex(e)
			e.own = e.own || random.IntN(10) == 0
			var next retryTimes
			if random.IntN(2) == 0 {
				next.behind = now.Add(time.Duration(random.IntN(20)) * step)
			}
			if random.IntN(2) == 0 {
				next.paused = now.Add(time.Duration(random.IntN(20)) * step)
			}
			if line == readyQueueIndex(e) {
				soonest[e.tenant] = now.Add(step)
			}
			a.finishRound(e, line, next, now.Add(step))
		}
	}
	for range 1000 { // everything ends
		for _, e := range running {
			a.finishRound(e, readyQueueIndex(e), retryTimes{}, now)
		}
		now = now.Add(100 * step)
		running, _ = a.takeDueRounds(now)
		for _, e := range running {
			delete(moved, e.tenant)
		}
	}
	if n := len(a.entries); n != 0 || len(moved) > 0 {
		t.Errorf("%d entries are left, and %d ledgers were forgotten", n, len(moved))
	}
}
