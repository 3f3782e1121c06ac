// Package ratelimit bounds attempts that each name a subject: an e-mail address, a
// network. It counts by the generic cell rate algorithm.
//
// Invariants:
//
//   - A subject may make a burst of attempts at once, then one in each interval. What
//     other subjects do changes nothing about that, unless Tracked of them owe more.
//   - Memory is bounded. When there are too many subjects, one that owes least of a
//     few is forgotten: a flood of new names pushes out each other, not the busy ones.
//   - Subjects are kept as salted hashes, so memory shows no name.
package ratelimit

import (
	"crypto/rand"
	"crypto/sha256"
	"net/netip"
	"time"
)

// Limit is how many attempts a subject may make. All fields are required.
type Limit struct {
	Burst   int           // attempts at once
	Every   time.Duration // after which one more is allowed
	Tracked int           // subjects remembered
}

// Attempts knows of each subject the time at which all its attempts are paid off. Its
// methods must not be called concurrently: callers that look at several subjects, or
// at several Attempts, hold one lock over all of that.
type Attempts struct {
	limit Limit
	salt  [16]byte
	paid  map[subject]time.Time
}

type subject [16]byte

// evictionLook is how many subjects are looked at to make room for one.
const evictionLook = 16

// New returns Attempts under which nothing was tried yet.
func New(l Limit) *Attempts {
	a := &Attempts{limit: l, paid: make(map[subject]time.Time)}
	rand.Read(a.salt[:]) // never fails since Go 1.24
	return a
}

// Wait returns how long a subject has to wait for its next attempt, 0 for not at all.
func (a *Attempts) Wait(name string, now time.Time) time.Duration {
	at, known := a.paid[a.subject(name)]
	if !known {
		return 0
	}
	return max(0, at.Sub(now)-time.Duration(a.limit.Burst-1)*a.limit.Every)
}

// Add counts one attempt of a subject, whatever Wait says.
func (a *Attempts) Add(name string, now time.Time) { a.move(name, now, a.limit.Every) }

// Remove takes back what Add counted: of an attempt that succeeded.
func (a *Attempts) Remove(name string, now time.Time) { a.move(name, now, -a.limit.Every) }

func (a *Attempts) subject(name string) subject {
	h := sha256.New()
	h.Write(a.salt[:])
	h.Write([]byte(name))
	return subject(h.Sum(nil)[:16])
}

// move adds to what a subject has to pay off.
func (a *Attempts) move(name string, now time.Time, by time.Duration) {
	s := a.subject(name)
	at, known := a.paid[s]
	if at.Before(now) {
		at = now
	}
	at = at.Add(by)
	if !at.After(now) {
		delete(a.paid, s)
		return
	}
	if !known && len(a.paid) >= a.limit.Tracked {
		a.makeRoom(now)
	}
	a.paid[s] = at
}

// makeRoom forgets, among a few subjects, those that have paid off, or else the
// one that is nearest to it.
func (a *Attempts) makeRoom(now time.Time) {
	var least subject
	looked := 0
	for s, at := range a.paid {
		if looked == 0 || at.Before(a.paid[least]) {
			least = s
		}
		if !at.After(now) {
			delete(a.paid, s)
		}
		if looked++; looked == evictionLook {
			break
		}
	}
	if len(a.paid) >= a.limit.Tracked {
		delete(a.paid, least)
	}
}

// Network is what a client can't change at will: its IPv4 address, or the /64 of its
// IPv6 address.
func Network(a netip.Addr) string {
	a = a.Unmap()
	if !a.Is6() {
		return a.String()
	}
	p, _ := a.WithZone("").Prefix(64) // 64 is in range
	return p.String()
}
