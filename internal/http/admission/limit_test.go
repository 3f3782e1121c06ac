package admission_test

import (
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

const (
	red  id.Tenant = 1
	blue id.Tenant = 2
	gold id.Tenant = 3
)

func of(t id.Tenant) admission.Tenant { return admission.Tenant{ID: t} }

func TestLimit(t *testing.T) {
	g := admission.NewLimit(5, 3)
	steps := []struct {
		name   string
		leave  bool
		tenant id.Tenant
		weight int
		in     bool
		inside int
	}{
		{"first", false, red, 2, true, 2},
		{"up to the organization's bound", false, red, 1, true, 3},
		{"beyond it", false, red, 1, false, 3},
		{"another organization", false, blue, 2, true, 5},
		{"beyond the bound on all", false, gold, 1, false, 5},
		{"one leaves", true, red, 2, true, 3},
		{"its room is given again", false, gold, 2, true, 5},
		{"gold leaves", true, gold, 2, true, 3},
		{"blue leaves", true, blue, 2, true, 1},
		{"red leaves", true, red, 1, true, 0},
		{"heavier than all, alone", false, red, 99, true, 99},
		{"beside it", false, blue, 1, false, 99},
		{"the heavy one leaves", true, red, 99, true, 0},
		{"empty again", false, blue, 3, true, 3},
	}
	for _, s := range steps {
		var err error
		if s.leave {
			g.Release(s.tenant, s.weight)
		} else {
			err = g.Acquire(s.tenant, s.weight)
		}
		if (err == nil) != s.in || g.WeightInUse() != s.inside {
			t.Fatalf("%s: got %v with %d inside, want in %v with %d", s.name, err, g.WeightInUse(), s.in, s.inside)
		}
		if err != nil && (!fault.Is(err, fault.Overloaded) || fault.Of(err).RetryAfter <= 0) {
			t.Errorf("%s: got %#v, want overloaded with a time", s.name, err)
		}
	}
	if got, want := g.Refused(), (admission.Refused{All: 2, One: 1}); got != want {
		t.Errorf("refused: got %+v, want %+v", got, want)
	}
}

func BenchmarkLimit(b *testing.B) {
	g := admission.NewLimit(1000, 100)
	b.ReportAllocs()
	for b.Loop() {
		if err := g.Acquire(red, 1); err != nil {
			b.Fatal(err)
		}
		g.Release(red, 1)
	}
}

// The last slots are for the tenants with the fewest: no tenant gets more than it leaves free.
func TestSharedLimit(t *testing.T) {
	for _, tt := range []struct {
		all, one int
		want     []int // of organizations that each take what they get, in turn
	}{
		{12, 10, []int{6, 3, 2, 1, 0}}, {12, 2, []int{2, 2, 2, 2, 2, 1, 1, 0}}, {1, 1, []int{1, 0}}, {6144, 1024, []int{1024, 1024, 1024, 1024, 1024, 512, 256}},
	} {
		g := admission.NewSharedLimit(tt.all, tt.one, "too many", time.Second)
		for i, want := range tt.want {
			got := 0
			for g.Acquire(id.Tenant(i+1), 1) == nil {
				got++
			}
			if got != want {
				t.Errorf("%d places, %d each: organization %d got %d, want %d", tt.all, tt.one, i, got, want)
			}
		}
	}
}
