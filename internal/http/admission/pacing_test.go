package admission_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// What comes beyond the number in a second waits, of that organization alone.
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
