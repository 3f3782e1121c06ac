package exchange_test

import (
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/cluster/exchange"
)

// awaitLag waits until a node has some lag, or none.
func (n *node) awaitLag(some bool) {
	n.group.t.Helper()
	for deadline := time.Now().Add(time.Minute); n.Lag() > 0 != some; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			n.group.t.Fatalf("got a lag of %v, want some: %v", n.Lag(), some)
		}
	}
}

// The lag grows while one node does not accept notes, regardless of the others, and ends when it has them.
func TestLag(t *testing.T) {
	g := &group{t: t}
	a, b, c := g.join("1"), g.join(), g.join()
	b.await("1")
	c.await("1")
	a.awaitLag(false)
	c.down.Store(true)
	a.spread("2")
	b.await("2")
	a.awaitLag(true)
	before := a.Lag()
	a.spread("3")
	b.await("3")
	if got := a.Lag(); got <= before {
		t.Errorf("a later note: got a lag of %v after %v", got, before)
	}
	b.awaitLag(false)
	c.down.Store(false)
	c.await("2", "3")
	a.awaitLag(false)
}

// A node that lacks an optional journal gets the notes of the others, and has no lag. A missing journal that is not
// optional is a failure.
func TestOptionalJournal(t *testing.T) {
	g := &group{t: t}
	more := new(journal)
	if err := more.Put([]byte("a note")); err != nil {
		t.Fatal(err)
	}
	optional := map[string]bool{"more": true}
	a := g.joinWith(func(o *exchange.Options) { o.Journals["more"], o.Optional = more, optional })
	b := g.join("of b")
	a.SpreadAll()
	a.Spread("more", [][]byte{[]byte("another note")})
	a.spread("of a")
	b.await("of a")
	a.awaitLag(false)
	if err := a.Fetch(t.Context(), b.self); err != nil {
		t.Errorf("fetch: %v", err)
	}
	a.await("of b")
	strict := g.joinWith(func(o *exchange.Options) { o.Journals["more"] = more })
	if err := strict.Fetch(t.Context(), b.self); err == nil {
		t.Error("a journal that is not optional")
	}
}
