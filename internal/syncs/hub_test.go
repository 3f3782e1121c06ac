package syncs_test

import (
	"testing"

	"github.com/agentledger/agentledger/internal/syncs"
)

func told(news <-chan struct{}) bool {
	select {
	case <-news:
		return true
	default:
		return false
	}
}

// A change notifies those who waited before it, for this object only.
func TestNotify(t *testing.T) {
	var h syncs.Hub[string]
	first, firstDone := h.Subscribe("a")
	second, secondDone := h.Subscribe("a")
	other, otherDone := h.Subscribe("b")
	h.Notify("a")
	later, laterDone := h.Subscribe("a")
	if !told(first) || !told(second) || told(other) || told(later) {
		t.Errorf("after a change of a: got %v, %v, b %v, later %v", told(first), told(second), told(other), told(later))
	}
	firstDone()
	secondDone()
	h.Notify("a")
	if !told(later) {
		t.Error("the end of an older caller takes the news from a later one")
	}
	laterDone()
	if h.Closed() {
		t.Error("closed before Close")
	}
	h.Close()
	if !told(other) || !h.Closed() {
		t.Errorf("after Close: b %v, closed %v", told(other), h.Closed())
	}
	otherDone()
	h.Notify("b")
}
