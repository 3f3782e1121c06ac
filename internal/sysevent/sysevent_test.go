package sysevent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
)

func newService(t *testing.T) *ledgertest.Service {
	s := ledgertest.New(t)
	s.Found(t, red)
	s.Found(t, blue)
	return s
}

// act states one event and writes one record with it.
func act(kind sysevent.Kind, n int, expect uint64) func(context.Context, *log.State) (sysevent.Change, error) {
	return func(context.Context, *log.State) (sysevent.Change, error) {
		return sysevent.Change{
			Statements: []sysevent.Statement{{Kind: kind, Payload: map[string]any{"n": n}}},
			Changes:    []storage.Change{{Kind: "thing", Key: "k", Value: fmt.Append(nil, n), If: expect}},
		}, nil
	}
}

func TestStatementAndChangeLandTogether(t *testing.T) {
	s := newService(t)
	if _, err := s.SystemEvents.Append(t.Context(), red, "acc_1", act(sysevent.AgentCreated, 1, 0)); err != nil {
		t.Fatal(err)
	}
	want := []ledgertest.Statement{{Kind: "ledger_agent_created", Principal: "acc_1", Payload: `{"n":1}`}}
	if got := s.Audit(t, red); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	r, err := s.Store.Get(t.Context(), red, "thing", "k")
	if err != nil || string(r.Value) != "1" {
		t.Errorf("record: got %q, %v", r.Value, err)
	}
	if got := s.State(t, red).ConfigVersion(); got != 2 {
		t.Errorf("config version: got %d, want 2", got)
	}
	if got := s.State(t, blue); got.Size() != 0 || got.ConfigVersion() != 1 {
		t.Errorf("the other organization: size %d, config version %d", got.Size(), got.ConfigVersion())
	}
	if _, err := s.Store.Get(t.Context(), blue, "thing", "k"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the other organization's record: got %v", err)
	}
}

func TestNothingLandsAlone(t *testing.T) {
	failures := map[string]storagetest.Failure{"refused": storagetest.Refused, "request lost": storagetest.RequestLost}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.Store.Fail(func(storage.Batch) storagetest.Failure { return failure })
			if _, err := s.SystemEvents.Append(t.Context(), red, "acc_1", act(sysevent.AgentCreated, 1, 0)); err == nil {
				t.Error("a failed append was reported as done")
			}
			s.Store.Fail(nil)
			if _, err := s.Store.Get(t.Context(), red, "thing", "k"); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("record: got %v, want none", err)
			}
			if got := s.State(t, red).Size(); got != 0 {
				t.Errorf("size: got %d, want 0", got)
			}
			if _, err := s.SystemEvents.Append(t.Context(), red, "acc_1", act(sysevent.AgentCreated, 1, 0)); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// The outcome of a lost answer is looked up: the act is done once.
func TestLostAnswer(t *testing.T) {
	s := newService(t)
	first := true
	s.Store.Fail(func(storage.Batch) storagetest.Failure {
		if first {
			first = false
			return storagetest.AnswerLost
		}
		return storagetest.NoFailure
	})
	if _, err := s.SystemEvents.Append(t.Context(), red, "acc_1", act(sysevent.AgentCreated, 1, 0)); err != nil {
		t.Fatal(err)
	}
	if got := s.Audit(t, red); len(got) != 1 {
		t.Errorf("got %v, want one statement", got)
	}
}

