package ratelimit_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/ratelimit"
)

func TestAttempts(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	a := ratelimit.New(ratelimit.Limit{Burst: 2, Every: time.Minute, Tracked: 8})
	wait := func(name string, want time.Duration) {
		t.Helper()
		if got := a.Wait(name, now); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	a.Add("x", now)
	wait("x", 0)
	a.Add("x", now)
	wait("x", time.Minute)
	wait("neighbour", 0)
	now = now.Add(59 * time.Second)
	wait("x", time.Second)
	a.Remove("x", now)
	wait("x", 0)
	now = now.Add(time.Hour)
	a.Remove("x", now) // without an earlier attempt
	a.Add("x", now)
	wait("x", 0)
}

// A flood of names that occur once evicts no name with more attempts.
func TestFloodOfNames(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	a := ratelimit.New(ratelimit.Limit{Burst: 3, Every: time.Minute, Tracked: 8})
	for range 3 {
		a.Add("busy", now)
	}
	for i := range 1000 {
		a.Add(fmt.Sprint(i), now)
	}
	if got := a.Wait("busy", now); got != time.Minute {
		t.Errorf("got %v", got)
	}
}

func TestNetwork(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::7": "2001:db8::/64", "2001:db8::1:0:0:7": "2001:db8::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := ratelimit.NetworkOf(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}

// Nodes that count separately together allow what one node would allow, rounded up to whole attempts at once.
func TestNodesShareALimit(t *testing.T) {
	const minutes = 600
	for nodes := 1; nodes <= 5; nodes++ {
		now := time.Unix(1_800_000_000, 0)
		all := make([]*ratelimit.Attempts, nodes)
		for i := range all {
			all[i] = ratelimit.New(ratelimit.Limit{Burst: 10, Every: time.Minute, Tracked: 8, Nodes: func() int { return nodes }})
		}
		guess := func() (allowed int) {
			for _, a := range all {
				for ; a.Wait("x", now) == 0; allowed++ {
					a.Add("x", now)
				}
			}
			return allowed
		}
		if got := guess(); got < 10 || got > 10+nodes-1 {
			t.Errorf("%d nodes: %d attempts at once", nodes, got)
		}
		later := 0
		for range minutes {
			now = now.Add(time.Minute)
			later += guess()
		}
		if later < minutes-nodes || later > minutes {
			t.Errorf("%d nodes: %d attempts in %d minutes", nodes, later, minutes)
		}
	}
	nodes := 1
	now := time.Unix(1_800_000_000, 0)
	a := ratelimit.New(ratelimit.Limit{Burst: 4, Every: time.Minute, Tracked: 8, Nodes: func() int { return nodes }})
	for range 3 {
		a.Add("x", now)
	}
	if got := a.Wait("x", now); got != 0 {
		t.Errorf("alone: got %v", got)
	}
	if nodes = 4; a.Wait("x", now) == 0 {
		t.Error("among four nodes: a fourth attempt is allowed at once")
	}
}
