package identity_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/clock/clocktest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
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
	noon := id.InstantOf(m.TrueTime())
	w := newWorld(t, func(o *identity.Options) { o.Operator.Clock = clock.New(m, clock.Start{}) })
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

// The operator's call corrects a ledger that was ahead of the clock, by the organization's id or slug.
func TestCorrectClock(t *testing.T) {
	for _, by := range []string{"id", "slug"} {
		w := newWorld(t)
		red := w.organization("red")
		paths := map[string]string{"id": organizations + "/" + red.OrganizationID + "/clock", "slug": organizations + "/red/clock"}
		const body = `{"reason":"the clock of the host was wrong"}`
		answers(t, "not ahead", w.platform("POST", paths[by], body), 409, refusal("The ledger is not ahead of the clock"))
		tenant, err := w.orgs.BySlug(t.Context(), "red")
		if err != nil {
			t.Fatal(err)
		}
		if answer := w.platform("POST", organizations+"/red/log-keys", ""); answer.Code != 201 {
			t.Fatalf("got %d %s", answer.Code, answer.Body)
		}
		was := w.State(t, tenant).LastReceived()
		w.Pass(-time.Hour)
		if answer := w.platform("POST", organizations+"/red/log-keys/retire", ""); answer.Code != 503 || !strings.Contains(answer.Body.String(), `"code":"clock"`) {
			t.Errorf("ahead: got %d %s", answer.Code, answer.Body)
		}
		for _, reason := range []string{``, `a\nb`, strings.Repeat("x", 1025)} {
			answers(t, reason, w.platform("POST", paths[by], `{"reason":"`+reason+`"}`), 422, refusal("reason must have 1 to 1024 characters, none of them a control character"))
		}
		answers(t, "nobody", w.platform("POST", organizations+"/nobody/clock", body), 404, refusal("Not found"))
		answers(t, "without the secret", w.call("POST", paths[by], body), 401, refusal("Invalid platform secret"))
		var got struct {
			Newest   id.Instant `json:"newest_received_at"`
			Received id.Instant `json:"received_at"`
			Sequence uint64     `json:"sequence_num"`
		}
		w.decode(w.platform("POST", paths[by], body), 200, &got)
		if now := id.InstantOf(w.Clock()); got.Newest != was || got.Received != now || got.Sequence != uint64(w.State(t, tenant).Size()) {
			t.Errorf("got %+v, want from %s to %s", got, was, now)
		}
		statements := w.Audit(t, tenant)
		want := ledgertest.Statement{Kind: "ledger_clock", Principal: "operator", Payload: `{"newest_received_at":"` + was.String() +
			`","reason":"the clock of the host was wrong","received_at":"` + got.Received.String() + `"}`}
		if last := statements[len(statements)-1]; last != want {
			t.Errorf("got %+v, want %+v", last, want)
		}
		w.Store.Fail(func(storage.Batch) storagetest.Failure { return storagetest.Refused })
		w.Pass(-time.Hour)
		if answer := w.platform("POST", paths[by], body); answer.Code != 503 {
			t.Errorf("without a store: got %d %s", answer.Code, answer.Body)
		}
	}
}
