// Package ratelimit bounds how often something may be done, by the generic cell rate
// algorithm: a burst at once, then one more in each interval. GCRA is the state of one
// subject. Attempts are many subjects in memory, such as e-mail addresses and networks.
//
// Invariants of Attempts:
//
//   - The attempts of one subject do not count for another one.
//   - Memory is bounded. When there are more subjects than Tracked, the one of a few whose
//     attempts count for the shortest time is forgotten. So a flood of new names pushes
//     out other new names and not a subject with many attempts. For this reason the
//     subjects are not in an internal/cache, which knows only the last use of an entry.
//   - Subjects are kept as salted hashes, so memory shows no name.
package ratelimit

import (
	"crypto/rand"
	"crypto/sha256"
	"net/netip"
	"time"

	"github.com/agentledger/agentledger/id"
)

// Limit is how many attempts a subject may make. All fields but Nodes are required.
type Limit struct {
	Burst   int           // attempts at once
	Every   time.Duration // after which one more is allowed
	Tracked int           // subjects remembered

	// Nodes returns the number of processes that each count by themselves. Each allows its share of the limit, so that
	// all together allow no more than one alone. If nil, there is one.
	Nodes func() int
}

// share returns the burst and the interval of one process. A burst is at least one attempt.
func (l Limit) share() (burst int, every time.Duration) {
	n := 1
	if l.Nodes != nil {
		n = max(1, l.Nodes())
	}
	return (l.Burst + n - 1) / n, l.Every * time.Duration(n)
}

// Attempts counts the attempts of many subjects. Its methods must not be called
// concurrently: callers that look at several subjects, or at several Attempts, hold one
// lock over all of that.
type Attempts struct {
	limit    Limit
	salt     [16]byte
	subjects map[subject]GCRA
}

type subject [16]byte

// evictionLook is how many subjects are looked at to make room for one.
const evictionLook = 16

// New returns Attempts under which nothing was tried yet.
func New(l Limit) *Attempts {
	a := &Attempts{limit: l, subjects: make(map[subject]GCRA)}
	rand.Read(a.salt[:]) // never fails since Go 1.24
	return a
}

// Wait returns how long a subject has to wait for its next attempt, 0 for not at all.
func (a *Attempts) Wait(name string, now time.Time) time.Duration {
	burst, every := a.limit.share()
	return a.subjects[a.subjectOf(name)].Wait(id.InstantOf(now), burst, every)
}

// Add counts one attempt of a subject. It does not ask Wait.
func (a *Attempts) Add(name string, now time.Time) { a.changeSubject(name, now, (*GCRA).Add) }

// Remove takes back one attempt that Add counted, because it succeeded.
func (a *Attempts) Remove(name string, now time.Time) { a.changeSubject(name, now, (*GCRA).Remove) }

func (a *Attempts) subjectOf(name string) subject {
	h := sha256.New()
	h.Write(a.salt[:])
	h.Write([]byte(name))
	return subject(h.Sum(nil)[:16])
}

func (a *Attempts) changeSubject(name string, at time.Time, count func(*GCRA, id.Instant, time.Duration)) {
	s, now := a.subjectOf(name), id.InstantOf(at)
	g, known := a.subjects[s]
	_, every := a.limit.share()
	if count(&g, now, every); g.Arrival <= now {
		delete(a.subjects, s)
		return
	}
	if !known && len(a.subjects) >= a.limit.Tracked {
		a.makeRoom(now)
	}
	a.subjects[s] = g
}

// makeRoom forgets, among a few subjects, those whose attempts do not count any more, or
// else the one whose attempts count for the shortest time.
func (a *Attempts) makeRoom(now id.Instant) {
	var least subject
	looked := 0
	for s, g := range a.subjects {
		if looked == 0 || g.Arrival < a.subjects[least].Arrival {
			least = s
		}
		if g.Arrival <= now {
			delete(a.subjects, s)
		}
		if looked++; looked == evictionLook {
			break
		}
	}
	if len(a.subjects) >= a.limit.Tracked {
		delete(a.subjects, least)
	}
}

// NetworkOf is the part of an address that a client can't change at will: its IPv4
// address, or the /64 of its
// IPv6 address.
func NetworkOf(a netip.Addr) string {
	a = a.Unmap()
	if !a.Is6() {
		return a.String()
	}
	p, _ := a.WithZone("").Prefix(64) // 64 is in range
	return p.String()
}
