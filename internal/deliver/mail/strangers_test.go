package mail_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
)

const blue id.Tenant = 12

func (w *world) countStranger(s mail.Stranger) error {
	w.t.Helper()
	err := w.outbox.CountStranger(w.t.Context(), s)
	if err != nil && !fault.Is(err, fault.RateLimited) {
		w.t.Fatal(err)
	}
	return err
}

// wait returns the time until an address can be mailed, or 0 if it was counted now.
func (w *world) wait(s mail.Stranger) time.Duration {
	w.t.Helper()
	var limited *fault.Error
	errors.As(w.countStranger(s), &limited)
	if limited == nil {
		return 0
	}
	return limited.RetryAfter
}

// An address gets one mail in ten minutes and five in a day, whoever causes them, in whatever spelling, and across
// processes.
func TestStrangersAreBounded(t *testing.T) {
	w := newWorld(t)
	victim := func(o id.Tenant, address string) mail.Stranger {
		return mail.Stranger{Address: address, Organization: o}
	}
	for i, c := range []struct {
		pass time.Duration
		s    mail.Stranger
		want time.Duration
	}{
		{0, victim(red, "v@x.example"), 0},
		{0, victim(red, "v@x.example"), 10 * time.Minute},
		{0, victim(blue, "V+tag@X.example"), 10 * time.Minute},
		{0, victim(red, "other@x.example"), 0},
		{10*time.Minute - time.Millisecond, victim(blue, "v@x.example"), time.Millisecond},
		{time.Millisecond, victim(blue, "v@x.example"), 0},
		{10 * time.Minute, victim(red, "v@x.example"), 0},
		{10 * time.Minute, victim(red, "v@x.example"), 0},
		{10 * time.Minute, victim(red, "v@x.example"), 0},
		{10 * time.Minute, victim(red, "v@x.example"), 24*time.Hour - 50*time.Minute},
		{24*time.Hour - 50*time.Minute, victim(red, "v@x.example"), 0},
		{0, mail.Stranger{Address: "v@x.example", Purpose: "reset", Unlimited: true}, 0},
		{0, mail.Stranger{Address: "v@x.example", Purpose: "reset", Unlimited: true}, 10 * time.Minute},
	} {
		w.pass(c.pass)
		w.outbox = w.open() // another process
		if got := w.wait(c.s); got != c.want {
			t.Errorf("%d: got a wait of %v, want %v", i, got, c.want)
		}
	}
	for range 20 { // no daily bound
		w.pass(10 * time.Minute)
		if err := w.countStranger(mail.Stranger{Address: "v@x.example", Purpose: "reset", Unlimited: true}); err != nil {
			t.Fatal(err)
		}
	}
}

// One cause counts once, so a write that is prepared again does not count against itself.
func TestCauseCountsOnce(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		if err := w.countStranger(mail.Stranger{Address: "v@x.example", Organization: red, Cause: "a"}); err != nil {
			t.Error(err)
		}
	}
	if w.countStranger(mail.Stranger{Address: "v@x.example", Organization: red, Cause: "b"}) == nil {
		t.Error("another cause was not refused")
	}
}

// An organization causes a bounded number of mails per UTC day, and mails of one organization do not count for
// another.
func TestOrganizationIsBounded(t *testing.T) {
	w := newWorld(t)
	w.outbox.DailyMails = 3
	send := func(o id.Tenant, n int) error {
		return w.countStranger(mail.Stranger{Address: fmt.Sprintf("v%d@x.example", n), Organization: o})
	}
	for n := range 4 {
		if err := send(red, n); (err != nil) != (n == 3) {
			t.Errorf("%d: got %v", n, err)
		}
	}
	if err := send(blue, 3); err != nil {
		t.Errorf("blue: got %v", err)
	}
	w.pass(12 * time.Hour) // midnight
	if err := send(red, 4); err != nil {
		t.Errorf("the next day: got %v", err)
	}
}

// If many processes count concurrently, one mail per address is allowed, and as many as the bound per organization.
func TestCountsAtOnce(t *testing.T) {
	w := newWorld(t)
	boxes := []*mail.Outbox{w.open(), w.open()}
	var one, all atomic.Int32
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			box := boxes[i%2]
			if box.CountStranger(t.Context(), mail.Stranger{Address: "v@x.example", Organization: blue}) == nil {
				one.Add(1)
			}
			if box.CountStranger(t.Context(), mail.Stranger{Address: fmt.Sprintf("v%d@x.example", i), Organization: id.Service}) == nil {
				all.Add(1)
			}
		})
	}
	group.Wait()
	if one.Load() != 1 || all.Load() != 16 {
		t.Errorf("got %d mails to one address and %d to 16 addresses", one.Load(), all.Load())
	}
}

// Old records of addresses are removed when new ones are written, so they do not accumulate.
func TestStrangersAreForgotten(t *testing.T) {
	w := newWorld(t)
	for n := range 400 {
		if err := w.countStranger(mail.Stranger{Address: fmt.Sprintf("v%d@x.example", n), Organization: id.Service}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Hour)
	}
	found, err := w.store.Scan(t.Context(), id.Service, "mail_stranger", "", "", 1000)
	if err != nil || len(found) > 100 {
		t.Errorf("got %d records, %v", len(found), err)
	}
}