func TestUnknownOutcomeSpeaksOfAChange(t *testing.T) {
	s := newService(t)
	ctx, cancel := context.WithCancel(t.Context())
	release := s.Store.Hold()
	defer release()
	go func() {
		defer cancel() // the caller disconnects while the append is in flight
		for head, err := s.Store.Head(t.Context(), red); err == nil && head.Size == 0; head, err = s.Store.Head(t.Context(), red) {
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := s.SystemEvents.Append(ctx, red, "acc_1", act(sysevent.AgentCreated, 1, 0))
	if f := fault.Of(err); f.Kind != fault.OutcomeUnknown || !strings.HasPrefix(f.Message, "The change may have taken effect") {
		t.Errorf("got %v", err)
	}
}

// Many concurrent acts: each sees the effect of the previous one, and none is lost.
func TestConcurrentActs(t *testing.T) {
	s := newService(t)
	const acts = 40 // more than Append prepares one again
	var group sync.WaitGroup
	for range acts {
		group.Go(func() {
			_, err := s.SystemEvents.Append(t.Context(), red, sysevent.Operator, func(ctx context.Context, state *log.State) (sysevent.Change, error) {
				r, err := s.Store.Get(ctx, red, "thing", "k")
				if err != nil && !errors.Is(err, storage.ErrNotFound) {
					return sysevent.Change{}, err
				}
				return act(sysevent.SettingsChanged, int(r.Version)+1, r.Version)(ctx, state)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	r, err := s.Store.Get(t.Context(), red, "thing", "k")
	if err != nil || r.Version != acts || fmt.Sprint(r.Version) != string(r.Value) {
		t.Errorf("got version %d with value %s, %v; want %d", r.Version, r.Value, err, acts)
	}
	if said := s.Audit(t, red); uint64(len(said)) != r.Version {
		t.Errorf("got %d statements for version %d", len(said), r.Version)
	}
}

func TestSystemEnvelope(t *testing.T) {
	s := newService(t)
	keys := map[string]bool{}
	for _, tenant := range []id.Tenant{red, blue} {
		for n := range uint64(2) { // the same statement twice, at different config versions
			if _, err := s.SystemEvents.Append(t.Context(), tenant, sysevent.Operator, act(sysevent.KeyRetired, 7, n)); err != nil {
				t.Fatal(err)
			}
		}
		state := s.State(t, tenant)
		ids := map[id.Event]bool{}
		for e, err := range s.Ledgers.Events(t.Context(), state, 0, state.Size(), storage.FieldRecord|storage.FieldEnvelope) {
			if err != nil {
				t.Fatal(err)
			}
			envelope, err := event.Parse(e.Envelope, event.Options{Server: true})
			if err != nil {
				t.Fatal(err)
			}
			record, err := event.ParseRecord(e.Record)
			if err != nil {
				t.Fatal(err)
			}
			if envelope.AgentID != "system" || envelope.ActorType != "system" || envelope.ActorPrincipal != "operator" ||
				!strings.HasPrefix(string(envelope.KeyID), "system_") || !strings.HasPrefix(string(e.ID), "ledger_key_retired:") {
				t.Errorf("envelope: %s", e.Envelope)
			}
			if record.Signer != event.SignerSystem || record.Custody != event.CustodyServer || record.IngestKeyID != "" || record.Policy.Evaluated {
				t.Errorf("record: %s", e.Record)
			}
			if _, err := event.Parse(e.Envelope, event.Options{}); err == nil {
				t.Error("a client could send this envelope")
			}
			ids[e.ID] = true
			keys[record.PublicKey] = true
		}
		if len(ids) != 2 {
			t.Errorf("tenant %d: got %d event ids, want 2", tenant, len(ids))
		}
		s.Audit(t, tenant)
	}
	if len(keys) != 2 {
		t.Errorf("got %d system keys in two organizations, want 2", len(keys))
	}
}

// Under contention, an act is prepared on one of the organization's processors, so it leaves a processor to others.
// An act that waits for the store holds none.
func TestActsTakeProcessors(t *testing.T) {
	s := newService(t)
	control := admission.New(2)
	s.SystemEvents.Processors = control.Processors
	own, other := admission.TenantOf(red), admission.TenantOf(blue)
	come := func(tenant admission.Tenant) { // creates contention
		if err := control.Slots.Acquire(t.Context(), tenant, 1); err != nil {
			t.Fatal(err)
		}
		control.Slots.Release(tenant, 1)
	}
	come(own)
	come(other)
	if err := control.Processors.Acquire(t.Context(), own, 1); err != nil { // the only one that red may have
		t.Fatal(err)
	}
	stated := make(chan error, 1)
	go func() {
		_, err := s.SystemEvents.Append(context.WithoutCancel(t.Context()), red, "acc_1", act(sysevent.AgentCreated, 1, 0))
		stated <- err
	}()
	if _, err := s.SystemEvents.Append(t.Context(), blue, "acc_1", act(sysevent.AgentCreated, 1, 0)); err != nil {
		t.Error(err)
	}
	select {
	case err := <-stated:
		t.Errorf("stated beside the processor that is taken: %v", err)
	default:
	}
	control.Processors.Release(own, 1)
	if err := <-stated; err != nil {
		t.Error(err)
	}
	release := s.Store.Hold()
	defer release()
	go s.SystemEvents.Append(context.WithoutCancel(t.Context()), red, "acc_1", act(sysevent.AgentCreated, 2, 1))
	for head, err := s.Store.Head(t.Context(), red); err == nil && head.Size < 2; head, err = s.Store.Head(t.Context(), red) {
		time.Sleep(time.Millisecond)
	}
	come(other)
	if err := control.Processors.Acquire(t.Context(), own, 1); err != nil {
		t.Error(err)
	}
	control.Processors.Release(own, 1)
}

// An agent that gives its own event the name of a future statement would prevent that statement. The name cannot be
// guessed without the system key.
func TestNamesCannotBeForetold(t *testing.T) {
	s := newService(t)
	said := sysevent.Statement{Kind: sysevent.KeyRevoked, Payload: map[string]any{"agent_id": "agt_1", "key_id": "key_1"}}
	names := map[id.Event]bool{}
	for _, tenant := range []id.Tenant{red, blue} { // both at the same config version
		for range 2 {
			name, err := s.SystemEvents.EventID(t.Context(), s.State(t, tenant), said)
			if err != nil {
				t.Fatal(err)
			}
			names[name] = true
		}
	}
	if len(names) != 2 {
		t.Errorf("two organizations name the same statement %v, want a name for each, the same each time", names)
	}
}

func TestPreparingFails(t *testing.T) {
	s := newService(t)
	want := errors.New("no")
	_, err := s.SystemEvents.Append(t.Context(), red, "acc_1", func(context.Context, *log.State) (sysevent.Change, error) { return sysevent.Change{}, want })
	if !errors.Is(err, want) || s.State(t, red).Size() != 0 {
		t.Errorf("got %v, size %d", err, s.State(t, red).Size())
	}
}
