package id_test

import (
	"regexp"
	"testing"

	"github.com/agentledger/agentledger/id"
)

func TestRising(t *testing.T) {
	form := regexp.MustCompile(`^run_[0-9a-v]{26}$`)
	last := ""
	for _, now := range []id.Instant{0, 1, 255, 256, 1_770_000_000_000, 1_770_000_000_001, 1<<48 - 1} {
		got := id.Rising("run_", now)
		if !form.MatchString(got) || got <= last {
			t.Errorf("at %d: got %q after %q", now, got, last)
		}
		last = got
	}
	if first, second := id.Rising("", 7), id.Rising("", 7); first == second {
		t.Errorf("got the name %q twice", first)
	}
}
