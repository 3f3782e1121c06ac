package syncs_test

import (
	"slices"
	"testing"

	"github.com/agentledger/agentledger/internal/syncs"
)

func TestInbox(t *testing.T) {
	b := syncs.NewInbox[int](2)
	want := func(what string, wantMissed bool, wantKeys ...int) {
		t.Helper()
		ready := len(b.Ready()) > 0
		keys, missed := b.Take()
		slices.Sort(keys)
		if !slices.Equal(keys, wantKeys) || missed != wantMissed {
			t.Errorf("%s: got %v, missed %v, want %v, %v", what, keys, missed, wantKeys, wantMissed)
		}
		if !ready && (missed || len(keys) > 0) {
			t.Errorf("%s: the reader was not notified", what)
		}
		if ready {
			<-b.Ready()
		}
	}
	want("empty", false)
	if !b.Add(1) || !b.Add(2) || !b.Add(1) {
		t.Error("a key was refused")
	}
	want("two keys", false, 1, 2)
	b.Add(1)
	b.Add(2)
	if b.Add(3) || !b.Add(2) {
		t.Error("a full inbox took another key, or lost one")
	}
	want("full", true, 1, 2)
	b.Miss()
	want("missed", true)
	want("taken", false)
}

func TestUnboundedInbox(t *testing.T) {
	b := syncs.NewInbox[int](0)
	for i := range 1000 {
		b.Add(i)
	}
	if keys, missed := b.Take(); len(keys) != 1000 || missed {
		t.Errorf("got %d keys, missed %v", len(keys), missed)
	}
}

func TestNilInbox(t *testing.T) {
	var none *syncs.Inbox[int]
	if keys, missed := none.Take(); none.Ready() != nil || keys != nil || missed {
		t.Errorf("got %v, %v", keys, missed)
	}
}
