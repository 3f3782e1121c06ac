package directory_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/operate/directory"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage"
)

// without is the ledgers of a node that does not own one of them.
type without struct {
	directory.Ledgers
	other id.Tenant
}

func (l without) State(ctx context.Context, t id.Tenant) (*log.State, error) {
	if t == l.other {
		return nil, log.ErrNotOwner
	}
	return l.Ledgers.State(ctx, t)
}

func (l without) Freeze(ctx context.Context, t id.Tenant, reason string) error {
	if t == l.other {
		return log.ErrNotOwner
	}
	return l.Ledgers.Freeze(ctx, t, reason)
}

// nodes is two nodes on one store: the first owns Blue, the second owns all others and writes the directory.
type nodes struct {
	one, two *world
	journal  *cluster.Journal // the second node's
}

func newNodes(t *testing.T) *nodes {
	t.Helper()
	n := &nodes{one: newWorld(t), journal: cluster.NewJournal()}
	n.two = &world{Service: n.one.Again(t, n.one.Engine), TB: t}
	n.two.Store = n.one.Store
	n.two.Directory = directory.New(directory.Options{Ledgers: without{n.two.Ledgers, ledgertest.Blue}, Store: n.one.Store,
		Events: n.two.SystemEvents, Tenant: tenant, Keeps: func() bool { return true }, Others: n.journal.Grown,
		Interval: time.Millisecond, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	return n
}

// tell passes news to the second node.
func (n *nodes) tell(notes ...[]byte) {
	n.two.Helper()
	if err := n.journal.Put(notes...); err != nil {
		n.two.Fatal(err)
	}
}

// anchorBlue passes the anchor of Blue to the second node.
func (n *nodes) anchorBlue() {
	n.two.Helper()
	note := anchor.Note{Text: n.one.State(n.one, ledgertest.Blue).Checkpoint()}
	if err := n.two.Ledgers.ReceiveAnchors(n.two.Context(), []anchor.Note{note}); err != nil {
		n.two.Fatal(err)
	}
}

func (n *nodes) wantBlueListed() {
	n.two.Helper()
	s := n.one.State(n.one, ledgertest.Blue)
	listed, err := n.two.Find(n.two.Context(), s.Identity().Origin)
	if err != nil || listed.Size != s.Size() || listed.Root != s.Root() {
		n.two.Errorf("got %+v, %v, want %d", listed, err, s.Size())
	}
}

// A log of another node is listed with the state of its anchor, once both the news of it and the anchor have arrived,
// in either order.
func TestLogsOfAnotherNode(t *testing.T) {
	n, grown := newNodes(t), cluster.NoteOf(cluster.Grown, ledgertest.Blue)
	n.one.say(ledgertest.Blue, 3)
	n.two.say(ledgertest.Red, 2)
	n.two.publish(1)
	n.two.newest(ledgertest.Red)
	n.tell(grown)
	n.two.publish(0)
	n.anchorBlue()
	n.two.publish(1)
	n.wantBlueListed()
	n.one.say(ledgertest.Blue, 1)
	n.tell(grown)
	n.two.publish(0)
	n.anchorBlue()
	n.two.publish(1)
	n.wantBlueListed()
	n.two.publish(0)
	n.one.say(ledgertest.Blue, 1)
	n.anchorBlue()
	for note := range n.journal.Notes() {
		n.tell(note)
	}
	n.two.publish(1)
	n.wantBlueListed()
	if got := n.two.State(t, tenant).Size(); got != 4 {
		t.Errorf("the directory has %d events, want 4", got)
	}
}

// A log of another node that contradicts its listing is not listed. Its node freezes it, and the others continue.
func TestContradictionOnAnotherNode(t *testing.T) {
	n := newNodes(t)
	keeps := false
	one := directory.New(directory.Options{Ledgers: without{n.one.Ledgers, tenant}, Store: n.one.Store, Events: n.one.SystemEvents,
		Tenant: tenant, Keeps: func() bool { return keeps }, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	n.one.say(ledgertest.Blue, 2)
	n.two.say(ledgertest.Red, 1)
	if err := one.Round(t.Context()); err != nil {
		t.Errorf("a log that was never listed: %v", err)
	}
	forged, err := json.Marshal(directory.Entry{Event: "x", Size: 1, Root: id.Hash{1}})
	if err != nil {
		t.Fatal(err)
	}
	key := ledgertest.Organization(ledgertest.Blue).String()
	change := storage.Change{Kind: "directory_listed", Key: key, Value: forged, If: storage.AnyVersion}
	if err := n.one.Store.Write(t.Context(), tenant, []storage.Change{change}); err != nil {
		t.Fatal(err)
	}
	n.anchorBlue()
	n.tell(cluster.NoteOf(cluster.Grown, ledgertest.Blue))
	n.two.publish(1)
	n.two.newest(ledgertest.Red)
	if got := n.one.State(t, ledgertest.Blue).Fault().Level; got == log.Frozen {
		t.Error("the node that does not own the log has frozen it")
	}
	n.one.say(ledgertest.Blue, 1)
	if err := one.Round(t.Context()); err != nil {
		t.Error(err)
	}
	if got := n.one.State(t, ledgertest.Blue).Fault().Level; got != log.Frozen {
		t.Errorf("the owner: got level %q", got)
	}
}

// A node that takes over the directory lists the logs that moved before, on any node. One that loses it lists nothing
// more.
func TestDirectoryChangesItsNode(t *testing.T) {
	w := newWorld(t)
	keeps := false
	w.Directory = directory.New(directory.Options{Ledgers: w.Ledgers, Store: w.Store, Events: w.SystemEvents, Tenant: tenant,
		Keeps: func() bool { return keeps }})
	listed := func() (found []id.Tenant) {
		t.Helper()
		if err := w.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, each := range []id.Tenant{ledgertest.Red, ledgertest.Blue} {
			e, err := w.Find(t.Context(), ledgertest.Origin(each))
			if err != nil && !fault.Is(err, fault.NotFound) {
				t.Fatal(err)
			}
			if e.Size > 0 && e.Size == w.State(t, each).Size() {
				found = append(found, each)
			}
		}
		return found
	}
	w.say(ledgertest.Red, 1)
	if got := listed(); got != nil {
		t.Errorf("before: got %v", got)
	}
	keeps = true
	if got := listed(); !slices.Equal(got, []id.Tenant{ledgertest.Red}) {
		t.Errorf("it got the directory: got %v", got)
	}
	keeps = false
	w.say(ledgertest.Red, 1)
	w.say(ledgertest.Blue, 1)
	if got := listed(); got != nil {
		t.Errorf("it lost the directory: got %v", got)
	}
	keeps = true
	if got := listed(); !slices.Equal(got, []id.Tenant{ledgertest.Red, ledgertest.Blue}) {
		t.Errorf("it got the directory again: got %v", got)
	}
}
