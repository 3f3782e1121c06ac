package identity_test

import (
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/clock/clocktest"
)

type shownClock struct {
	TrustedAt id.Instant `json:"trusted_at"`
	WallAt    id.Instant `json:"wall_at"`
	OffsetMS  int64      `json:"offset_ms"`
	Held      bool       `json:"held"`
	Reason    string     `json:"held_reason"`
}

func TestClock(t *testing.T) {
	const path, day = "/v1/id/platform/clock", 24 * time.Hour
	m := clocktest.New()
	noon := id.InstantOf(m.True())
	w := newWorld(t, func(o *identity.Options) { o.Clock = clock.New(m, clock.Start{}) })
	ask := func(method, body string) (c shownClock) {
		w.decode(w.platform(method, path, body), 200, &c)
		return c
	}
	if got, want := ask("GET", ""), (shownClock{TrustedAt: noon, WallAt: noon}); got != want {
		t.Errorf("at first: got %+v, want %+v", got, want)
	}
	m.Step(day)
	stepped := ask("GET", "")
	want := shownClock{TrustedAt: noon, WallAt: noon + id.Instant(day.Milliseconds()), OffsetMS: day.Milliseconds(), Held: true, Reason: stepped.Reason}
	if stepped != want || stepped.Reason == "" {
		t.Errorf("after a step: got %+v, want %+v with a reason", stepped, want)
	}
	for _, body := range []string{`{}`, `{"accept":false}`} {
		answers(t, body, w.platform("POST", path, body), 422, refusal("accept must be true"))
	}
	for _, method := range []string{"GET", "POST"} {
		answers(t, "without the secret", w.call(method, path, `{"accept":true}`), 401, refusal("Invalid platform secret"))
	}
	if got := ask("GET", ""); !got.Held {
		t.Error("it was accepted by a refused call")
	}
	want = shownClock{TrustedAt: want.WallAt, WallAt: want.WallAt}
	for _, method := range []string{"POST", "GET"} {
		if got := ask(method, `{"accept":true}`); got != want {
			t.Errorf("%s: got %+v, want %+v", method, got, want)
		}
	}
}
