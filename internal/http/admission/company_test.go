package admission_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/internal/http/admission"
)

// A party that comes again and again is alone; two are in company for a second.
func TestCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := admission.NewCompany()
		steps := []struct {
			name  string
			party admission.Party
			after time.Duration
			alone bool
		}{
			{"the first", of(red), 0, true},
			{"the same", of(red), time.Hour, true},
			{"another", of(blue), 0, false},
			{"a while later the same", of(blue), time.Second - 1, false},
			{"a second later", of(blue), 1, true},
			{"strangers who read of it", admission.Party{Tenant: blue, Public: true}, 0, false},
		}
		for _, s := range steps {
			time.Sleep(s.after)
			c.Came(s.party)
			if got := c.Alone(); got != s.alone {
				t.Errorf("%s: alone %v, want %v", s.name, got, s.alone)
			}
		}
		var nobody *admission.Company
		if nobody.Came(of(red)); nobody.Alone() {
			t.Error("alone without company to know it")
		}
	})
}

func TestCompanyWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := admission.NewCompany()
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		told := ""
		tell := func(what string) func() {
			return func() {
				mu.Lock()
				defer mu.Unlock()
				told += what
			}
		}
		done := make(chan struct{})
		go func() {
			c.Watch(ctx, tell("meet "), tell("part "))
			close(done)
		}()
		want := func(step, want string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if told != want {
				t.Errorf("%s: told %q, want %q", step, told, want)
			}
		}
		c.Came(of(red))
		want("one", "")
		for range 10 {
			c.Came(of(blue))
			c.Came(of(red))
			time.Sleep(900 * time.Millisecond)
		}
		want("two, all the time", "meet ")
		time.Sleep(3 * time.Second)
		want("nobody", "meet part ")
		c.Came(of(gold))
		want("another", "meet part meet ")
		cancel()
		<-done
		want("the end", "meet part meet part ")
	})
}
