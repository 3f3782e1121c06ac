package publicapi_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/verify"
)

// The bundle of an erased event contains the time of the erasure and still verifies. It contains no text of the
// envelope.
func TestErasedBundle(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseFull, "one", "two")
	w.append(&w.blue, id.DiscloseFull, "one", "two")
	w.now = w.now.Add(time.Hour)
	eraser := erasure.EnvelopeEraser{Appender: w.events, Ledgers: w.ledgers}
	_, err := eraser.Erase(t.Context(), w.red.tenant, "acc_1", func(context.Context, *log.State) (erasure.Selection, error) {
		return erasure.Selection{Ranges: []id.Range{{End: 1}}, Reason: "person_request"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		of     *owner
		event  string
		erased bool
	}{{&w.red, "one", true}, {&w.red, "two", false}, {&w.blue, "one", false}} {
		body := w.get("/v1/public/orgs/" + string(test.of.slug) + "/verify/" + test.event + "?verify=1").Body.Bytes()
		b, err := verify.ParseBundle(body)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"envelope", "record"}
		if test.erased {
			want = []string{"erased_at", "record"}
		}
		if got := shown(t, body); !slices.Equal(got, want) {
			t.Errorf("%s of %s: got %v, want %v", test.event, test.of.slug, got, want)
		}
		if test.erased && *b.ErasedAt != id.InstantOf(w.now) {
			t.Errorf("erased at: got %s, want %s", b.ErasedAt, id.InstantOf(w.now))
		}
		if got := bytes.Contains(body, []byte("secret")); got == test.erased {
			t.Errorf("%s of %s: payload shown: %v", test.event, test.of.slug, got)
		}
		key := w.state(test.of).VerifierKey()
		if report := verify.Check(b, verify.Options{Key: &key}); !report.OK || !b.Verification.OK {
			t.Errorf("%s of %s: %v", test.event, test.of.slug, report.Errors)
		}
	}
}

// A reader with a state before an erasure gets the bundle without the envelope and with the time of the erasure.
func TestBundleOfAnOlderState(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseFull, "one")
	older := w.state(&w.red)
	w.now = w.now.Add(time.Hour)
	eraser := erasure.EnvelopeEraser{Appender: w.events, Ledgers: w.ledgers}
	_, err := eraser.Erase(t.Context(), w.red.tenant, "acc_1", func(context.Context, *log.State) (erasure.Selection, error) {
		return erasure.Selection{Ranges: []id.Range{{End: 1}}, Reason: "person_request"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := w.surface.MakeBundle(t.Context(), w.red.slug, older, 0, id.DiscloseFull)
	if err != nil {
		t.Fatal(err)
	}
	if b.Envelope != nil || b.ErasedAt == nil || *b.ErasedAt != id.InstantOf(w.now) || !b.Verification.OK {
		t.Errorf("got %+v", b)
	}
}
