package erasure_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

const (
	envelopeRed  = ledgertest.Red
	envelopeBlue = ledgertest.Blue
)

// service has two organizations with n events each.
type service struct {
	*ledgertest.Service
	eraser *erasure.EnvelopeEraser
}

func newService(t *testing.T, n int) service {
	s := ledgertest.New(t)
	agent := ledgertest.NewAgent()
	for _, tenant := range []id.Tenant{envelopeRed, envelopeBlue} {
		s.Found(t, tenant)
		for i := range n {
			e := agent.Envelope(t, tenant, fmt.Sprintf("event-%d", i), nil)
			_, err := s.Ledgers.Append(t.Context(), tenant, func(_ context.Context, state *log.State) (log.Submission, error) {
				return log.Submission{Drafts: []log.Draft{log.NewDraft(state.Identity(), e, agent.Attestation(e))}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return service{s, &erasure.EnvelopeEraser{Appender: s.SystemEvents, Ledgers: s.Ledgers}}
}

// erase erases ranges of an organization.
func (s service) erase(t *testing.T, tenant id.Tenant, ranges ...id.Range) (erasure.Result, error) {
	t.Helper()
	return s.eraser.Erase(t.Context(), tenant, "acc_1", func(context.Context, *log.State) (erasure.Selection, error) {
		return erasure.Selection{Ranges: ranges, Reason: "person_request"}, nil
	})
}

// markers returns the ErasedBy of each event, or -1 for an event that still has its envelope.
func (s service) markers(t *testing.T, tenant id.Tenant) (all []int) {
	t.Helper()
	state := s.State(t, tenant)
	for e, err := range s.Ledgers.Events(t.Context(), state, 0, state.Size(), storage.FieldRecord|storage.FieldEnvelope) {
		switch {
		case err != nil:
			t.Fatal(err)
		case len(e.Record) == 0 || (e.Envelope == nil) != (e.ErasedBy != 0):
			t.Fatalf("event %d: record %s, envelope %s, erased by %d", e.Index, e.Record, e.Envelope, e.ErasedBy)
		case e.Envelope != nil:
			all = append(all, -1)
		default:
			all = append(all, int(e.ErasedBy))
		}
	}
	return all
}

func (s service) wantMarkers(t *testing.T, tenant id.Tenant, want ...int) {
	t.Helper()
	if got := s.markers(t, tenant); !reflect.DeepEqual(got, want) {
		t.Errorf("markers of %d: got %v, want %v", tenant, got, want)
	}
}

func TestEraseEnvelopes(t *testing.T) {
	s := newService(t, 4)
	for _, step := range []struct {
		name   string
		ranges []id.Range
		erased int
		want   []int
	}{
		{"one", []id.Range{{Begin: 1, End: 2}}, 1, []int{-1, 4, -1, -1, -1}},
		{"the same again", []id.Range{{Begin: 1, End: 2}}, 0, []int{-1, 4, -1, -1, -1}},
		{"a statement alone", []id.Range{{Begin: 4, End: 5}}, 0, []int{-1, 4, -1, -1, -1}},
		{"around both", []id.Range{{Begin: 2, End: 5}, {Begin: 0, End: 3}}, 3, []int{5, 4, 5, 5, -1, -1}},
		{"nothing left", []id.Range{{Begin: 0, End: 6}}, 0, []int{5, 4, 5, 5, -1, -1}},
	} {
		got, err := s.erase(t, envelopeRed, step.ranges...)
		if err != nil || got.Erased != step.erased {
			t.Errorf("%s: got %d erased, %v, want %d", step.name, got.Erased, err, step.erased)
		}
		s.wantMarkers(t, envelopeRed, step.want...)
	}
	s.wantMarkers(t, envelopeBlue, -1, -1, -1, -1)
	statements := s.Audit(t, envelopeRed)
	want := []ledgertest.Statement{
		{Kind: event.KindErasure, Principal: "acc_1", Payload: `{"ranges":[[1,2]],"reason":"person_request"}`},
		{Kind: event.KindErasure, Principal: "acc_1", Payload: `{"ranges":[[0,4]],"reason":"person_request"}`},
	}
	if !reflect.DeepEqual(statements, want) {
		t.Errorf("statements: got %v, want %v", statements, want)
	}
	if got := s.Audit(t, envelopeBlue); len(got) != 0 {
		t.Errorf("statements of the other organization: got %v", got)
	}
}

// A replay still finds the first event, and different content is still a conflict.
func TestReplayOfErased(t *testing.T) {
	s := newService(t, 2)
	if _, err := s.erase(t, envelopeRed, id.Range{End: 2}); err != nil {
		t.Fatal(err)
	}
	var record event.Record
	for e, err := range s.Ledgers.Events(t.Context(), s.State(t, envelopeRed), 1, 2, storage.FieldRecord) {
		if err != nil {
			t.Fatal(err)
		}
		if record, err = event.ParseRecord(e.Record); err != nil {
			t.Fatal(err)
		}
	}
	queries := []log.Query{
		{Event: record.EventID, Digest: record.EventDigest, IngestKey: "ik_test", Key: "idem-event-1"},
		{Event: record.EventID, Digest: id.Hash{1}},
	}
	got := s.Ledgers.Replays(t.Context(), s.State(t, envelopeRed), queries)
	if !got[0].Known || got[0].Err != nil {
		t.Errorf("the same event: got %+v", got[0])
	}
	if fault.Of(got[1].Err).Kind != fault.Invalid {
		t.Errorf("another content: got %+v", got[1])
	}
}

func TestBounds(t *testing.T) {
	s := newService(t, 3)
	many := make([]id.Range, erasure.MaxRanges+1)
	for i := range many {
		many[i] = id.Range{Begin: id.Index(2 * i), End: id.Index(2*i + 1)}
	}
	for name, ranges := range map[string][]id.Range{
		"empty":             {{Begin: 1, End: 1}},
		"backwards":         {{Begin: 2, End: 1}},
		"beyond the ledger": {{Begin: 2, End: 4}},
		"too many ranges":   many,
	} {
		if _, err := s.erase(t, envelopeRed, ranges...); fault.Of(err).Kind != fault.Invalid {
			t.Errorf("%s: got %v, want %v", name, err, fault.Invalid)
		}
	}
	s.wantMarkers(t, envelopeRed, -1, -1, -1)
	if got, err := s.erase(t, envelopeRed); err != nil || got.Erased != 0 {
		t.Errorf("no ranges: got %+v, %v", got, err)
	}
}

// A change that forbids erasure is in time if it raised the config version.
func TestHoldAgainstErasure(t *testing.T) {
	s := newService(t, 1)
	held := errors.New("held")
	hold := func(context.Context, *log.State) (sysevent.Change, error) {
		return sysevent.Change{
			Statements: []sysevent.Statement{{Kind: sysevent.SettingsChanged, Payload: map[string]any{"legal_hold": true}}},
			Changes:    []storage.Change{{Kind: "hold", Value: []byte("1"), If: storage.AnyVersion}},
		}, nil
	}
	other := &sysevent.Appender{Ledgers: s.Ledgers, Records: s.Engine, Keyring: s.SystemEvents.Keyring,
		Disclosure: s.SystemEvents.Disclosure, Clock: s.Clock} // another process does not share the lock
	calls := 0
	_, err := s.eraser.Erase(t.Context(), envelopeRed, "acc_1", func(ctx context.Context, _ *log.State) (erasure.Selection, error) {
		calls++
		if _, err := s.Engine.Get(ctx, envelopeRed, "hold", ""); err == nil {
			return erasure.Selection{}, held
		}
		if _, err := other.Append(ctx, envelopeRed, "acc_2", hold); err != nil {
			return erasure.Selection{}, err
		}
		return erasure.Selection{Ranges: []id.Range{{End: 1}}, Reason: "retention"}, nil
	})
	if !errors.Is(err, held) || calls != 2 {
		t.Errorf("got %v after %d calls, want %v after 2", err, calls, held)
	}
	s.wantMarkers(t, envelopeRed, -1, -1)
}

// The envelopes are erased together with the statement or not at all, whatever the store answers.
func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		failure storagetest.Failure
		want    []int
		ok      bool
	}{
		"refused":      {storagetest.Refused, []int{-1, -1}, false},
		"request lost": {storagetest.RequestLost, []int{-1, -1}, false},
		"answer lost":  {storagetest.AnswerLost, []int{2, 2, -1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, 2)
			s.Store.Fail(func(b storage.Batch) storagetest.Failure {
				if b.Tenant == envelopeRed && len(b.Events) > 0 && (test.failure != storagetest.AnswerLost || b.Expect.Size == 2) {
					return test.failure
				}
				return storagetest.NoFailure
			})
			_, err := s.erase(t, envelopeRed, id.Range{End: 2})
			s.Store.Fail(nil)
			if (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
			s.wantMarkers(t, envelopeRed, test.want...)
			if _, err := s.erase(t, envelopeRed, id.Range{End: 2}); err != nil {
				t.Fatal(err)
			}
			s.wantMarkers(t, envelopeRed, 2, 2, -1)
			s.wantMarkers(t, envelopeBlue, -1, -1)
		})
	}
}

// Concurrent erasures of the same events: each event has one marker, and each statement says what it erased.
func TestErasuresAtOnce(t *testing.T) {
	const events, erasers = 30, 6
	s := newService(t, events)
	var group sync.WaitGroup
	var mu sync.Mutex
	erased := 0
	for n := range erasers {
		group.Go(func() {
			got, err := s.erase(t, envelopeRed, id.Range{Begin: id.Index(n), End: id.Index(events - n)})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			erased += got.Erased
		})
	}
	group.Wait()
	if erased != events {
		t.Errorf("got %d erased in all, want %d", erased, events)
	}
	for i, by := range s.markers(t, envelopeRed)[:events] {
		if by < events {
			t.Errorf("event %d: erased by %d", i, by)
		}
	}
	s.Audit(t, envelopeRed)
}
