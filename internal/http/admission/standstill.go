package admission

import "time"

// standstill is for how long no work of a party may end while others of it wait. What
// it has at work then waits for something else than a processor, such as a store that
// does not answer, and is not counted any more.
const standstill = 200 * time.Millisecond

// watch begins to look for standstill; the caller holds mu. A lobby without company
// bounds more than work, and is not looked after.
func (l *Lobby) watch() {
	if l.looks == nil && l.company != nil {
		l.looks = time.AfterFunc(standstill, l.look)
	}
}

// look lets all of a party go to work that wait behind a standstill.
func (l *Lobby) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	waits := false
	for _, o := range l.occupants {
		for !o.moved && len(o.waiting) > 0 {
			o.still += o.working
			o.working = 0
			l.admit(o)
		}
		o.moved = false
		waits = waits || len(o.waiting) > 0
	}
	l.looks = nil
	if waits {
		l.watch()
	}
}

// watch begins to look for standstill; the caller holds mu.
func (t *Turns) watch() {
	if t.looks == nil {
		t.looks = time.AfterFunc(standstill, t.look)
	}
}

// look takes the turns back of parties that stand still: of one whose own work waits,
// and of all when no turn at all was given back.
func (t *Turns) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.moved) == 0 {
		for p := range t.held {
			t.forget(p)
		}
	}
	for p := range t.by {
		if !t.moved[p] {
			t.forget(p)
		}
	}
	clear(t.moved)
	t.next()
	t.looks = nil
	if len(t.ring) > 0 {
		t.watch()
	}
}

// forget does not count the turns any more that a party has.
func (t *Turns) forget(p Party) {
	if t.held[p] == 0 {
		return
	}
	t.free += t.held[p]
	t.still[p] += t.held[p]
	delete(t.held, p)
}
