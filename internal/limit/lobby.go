package limit

import (
	"context"
	"slices"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// Lobby is where an organization's requests wait while enough of its requests are
// at work. An organization alone has all at work; in company each has a share by
// weight, so that its requests don't crowd processors, memory and appends.
// Its methods may be called concurrently.
type Lobby struct {
	share int

	mu        sync.Mutex
	company   company
	occupants map[id.Tenant]*occupant
}

// occupant is an organization with requests at work.
type occupant struct {
	working int     // weight at work
	waiting []guest // oldest first
}

// guest is a request that waits.
type guest struct {
	called chan struct{} // closed when it may go to work
	weight int
}

// NewLobby returns a lobby in which each organization in company goes on getting
// requests to work while the weight of those at work is below share.
func NewLobby(share int) *Lobby {
	return &Lobby{share: share, occupants: make(map[id.Tenant]*occupant)}
}

// Enter waits until a request of a weight (at least 1) may go to work, or ctx ends;
// then it returns the error of ctx. After nil the caller calls Leave when the work
// is done.
func (l *Lobby) Enter(ctx context.Context, t id.Tenant, weight int) error {
	l.mu.Lock()
	l.company.came(t)
	o := l.occupants[t]
	if o == nil {
		o = new(occupant)
		l.occupants[t] = o
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
		l.withdraw(t, mine)
		return ctx.Err()
	}
}

// room reports whether one more request of an organization may go to work.
func (l *Lobby) room(o *occupant) bool {
	return o.working < l.share || l.company.alone()
}

// Leave ends the work of a request of this weight.
func (l *Lobby) Leave(t id.Tenant, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave(t, weight)
}

func (l *Lobby) leave(t id.Tenant, weight int) {
	o := l.occupants[t]
	o.working -= weight
	for len(o.waiting) > 0 && l.room(o) {
		next := o.waiting[0]
		o.waiting = o.waiting[1:]
		o.working += next.weight
		close(next.called)
	}
	if o.working == 0 {
		delete(l.occupants, t)
	}
}

// withdraw takes a request out of the line, or its place at work away.
func (l *Lobby) withdraw(t id.Tenant, mine guest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.occupants[t]
	if at := slices.Index(o.waiting, mine); at >= 0 {
		o.waiting = slices.Delete(o.waiting, at, at+1)
		return
	}
	l.leave(t, mine.weight)
}
