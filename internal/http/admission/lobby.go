package admission

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Lobby is where a party's requests wait while enough of its requests are at work.
// A party alone has all at work; in company each has a share by weight, so that its
// requests don't crowd processors, memory and appends. Work that stands still, as it
// does while a store does not answer, counts no more: others of the party go to work.
// Its methods may be called concurrently.
type Lobby struct {
	company *Company
	share   int
	loans   sync.Pool // of those that were kept

	mu        sync.Mutex
	looks     *time.Timer // for standstill, while somebody waits; nil while nobody does
	occupants map[Party]*occupant
	vacant    []*occupant // of nobody, for who comes next
}

// occupant is a party with requests at work.
type occupant struct {
	working int     // weight at work
	still   int     // weight at work that stands still
	waiting []guest // oldest first
	moved   bool    // work has ended since the last look
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
		o = l.settle(p)
	}
	if l.room(o) {
		o.working += weight
		l.mu.Unlock()
		return nil
	}
	mine := guest{make(chan struct{}), weight}
	o.waiting = append(o.waiting, mine)
	l.watch()
	l.mu.Unlock()
	select {
	case <-mine.called:
		return nil
	case <-ctx.Done():
		l.withdraw(p, mine)
		return ctx.Err()
	}
}

// maxVacant bounds the occupants that are kept for who comes next.
const maxVacant = 64

// settle returns an occupant for a party that has none.
func (l *Lobby) settle(p Party) *occupant {
	o := new(occupant)
	if last := len(l.vacant) - 1; last >= 0 {
		o, l.vacant = l.vacant[last], l.vacant[:last]
	}
	l.occupants[p] = o
	return o
}

// vacate forgets a party that has nothing at work, and so nothing that waits.
func (l *Lobby) vacate(p Party, o *occupant) {
	delete(l.occupants, p)
	if len(l.vacant) < maxVacant {
		*o = occupant{}
		l.vacant = append(l.vacant, o)
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
	o.moved = true
	if o.working -= weight; o.working < 0 { // it was among those that stood still
		o.still += o.working
		o.working = 0
	}
	l.admit(o)
	if o.working == 0 && o.still == 0 {
		l.vacate(p, o)
	}
}

// admit lets those go to work for whom there is room.
func (l *Lobby) admit(o *occupant) {
	for len(o.waiting) > 0 && l.room(o) {
		next := o.waiting[0]
		o.waiting = o.waiting[1:]
		o.working += next.weight
		close(next.called)
	}
}

// Lend is Leave, after a while at the latest: it is for work that waits for a sender.
// The caller stops it with Keep when that work is done.
func (l *Lobby) Lend(p Party, weight int, d time.Duration) *Loan {
	loan, _ := l.loans.Get().(*Loan)
	if loan == nil {
		loan = &Loan{lobby: l}
	}
	loan.party, loan.weight = p, weight
	if loan.timer == nil {
		loan.timer = time.AfterFunc(d, loan.end)
	} else {
		loan.timer.Reset(d)
	}
	return loan
}

// Loan is a place at work that is left by itself after a while.
type Loan struct {
	lobby  *Lobby
	timer  *time.Timer
	party  Party
	weight int
}

func (l *Loan) end() { l.lobby.Leave(l.party, l.weight) }

// Keep makes the place the caller's for as long as it wants, or reports false if it
// was left. It is called once; the loan is nobody's after it.
func (l *Loan) Keep() bool {
	if !l.timer.Stop() {
		return false // end has it
	}
	l.lobby.loans.Put(l)
	return true
}

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
