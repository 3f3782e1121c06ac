package account

import (
	"net/netip"
	"sync"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/ratelimit"
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

// attempts counts those on e-mail addresses and those from network addresses apart, so
// that many of one kind never push out one of the other.
type attempts struct {
	clock func() time.Time

	mu        sync.Mutex
	accounts  *ratelimit.Attempts
	addresses *ratelimit.Attempts
}

func newAttempts(l Limits, clock func() time.Time) *attempts {
	l = l.withDefaults()
	return &attempts{
		clock:     clock,
		accounts:  ratelimit.New(ratelimit.Limit{Burst: l.AccountBurst, Every: l.AccountEvery, Tracked: l.Tracked}),
		addresses: ratelimit.New(ratelimit.Limit{Burst: l.AddressBurst, Every: l.AddressEvery, Tracked: l.Tracked}),
	}
}

// countAttempt counts one attempt, before it is known how it ends. The attempt that
// succeeds is taken back by undo. fault.RateLimited when there were too many.
func (a *attempts) countAttempt(email string, from netip.Addr) (undo func(), err error) {
	network := ratelimit.NetworkOf(from)
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock()
	if wait := max(a.accounts.Wait(email, now), a.addresses.Wait(network, now)); wait > 0 {
		return nil, &fault.Error{
			Kind:       fault.RateLimited,
			Code:       "rate_limited",
			Message:    "Too many sign-in attempts, try again later",
			RetryAfter: wait,
		}
	}
	a.accounts.Add(email, now)
	a.addresses.Add(network, now)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		now := a.clock()
		a.accounts.Remove(email, now)
		a.addresses.Remove(network, now)
	}, nil
}
