package webhook_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/http/egress/egresstest"
	"github.com/agentledger/agentledger/storage"
)

// seen is an organization's view of a receiver: after each possible attempt, the number of waiting deliveries and the
// dead letters.
type seen struct {
	waiting int
	dead    webhook.DeadLetter
}

// A user who names a receiver learns nothing about the operator's network: a name that resolves into it, a name that
// does not exist and one without a listener look the same, attempt by attempt. So does a private address in settings
// that were stored before the check existed.
func TestReceiversWithoutAnAnswerLookAlike(t *testing.T) {
	shows := func(name, resolved string) (all []seen) {
		w := newWorld(t)
		caller := egress.New(egress.Options{
			Allow:    []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}, // treated as a public address without a listener
			Resolver: egresstest.Resolver(t, func(int) string { return resolved }),
		})
		w.sender = webhook.New(webhook.Options{Records: w.store, Keyring: w.keyring, Caller: caller, Clock: w.clock})
		w.write(red, "https://"+name+":9/")
		for range 12 {
			w.deliver()
			s := seen{waiting: w.rest(red, "outbox")}
			for _, s.dead = range w.dead(red) {
				s.dead.ID, s.dead.URL, s.dead.GivenUpAt = "", "", 0 // random
			}
			all = append(all, s)
			w.pass(30 * time.Hour)
		}
		return all
	}
	want := shows("hook.example", "") // unknown
	if last := want[len(want)-1]; last.waiting != 0 || last.dead.Tries != 10 || last.dead.Failure != "no answer" {
		t.Fatalf("a name that does not exist: got %+v", last)
	}
	for title, at := range map[string][2]string{
		"private":             {"hook.example", "10.0.0.1"},
		"loopback":            {"hook.example", "127.0.0.1"},
		"metadata service":    {"hook.example", "169.254.169.254"},
		"nobody listens":      {"hook.example", "127.0.0.9"},
		"a private address":   {"10.0.0.1", ""},
		"an internal address": {"127.0.0.1", ""},
	} {
		if got := shows(at[0], at[1]); !slices.Equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", title, got, want)
		}
	}
}

// A dead letter of an older program reveals no more than a current one.
func TestFormerDeadLetter(t *testing.T) {
	w := newWorld(t)
	dead := []byte(`{"url":"https://a.example/","type":"approval.denied","body":{},"created_at":"2026-11-20T12:00:00.000Z",
		"next_at":"2026-11-20T12:00:00.000Z","tries":1,"trouble":"the address is not one that may be called"}`)
	if err := w.store.Write(t.Context(), red, []storage.Change{{Kind: "outbox_dead", Key: "msg_1", Value: dead}}); err != nil {
		t.Fatal(err)
	}
	if got := w.dead(red); len(got) != 1 || got[0].Failure != "no answer" {
		t.Errorf("got %+v", got)
	}
}
