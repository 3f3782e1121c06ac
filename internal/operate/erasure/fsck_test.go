package erasure_test

import (
	"context"
	"iter"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage"
)

// bent is a store that returns modified events.
type bent struct {
	storage.Engine
	bend func(t id.Tenant, e *storage.Event)
}

func (b bent) Events(
	ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Fields,
) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		for e, err := range b.Engine.Events(ctx, t, begin, end, parts) {
			if parts&storage.FieldEnvelope != 0 {
				b.bend(t, &e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// findings checks a store and returns the faults of red by location. Blue must have none.
func (s service) findings(t *testing.T, store storage.Engine) (found []string) {
	t.Helper()
	_, err := audit.Fsck(t.Context(), store, s.SystemEvents.Keyring, nil, func(f audit.Finding) {
		if f.Tenant != envelopeRed {
			t.Errorf("another organization: %v", f)
		}
		found = append(found, f.Place+" "+f.Problem)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Of six events, event 6 erases 1 and 2, and event 7 erases event 4.
func TestFsck(t *testing.T) {
	s := newService(t, 6)
	var envelope []byte
	for e, err := range s.Engine.Events(t.Context(), envelopeRed, 1, 2, storage.FieldEnvelope) {
		if envelope = e.Envelope; err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []id.Range{{Begin: 1, End: 3}, {Begin: 4, End: 7}} {
		if _, err := s.erase(t, envelopeRed, r); err != nil {
			t.Fatal(err)
		}
	}
	s.wantMarkers(t, envelopeRed, -1, 6, 6, -1, 7, 7, -1, -1)
	at := func(index id.Index, change func(*storage.Event)) func(*storage.Event) {
		return func(e *storage.Event) {
			if e.Index == index {
				change(e)
			}
		}
	}
	erasedBy := func(by id.Index) func(*storage.Event) {
		return func(e *storage.Event) { e.Envelope, e.ErasedBy = nil, by }
	}
	for name, test := range map[string]struct {
		bend func(*storage.Event)
		want []string
	}{
		"nothing":          {func(*storage.Event) {}, nil},
		"missing":          {at(3, erasedBy(0)), []string{"envelope 3 is missing"}},
		"a marker is gone": {at(1, erasedBy(0)), []string{"envelope 1 is missing"}},
		"a marker of no statement": {at(3, erasedBy(5)),
			[]string{"envelope 3 is missing, and event 5 does not say that it was erased"}},
		"a marker of another statement": {at(1, erasedBy(7)), []string{
			"envelope 1 is missing, and event 7 does not say that it was erased",
			"envelope 1 was erased by event 6, and not by event 7"}},
		"a marker beyond the ledger": {at(3, erasedBy(99)),
			[]string{"envelope 3 is missing, and event 99 does not say that it was erased"}},
		"a marker of itself": {at(3, erasedBy(3)), []string{"envelope 3 was erased by an event that is not behind it"}},
		"half erased": {at(1, func(e *storage.Event) { e.Envelope, e.ErasedBy = envelope, 0 }),
			[]string{"envelope 1 is there, and event 6 says that it was erased"}},
		"marked and there": {at(1, func(e *storage.Event) { e.Envelope = envelope }), []string{
			"envelope 1 is there, and was erased", "envelope 1 is there, and event 6 says that it was erased"}},
		"a statement was erased": {at(6, erasedBy(7)), []string{
			"envelope 1 is missing, and event 6 does not say that it was erased",
			"envelope 2 is missing, and event 6 does not say that it was erased",
			"envelope 6 is the service's own, which is never erased"}},
	} {
		got := s.findings(t, bent{s.Engine, func(tenant id.Tenant, e *storage.Event) {
			if tenant == envelopeRed {
				test.bend(e)
			}
		}})
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestBoundsAgree(t *testing.T) {
	if event.MaxErasedEvents != erasure.MaxEvents {
		t.Errorf("a statement names %d events, an append erases %d", event.MaxErasedEvents, erasure.MaxEvents)
	}
}
