package account_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// The fixture allows 3 attempts on an account from a network, 5 from all networks, and 6 from a network on all
// accounts.
func TestAttempts(t *testing.T) {
	const limited = -1
	type step struct {
		email, from string
		known       string // a browser in which ann signed in before
		wait        time.Duration
		good        bool
		want        time.Duration // Retry-After; 0: allowed; limited: refused with any value
	}
	e := func(i int) string { return fmt.Sprintf("e%d@example.com", i) }
	for name, steps := range map[string][]step{
		"account and network": {
			{email: email, from: "192.0.2.4"}, {email: email, from: "192.0.2.4"}, {email: email, from: "192.0.2.4"},
			{email: email, from: "192.0.2.4", want: 30 * time.Second},
			{email: email, from: "192.0.2.4", good: true, want: 30 * time.Second},
			{email: "ANN@example.com", from: "192.0.2.4", want: 30 * time.Second},
			{email: email, from: "192.0.2.5", good: true},
			{email: e(1), from: "192.0.2.4"},
			{email: email, from: "192.0.2.4", wait: 29 * time.Second, want: time.Second},
			{email: email, from: "192.0.2.4", wait: time.Second, good: true},
		},
		"account from all networks": {
			{email: email, from: "192.0.2.1"}, {email: email, from: "192.0.2.2"}, {email: email, from: "192.0.2.3"},
			{email: email, from: "192.0.2.4"}, {email: email, from: "192.0.2.5"},
			{email: email, from: "192.0.2.6", want: 30 * time.Second},
			{email: email, from: "192.0.2.6", good: true, want: 30 * time.Second},
			{email: email, from: "192.0.2.4", good: true, known: "a"},
			{email: email, from: "192.0.2.4", known: "a"}, {email: email, from: "192.0.2.5", known: "a"}, {email: email, from: "192.0.2.6", known: "a"},
			{email: email, from: "192.0.2.7", known: "a", good: true, want: 30 * time.Second},
			{email: email, from: "192.0.2.7", known: "b", good: true},
			{email: e(1), from: "192.0.2.6"},
			{email: email, from: "192.0.2.6", wait: 30 * time.Second, good: true},
		},
		"browser of another person": {
			{email: e(1), from: "192.0.2.1", known: "a"}, {email: e(1), from: "192.0.2.1", known: "a"}, {email: e(1), from: "192.0.2.1", known: "a"},
			{email: e(1), from: "192.0.2.1", known: "a", want: 30 * time.Second},
		},
		"address": {
			{email: e(1), from: "192.0.2.1"}, {email: e(2), from: "192.0.2.1"}, {email: e(3), from: "192.0.2.1"},
			{email: e(4), from: "::ffff:192.0.2.1"}, {email: e(5), from: "192.0.2.1"}, {email: e(6), from: "192.0.2.1"},
			{email: e(7), from: "192.0.2.1", want: 3 * time.Second},
			{email: e(7), from: "192.0.2.2"},
			{email: e(7), from: "192.0.2.1", wait: 3 * time.Second},
			{email: e(8), from: "192.0.2.1", want: limited},
		},
		"IPv6 network": {
			{email: e(1), from: "2001:db8::1"}, {email: e(2), from: "2001:db8::2"}, {email: e(3), from: "2001:db8::3"},
			{email: e(4), from: "2001:db8::4"}, {email: e(5), from: "2001:db8::5"}, {email: e(6), from: "2001:db8::6"},
			{email: e(7), from: "2001:db8::ffff:7", want: limited},
			{email: e(7), from: "2001:db8:0:1::7"},
		},
		"success does not count": {
			{email: email, from: "192.0.2.1", good: true}, {email: email, from: "192.0.2.1", good: true}, {email: email, from: "192.0.2.1", good: true},
			{email: email, from: "192.0.2.1", good: true}, {email: email, from: "192.0.2.1", good: true}, {email: email, from: "192.0.2.1", good: true},
			{email: email, from: "192.0.2.1", good: true}, {email: email, from: "192.0.2.1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ensure(email, password)
			for i, s := range steps {
				w.pass(s.wait)
				given := "wrong"
				if s.good {
					given = password
				}
				_, err := w.accounts.AuthenticateIn(t.Context(), account.Browser{Name: s.known, Address: account.HashAddress(email)}, s.email, given, address(s.from))
				switch f := fault.Of(err); {
				case s.want != 0:
					if f.Kind != fault.RateLimited || f.Code != "rate_limited" || s.want > 0 && f.RetryAfter != s.want {
						t.Errorf("step %d: got %v (%v), want to wait %v", i, err, f.RetryAfter, s.want)
					}
				case s.good != (err == nil) || err != nil && f.Kind != fault.Unauthorized:
					t.Errorf("step %d: got %v, good %v", i, err, s.good)
				}
			}
		})
	}
}

// However many names occur, the limits of the newest hold and memory does not grow.
func TestAttemptsOfManyNames(t *testing.T) {
	w := newWorld(t)
	w.ensure(email, password)
	for i := range 1000 {
		from := address(fmt.Sprintf("198.51.%d.%d", i/250, i%250+1))
		_, err := w.accounts.Authenticate(t.Context(), fmt.Sprintf("e%d@example.com", i), "wrong", from)
		refused(t, "flood", err, fault.Unauthorized, wrong)
	}
	for range 3 {
		_, err := w.signIn(email, "wrong")
		refused(t, "after the flood", err, fault.Unauthorized, wrong)
	}
	_, err := w.signIn(email, password)
	refused(t, "limit", err, fault.RateLimited, "Too many sign-in attempts, try again later")
}
