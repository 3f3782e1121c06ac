// Package ratelimit limits how often something may be done, with the generic cell rate algorithm: a burst at once, then one
// more in each interval. GCRA is the state of one subject. Attempts holds many subjects in memory, such as e-mail addresses
// and networks.
//
// Invariants of Attempts:
//
//   - The attempts of one subject do not count for another.
//   - Memory is bounded. If there are more than Limit.Tracked subjects, it examines a few and forgets the one whose attempts
//     stop counting first. So a flood of new names evicts other new names and not a subject with many attempts. For this
//     reason it does not use internal/cache, which considers only the last use of an entry.
//   - Subjects are stored as salted hashes, so memory contains no names.
package ratelimit

import (
	"crypto/rand"
	"crypto/sha256"
	"net/netip"
	"time"

	"github.com/agentledger/agentledger/id"
)

// Limit is the rate that a subject may not exceed. All fields except Nodes are required.
type Limit struct {
	Burst   int           // attempts allowed at once
	Every   time.Duration // interval after which one more is allowed
	Tracked int           // number of remembered subjects

	// Nodes returns the number of processes that each count separately. Each allows its share of the limit, so that all
	// together allow about as much as one process would. If nil, there is one process.
	Nodes func() int
}

// share returns the burst and interval of one process. The burst is at least one attempt.
func (l Limit) share() (burst int, every time.Duration) {
	n := 1
	if l.Nodes != nil {
		n = max(1, l.Nodes())
	}
	return (l.Burst + n - 1) / n, l.Every * time.Duration(n)
}

// Attempts counts the attempts of many subjects. Its methods must not be called concurrently: a caller that checks
// several subjects or several Attempts must hold one lock around all of it.
type Attempts struct {
	limit    Limit
	salt     [16]byte
	subjects map[subject]GCRA
}

type subject [16]byte

// evictionLook is the number of subjects that are examined to evict one.
const evictionLook = 16

// New returns an Attempts that has counted nothing yet.
func New(l Limit) *Attempts {
	a := &Attempts{limit: l, subjects: make(map[subject]GCRA)}
	rand.Read(a.salt[:]) // never fails since Go 1.24
	return a
}

// Wait returns how long a subject has to wait before its next attempt, or 0 if it is allowed now.
func (a *Attempts) Wait(name string, now time.Time) time.Duration {
	burst, every := a.limit.share()
	return a.subjects[a.subjectFor(name)].Wait(id.InstantOf(now), burst, every)
}

// Add counts one attempt of a subject, whether or not Wait allows it.
func (a *Attempts) Add(name string, now time.Time) { a.changeSubject(name, now, (*GCRA).Add) }

// Remove undoes one Add, for example because the attempt succeeded.
func (a *Attempts) Remove(name string, now time.Time) { a.changeSubject(name, now, (*GCRA).Remove) }

func (a *Attempts) subjectFor(name string) subject {
	h := sha256.New()
	h.Write(a.salt[:])
	h.Write([]byte(name))
	return subject(h.Sum(nil)[:16])
}

func (a *Attempts) changeSubject(name string, at time.Time, count func(*GCRA, id.Instant, time.Duration)) {
	s, now := a.subjectFor(name), id.InstantOf(at)
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

// makeRoom examines a few subjects and forgets those whose attempts no longer count, or else the one whose attempts
// stop counting first.
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

// NetworkOf returns the part of an address that a client cannot change at will: the IPv4 address, or the /64 prefix of
// an IPv6 address.
func NetworkOf(a netip.Addr) string {
	a = a.Unmap()
	if !a.Is6() {
		return a.String()
	}
	p, _ := a.WithZone("").Prefix(64) // 64 is in range
	return p.String()
}
