package admission_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// Rejections beyond the number per second are delayed, only of that organization.
func TestRefusalPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := admission.NewRefusalPacer(2, time.Second)
		waited := func(tenant id.Tenant) time.Duration {
			began := time.Now()
			b.DelayRefusal(t.Context(), tenant)
			return time.Since(began)
		}
		for i, want := range []time.Duration{0, 0, time.Second, 0, 0, time.Second} { // a wait leads into another second
			if got := waited(red); got != want {
				t.Errorf("refusal %d: waited %v, want %v", i, got, want)
			}
		}
		waited(red)
		waited(red)
		if got := waited(blue); got != 0 {
			t.Errorf("another organization waited %v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		b.DelayRefusal(ctx, red)
		if got := time.Since(began); got != 0 {
			t.Errorf("waited %v for somebody who is gone", got)
		}
		if got := b.DelayedRefusals(); got != 3 {
			t.Errorf("held %d, want 3", got)
		}
	})
}

func TestRefusalPacerThatIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, began := admission.NewRefusalPacer(0, time.Hour), time.Now()
		for range 1000 {
			b.DelayRefusal(t.Context(), red)
		}
		if time.Since(began) != 0 {
			t.Error("waited")
		}
	})
}

// A request that another node serves is not a rejection and is not delayed.
func TestElsewhereIsNoRefusal(t *testing.T) {
	pacer := admission.NewRefusalPacer(1, time.Hour)
	c := &admission.Class{Control: admission.New(1), Limit: admission.NewLimit(10, 10), Pacer: pacer}
	for range 10 {
		err := c.Serve(httptest.NewRequest("GET", "/", nil), elsewhereCall{})
		if is, found := err.(*admission.Elsewhere); !found || is.Tenant != 2 {
			t.Fatalf("got %v", err)
		}
	}
	if got := pacer.DelayedRefusals(); got != 0 || c.Limit.WeightInUse() != 0 {
		t.Errorf("%d were delayed, %d are in the limit", got, c.Limit.WeightInUse())
	}
}

type elsewhereCall struct{}

func (elsewhereCall) Identify() (admission.Tenant, error) {
	return admission.TenantOf(2), &admission.Elsewhere{Tenant: 2}
}
func (elsewhereCall) Handle() error { return nil }
