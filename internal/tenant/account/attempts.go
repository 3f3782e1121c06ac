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

// Limits limit attempts to sign in. A burst is allowed at once, then one attempt per Every. A successful attempt does
// not count. The zero value means the defaults.
type Limits struct {
	AccountBurst    int           // for an e-mail address from one network or by one known browser; default: 10
	AccountEvery    time.Duration // default 30 seconds
	EverywhereBurst int           // for an e-mail address by unknown browsers of all networks; default: 100
	EverywhereEvery time.Duration // default 30 seconds
	AddressBurst    int           // from one network address (IPv6: /64); default: 100
	AddressEvery    time.Duration // default: 3 s
	Tracked         int           // remembered subjects of each kind; default: 32,768
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

// Browser is a browser in which a person signed in before. Its attempts have a separate limit, so strangers cannot
// use up the attempts of the person.
type Browser struct {
	Name    string  // "" for an unknown browser
	Address id.Hash // HashAddress of the address that signed in
}

// HashAddress returns the hash of an address that is stored in a browser.
func HashAddress(email string) id.Hash { return sha256.Sum256([]byte(strings.ToLower(email))) }

// knows reports whether a person with this address has signed in with the browser before.
func (b Browser) knows(email string) bool { return b.Name != "" && b.Address == HashAddress(email) }

// attempts counts attempts of different kinds separately, so that many attempts of one kind never evict those of
// another.
type attempts struct {
	clock   func() time.Time
	message string // of the error if there were too many

	mu         sync.Mutex
	pairs      *ratelimit.Attempts // of account and network
	browsers   *ratelimit.Attempts // of account and known browser
	everywhere *ratelimit.Attempts // of accounts
	addresses  *ratelimit.Attempts // of networks
}

// newAttempts returns attempts with one node's share of the limits.
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

// budget is one limit that an attempt counts against.
type budget struct {
	of      *ratelimit.Attempts
	subject string
}

func (a *attempts) budgetsFor(email string, from netip.Addr, b Browser) []budget {
	if b.knows(email) {
		return []budget{{a.browsers, b.Name + " " + email}}
	}
	network := ratelimit.NetworkOf(from)
	return []budget{{a.pairs, network + " " + email}, {a.everywhere, email}, {a.addresses, network}}
}

// countAttempt counts one attempt before its outcome is known. undo removes a successful attempt. It returns
// fault.RateLimited if there were too many attempts.
func (a *attempts) countAttempt(email string, from netip.Addr, b Browser) (undo func(), err error) {
	budgets := a.budgetsFor(email, from, b)
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
