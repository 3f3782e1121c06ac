package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

const limitPolicy = `{"policy_id":"caps","name":"Caps","rules":[{"rule_id":"cap","tool":"acme.pay","decision":"deny",
	"limit":{"limit_id":"pays","count":true,"by":"organization","window_seconds":86400,"max":50}}]}`

// 100 concurrent senders against a limit of 50, on the real server and both engines: never one too many, even after it
// was killed, and separately for each organization.
func TestWindowLimit(t *testing.T) {
	t.Parallel()
	t.Run("pebble", func(t *testing.T) { windowLimit(t) })
	t.Run("postgres", func(t *testing.T) {
		s, err := pgtest.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Stop() })
		windowLimit(t, "--storage", s.URL())
	})
}

func windowLimit(t *testing.T, flags ...string) {
	dir := t.TempDir()
	p := startProcess(t, dir, flags...)
	orgs := []foundedOrganization{p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)}
	for _, org := range orgs {
		r := newRefunder(t, p, org)
		if err := r.person.callConsole(t.Context(), "POST", "/policies", rawJSON(limitPolicy), nil); err != nil {
			t.Fatal(err)
		}
		if err := r.person.callConsole(t.Context(), "POST", "/policies/caps/activate", struct{}{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, org := range orgs {
		if got := pay(t, newRefunder(t, p, org), "first", 100); got != 50 {
			t.Errorf("%s: %d of 100 were allowed, want 50", org.Slug, got)
		}
	}
	p.kill()
	p = startProcess(t, dir, flags...)
	for _, org := range orgs {
		if got := pay(t, newRefunder(t, p, org), "second", 20); got != 0 {
			t.Errorf("%s: after a kill %d more were allowed", org.Slug, got)
		}
	}
	p.terminate()
	if out, exit := command(t, "agentledger", append([]string{"fsck", "--data", dir}, flags...)...); exit != 0 {
		t.Errorf("fsck: %s", out)
	}
}

// pay sends n payments concurrently and returns how many were not tightened.
func pay(t *testing.T, r *refunder, name string, n int) int {
	t.Helper()
	var allowed atomic.Int64
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			envelope, err := r.signer.SignEvent(client.Event{
				EventID: id.Event(fmt.Sprint(name, "-", i)), ActionKind: "tool_call", Tool: "acme.pay", EmittedAt: id.InstantOf(time.Now()),
			})
			if err != nil {
				t.Error(err)
				return
			}
			result, err := r.client.Send(t.Context(), envelope)
			if err != nil {
				t.Error(err)
				return
			}
			if result.Status == client.Created && !result.Tightened() {
				allowed.Add(1)
			}
		})
	}
	group.Wait()
	return int(allowed.Load())
}
