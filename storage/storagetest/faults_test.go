package storagetest

import (
	"errors"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

func sizeOf(t *testing.T, m *Model) id.Index {
	t.Helper()
	h, err := m.Head(t.Context(), alpha)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	return h.Size
}

func TestModelFail(t *testing.T) {
	tests := []struct {
		failure Failure
		want    error
		applied bool
	}{
		{NoFailure, nil, true},
		{Refused, storage.ErrUnavailable, false},
		{RequestLost, storage.ErrUnknown, false},
		{AnswerLost, storage.ErrUnknown, true},
		{Broken, storage.ErrBroken, false},
	}
	for _, test := range tests {
		m, a, b := NewModel(), newAuthor(alpha), newAuthor(beta)
		m.Fail(func(part storage.Batch) Failure {
			if part.Tenant == alpha {
				return test.failure
			}
			return NoFailure
		})
		results := m.Append([]storage.Batch{b.nextBatch(1), a.nextBatch(2)}).Wait()
		wantError(t, results[0], nil)
		wantError(t, results[1], test.want)
		after := m.Reopen()
		if got := sizeOf(t, after) == 2; got != test.applied {
			t.Errorf("failure %d: got applied %t, want %t", test.failure, got, test.applied)
		}
		if test.failure == Broken {
			wantError(t, m.Barrier(t.Context()), storage.ErrBroken)
		}
	}
}

func TestModelHold(t *testing.T) {
	m, a := NewModel(), newAuthor(alpha)
	release := m.Hold()
	b := a.nextBatch(1)
	b.Changes = []storage.Change{putChange("kind", "key", "value", 0)}
	pending := m.Append([]storage.Batch{b})
	if got := sizeOf(t, m); got != 1 {
		t.Errorf("held: got size %d, want 1", got)
	}
	_, err := m.Get(t.Context(), alpha, "kind", "key")
	wantError(t, err, storage.ErrNotFound)
	if got := sizeOf(t, m.Reopen()); got != 0 {
		t.Errorf("after a crash: got size %d, want 0", got)
	}
	release()
	wantError(t, pending.Wait()[0], nil)
	_, err = m.Get(t.Context(), alpha, "kind", "key")
	wantError(t, err, nil)
	if got := sizeOf(t, m.Reopen()); got != 1 {
		t.Errorf("released, after a crash: got size %d, want 1", got)
	}
}

func TestModelBreak(t *testing.T) {
	m, a := NewModel(), newAuthor(alpha)
	durable := m.Append([]storage.Batch{a.nextBatch(1)})
	m.Hold()
	lost := m.Append([]storage.Batch{a.nextBatch(1)})
	m.Break()
	wantError(t, durable.Wait()[0], nil)
	wantError(t, lost.Wait()[0], storage.ErrBroken)
	wantError(t, m.Append([]storage.Batch{a.nextBatch(1)}).Wait()[0], storage.ErrBroken)
	wantError(t, m.Close(), storage.ErrBroken)
	if got := sizeOf(t, m.Reopen()); got != 1 {
		t.Errorf("after a restart: got size %d, want 1", got)
	}
}

func TestModelSync(t *testing.T) {
	m, a := NewModel(), newAuthor(alpha)
	release := m.Hold()
	first, second := m.Append([]storage.Batch{a.nextBatch(1)}), m.Append([]storage.Batch{a.nextBatch(1)})
	m.Sync(first)
	wantError(t, first.Wait()[0], nil)
	if got := sizeOf(t, m.Reopen()); got != 1 {
		t.Errorf("first synced, after a crash: got size %d, want 1", got)
	}
	release()
	wantError(t, second.Wait()[0], nil)
	if got := sizeOf(t, m.Reopen()); got != 2 {
		t.Errorf("released, after a crash: got size %d, want 2", got)
	}
}
