package account

import (
	"crypto/rand"
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"github.com/agentledger/agentledger/internal/fault"
)

// Limits bound attempts to sign in. A burst is allowed at once, then one each
// Every; an attempt that succeeds does not count. The zero value means the
// defaults.
type Limits struct {
	AccountBurst int           // attempts on one e-mail address; default 10
	AccountEvery time.Duration // default 30 seconds
	AddressBurst int           // attempts from one network address (IPv6: /64); default 100
	AddressEvery time.Duration // default 3 seconds
	Tracked      int           // e-mail addresses remembered, and as many network addresses; default 32,768
}

func (l Limits) withDefaults() Limits {
	if l.AccountBurst == 0 {
		l.AccountBurst = 10
	}
	if l.AccountEvery == 0 {
		l.AccountEvery = 30 * time.Second
	}
	if l.AddressBurst == 0 {
		l.AddressBurst = 100
	}
	if l.AddressEvery == 0 {
		l.AddressEvery = 3 * time.Second
	}
	if l.Tracked == 0 {
		l.Tracked = 1 << 15
	}
	return l
}

// attempts counts them by the generic cell rate algorithm. E-mail addresses and
// network addresses are counted apart, so that many of one kind never push out
// one of the other.
type attempts struct {
	Limits
	clock func() time.Time
	salt  [16]byte

	mu        sync.Mutex
	accounts  debts
	addresses debts
}

// debts knows of each subject only the time at which all its attempts are paid
// off. Subjects are kept as salted hashes; there is a bounded number of them.
type debts struct {
	burst   int
	every   time.Duration
	tracked int
	paid    map[subject]time.Time
}

type subject [16]byte

// evictionLook is how many subjects are looked at to make room for one.
const evictionLook = 16

func newAttempts(l Limits, clock func() time.Time) *attempts {
	l = l.withDefaults()
	a := &attempts{
		Limits:    l,
		clock:     clock,
		accounts:  debts{burst: l.AccountBurst, every: l.AccountEvery, tracked: l.Tracked, paid: make(map[subject]time.Time)},
		addresses: debts{burst: l.AddressBurst, every: l.AddressEvery, tracked: l.Tracked, paid: make(map[subject]time.Time)},
	}
	rand.Read(a.salt[:]) // never fails since Go 1.24
	return a
}

func (a *attempts) subject(name string) subject {
	h := sha256.New()
	h.Write(a.salt[:])
	h.Write([]byte(name))
	return subject(h.Sum(nil)[:16])
}

// begin counts one attempt, before it is known how it ends. The attempt that
// succeeds is taken back by undo. fault.RateLimited when there were too many.
func (a *attempts) begin(email string, from netip.Addr) (undo func(), err error) {
	account, address := a.subject(email), a.subject(network(from))
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock()
	if wait := max(a.accounts.wait(account, now), a.addresses.wait(address, now)); wait > 0 {
		return nil, &fault.Error{Kind: fault.RateLimited, Code: "rate_limited", Message: "Too many sign-in attempts, try again later", RetryAfter: wait}
	}
	a.accounts.move(account, now, a.AccountEvery)
	a.addresses.move(address, now, a.AddressEvery)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		now := a.clock()
		a.accounts.move(account, now, -a.AccountEvery)
		a.addresses.move(address, now, -a.AddressEvery)
	}, nil
}

// wait returns how long a subject has to wait for its next attempt.
func (d *debts) wait(s subject, now time.Time) time.Duration {
	at, known := d.paid[s]
	if !known {
		return 0
	}
	return max(0, at.Sub(now)-time.Duration(d.burst-1)*d.every)
}

// move adds to what a subject has to pay off.
func (d *debts) move(s subject, now time.Time, by time.Duration) {
	at, known := d.paid[s]
	if at.Before(now) {
		at = now
	}
	at = at.Add(by)
	if !at.After(now) {
		delete(d.paid, s)
		return
	}
	if !known && len(d.paid) >= d.tracked {
		d.makeRoom(now)
	}
	d.paid[s] = at
}

// makeRoom forgets, among a few subjects, those that have paid off, or else the
// one that is nearest to it.
func (d *debts) makeRoom(now time.Time) {
	var least subject
	looked := 0
	for s, at := range d.paid {
		if looked == 0 || at.Before(d.paid[least]) {
			least = s
		}
		if !at.After(now) {
			delete(d.paid, s)
		}
		if looked++; looked == evictionLook {
			break
		}
	}
	if len(d.paid) >= d.tracked {
		delete(d.paid, least)
	}
}

// network is what a client can't change at will: its IPv4 address, or the /64
// of its IPv6 address.
func network(a netip.Addr) string {
	a = a.Unmap()
	if !a.Is6() {
		return a.String()
	}
	p, _ := a.WithZone("").Prefix(64) // 64 is in range
	return p.String()
}
