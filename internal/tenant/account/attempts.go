package account

import (
	"cmp"
	"crypto/sha256"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/ratelimit"
)

// Limits bound attempts to sign in. A burst is allowed at once, then one each
// Every; an attempt that succeeds does not count. The zero value means the
// defaults.
type Limits struct {
	AccountBurst    int           // on one e-mail address from one network, or by one known browser; default 10
	AccountEvery    time.Duration // default 30 seconds
	EverywhereBurst int           // on one e-mail address by unknown browsers of all networks; default 100
	EverywhereEvery time.Duration // default 30 seconds
	AddressBurst    int           // from one network address (IPv6: /64); default 100
	AddressEvery    time.Duration // default 3 seconds
	Tracked         int           // subjects of each kind that are remembered; default 32,768
}

func (l Limits) withDefaults() Limits {
	return Limits{
		AccountBurst:    cmp.Or(l.AccountBurst, 10),
		AccountEvery:    cmp.Or(l.AccountEvery, 30*time.Second),
		EverywhereBurst: cmp.Or(l.EverywhereBurst, 100),
		EverywhereEvery: cmp.Or(l.EverywhereEvery, 30*time.Second),
		AddressBurst:    cmp.Or(l.AddressBurst, 100),
		AddressEvery:    cmp.Or(l.AddressEvery, 3*time.Second),
		Tracked:         cmp.Or(l.Tracked, 1<<15),
	}
}

// Browser is a browser in which a person signed in before. Its attempts have a budget of their own, so
// strangers can't use up those of the person.
type Browser struct {
	Name    string  // "" for a browser that is not known
	Address id.Hash // HashAddress of the address that signed in
}

// HashAddress returns the hash by which a browser knows an address.
func HashAddress(email string) id.Hash { return sha256.Sum256([]byte(strings.ToLower(email))) }

// knows reports whether a person with an address signed in by the browser before.
func (b Browser) knows(email string) bool { return b.Name != "" && b.Address == HashAddress(email) }

// attempts counts those of different kinds apart, so that many of one kind never push out one of
// another.
type attempts struct {
	clock   func() time.Time
	message string // when there were too many

	mu         sync.Mutex
	pairs      *ratelimit.Attempts // of account and network
	browsers   *ratelimit.Attempts // of account and known browser
	everywhere *ratelimit.Attempts // of accounts
	addresses  *ratelimit.Attempts // of networks
}

// newAttempts returns attempts under one node's share of the limits.
func newAttempts(l Limits, nodes func() int, clock func() time.Time, message string) *attempts {
	l = l.withDefaults()
	limit := func(burst int, every time.Duration) *ratelimit.Attempts {
		return ratelimit.New(ratelimit.Limit{Burst: burst, Every: every, Tracked: l.Tracked, Nodes: nodes})
	}
	return &attempts{
		clock:      clock,
		message:    message,
		pairs:      limit(l.AccountBurst, l.AccountEvery),
		browsers:   limit(l.AccountBurst, l.AccountEvery),
		everywhere: limit(l.EverywhereBurst, l.EverywhereEvery),
		addresses:  limit(l.AddressBurst, l.AddressEvery),
	}
}

// budget is one bound that an attempt counts against.
type budget struct {
	of      *ratelimit.Attempts
	subject string
}

func (a *attempts) budgetsOf(email string, from netip.Addr, b Browser) []budget {
	if b.knows(email) {
		return []budget{{a.browsers, b.Name + " " + email}}
	}
	network := ratelimit.NetworkOf(from)
	return []budget{{a.pairs, network + " " + email}, {a.everywhere, email}, {a.addresses, network}}
}

// countAttempt counts one attempt, before it is known how it ends. The attempt that
// succeeds is taken back by undo. fault.RateLimited when there were too many.
func (a *attempts) countAttempt(email string, from netip.Addr, b Browser) (undo func(), err error) {
	budgets := a.budgetsOf(email, from, b)
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock()
	var wait time.Duration
	for _, b := range budgets {
		wait = max(wait, b.of.Wait(b.subject, now))
	}
	if wait > 0 {
		return nil, &fault.Error{
			Kind:       fault.RateLimited,
			Code:       "rate_limited",
			Message:    a.message,
			RetryAfter: wait,
		}
	}
	for _, b := range budgets {
		b.of.Add(b.subject, now)
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		now := a.clock()
		for _, b := range budgets {
			b.of.Remove(b.subject, now)
		}
	}, nil
}
