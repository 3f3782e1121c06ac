package limit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Lobby is where a party's requests wait while enough of its requests are at work.
// A party alone has all at work; in company each has a share by weight, so that its
// requests don't crowd processors, memory and appends.
// Its methods may be called concurrently.
type Lobby struct {
	company *Company
	share   int

	mu        sync.Mutex
	occupants map[Party]*occupant
}

// occupant is a party with requests at work.
type occupant struct {
	working int     // weight at work
	waiting []guest // oldest first
}

// guest is a request that waits.
type guest struct {
	called chan struct{} // closed when it may go to work
	weight int
}

// NewLobby returns a lobby in which each party in company c goes on getting requests
// to work while the weight of those at work is below share.
func NewLobby(c *Company, share int) *Lobby {
	return &Lobby{company: c, share: share, occupants: make(map[Party]*occupant)}
}

// Enter waits until a request of a weight (at least 1) may go to work, or ctx ends;
// then it returns the error of ctx. After nil the caller calls Leave when the work
// is done.
func (l *Lobby) Enter(ctx context.Context, p Party, weight int) error {
	l.company.Came(p)
	l.mu.Lock()
	o := l.occupants[p]
	if o == nil {
		o = new(occupant)
		l.occupants[p] = o
	}
	if l.room(o) {
		o.working += weight
		l.mu.Unlock()
		return nil
	}
	mine := guest{make(chan struct{}), weight}
	o.waiting = append(o.waiting, mine)
	l.mu.Unlock()
	select {
	case <-mine.called:
		return nil
	case <-ctx.Done():
		l.withdraw(p, mine)
		return ctx.Err()
	}
}

// room reports whether one more request of a party may go to work.
func (l *Lobby) room(o *occupant) bool {
	return o.working < l.share || l.company.Alone()
}

// Leave ends the work of a request of this weight.
func (l *Lobby) Leave(p Party, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave(p, weight)
}

func (l *Lobby) leave(p Party, weight int) {
	o := l.occupants[p]
	o.working -= weight
	for len(o.waiting) > 0 && l.room(o) {
		next := o.waiting[0]
		o.waiting = o.waiting[1:]
		o.working += next.weight
		close(next.called)
	}
	if o.working == 0 {
		delete(l.occupants, p)
	}
}

// Lend is Leave, after a while at the latest: it is for work that waits for a sender.
// The caller stops it with Keep when that work is done.
func (l *Lobby) Lend(p Party, weight int, d time.Duration) Loan {
	return Loan{time.AfterFunc(d, func() { l.Leave(p, weight) })}
}

// Loan is a place at work that is left by itself after a while.
type Loan struct{ timer *time.Timer }

// Keep makes the place the caller's for as long as it wants, or reports false if it
// was left.
func (l Loan) Keep() bool { return l.timer.Stop() }

// withdraw takes a request out of the line, or its place at work away.
func (l *Lobby) withdraw(p Party, mine guest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.occupants[p]
	if at := slices.Index(o.waiting, mine); at >= 0 {
		o.waiting = slices.Delete(o.waiting, at, at+1)
		return
	}
	l.leave(p, mine.weight)
}
