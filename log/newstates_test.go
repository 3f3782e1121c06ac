package log_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// taken returns what moved, in order.
func taken(m *log.Moves) []id.Tenant {
	all := m.Take()
	slices.Sort(all)
	return all
}

func TestMoves(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(red, "before")
	first := w.ledgers.Moves()
	if got := taken(first); len(got) > 0 {
		t.Errorf("what moved before: got %v", got)
	}
	select {
	case <-first.Ready():
		t.Error("ready for nothing")
	default:
	}
	for i := range 5 {
		w.mustAppend(red, fmt.Sprint("red-", i))
	}
	second := w.ledgers.Moves()
	w.mustAppend(blue, "blue")
	<-first.Ready()
	if got, want := taken(first), []id.Tenant{red, blue}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	<-second.Ready()
	if got, want := taken(second), []id.Tenant{blue}; !slices.Equal(got, want) {
		t.Errorf("the second: got %v, want %v", got, want)
	}
	if got := taken(first); len(got) > 0 {
		t.Errorf("taken twice: %v", got)
	}
	w.mustAppend(red, "again")
	<-first.Ready()
	if got, want := taken(first), []id.Tenant{red}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFreezeForWhatIsKnownOutside(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(red, "one")
	w.mustAppend(blue, "one")
	if err := w.ledgers.Freeze(t.Context(), red, "somebody knows more"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := w.state(red)
		if f := s.Fault(); f.Level != log.Frozen || f.Reason != "somebody knows more" || s.Detached() || s.Size() != 1 {
			t.Errorf("got %+v, detached %v, size %d", f, s.Detached(), s.Size())
		}
		w.refuses(red, "frozen")
		w.reopen(w.store)
	}
	w.mustAppend(blue, "two")
	if err := w.ledgers.Freeze(t.Context(), 77, "nobody"); err == nil {
		t.Error("no such ledger")
	}
}
