package pgstore_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage/pgstore"
)

// node contains the ledgers of a process that shares the database.
type node struct {
	ledgers *log.Ledgers
	anchors *anchor.Folder
	owns    map[id.Tenant]*atomic.Bool
}

func newNode(t *testing.T, store log.Store, keyring *seal.Keyring) *node {
	t.Helper()
	n := &node{owns: map[id.Tenant]*atomic.Bool{red: {}, blue: {}}}
	var err error
	if n.anchors, err = anchor.Open(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	n.ledgers, err = log.Open(t.Context(), log.Options{Store: store, Keyring: keyring, Anchors: n.anchors,
		Owned: func(t id.Tenant) bool { return n.owns[t].Load() }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.ledgers.Close() })
	return n
}

// handOver moves a ledger in an orderly way.
func (n *node) handOver(t *testing.T, tenant id.Tenant, to *node) {
	t.Helper()
	n.owns[tenant].Store(false)
	if err := n.ledgers.Release(t.Context(), func(other id.Tenant) bool { return other == tenant }); err != nil {
		t.Error(err)
	}
	n.tellAnchors(t, to)
	to.owns[tenant].Store(true)
}

func (n *node) tellAnchors(t *testing.T, to *node) {
	t.Helper()
	var notes []anchor.Note
	for note, err := range n.anchors.Notes() {
		if err != nil {
			t.Error(err)
		}
		notes = append(notes, note)
	}
	if err := to.ledgers.ReceiveAnchors(t.Context(), notes); err != nil {
		t.Error(err)
	}
}

// Two processes with separate connections take turns in owning two ledgers while both receive events.
func TestTwoNodes(t *testing.T) {
	url := fresh(t, shared)
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, agent: ledgertest.NewAgent(), keyring: keyring}
	var nodes []*node
	for range 2 {
		e := open(t, pgstore.Options{URL: url, Writers: 2, Readers: 4})
		t.Cleanup(func() { e.Close() })
		w.store = e
		nodes = append(nodes, newNode(t, e, keyring))
	}
	for _, tenant := range []id.Tenant{red, blue} {
		nodes[0].owns[tenant].Store(true)
		if _, err := nodes[0].ledgers.Create(t.Context(), tenant, ledgertest.Genesis(tenant)); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	receipts := map[id.Tenant]map[string]log.Receipt{red: {}, blue: {}}
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for sender := range 6 {
		tenant := []id.Tenant{red, blue}[sender%2]
		senders.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("n-%d-%d", sender, i)
				got, err := nodes[(sender/2+i)%2].ledgers.Append(t.Context(), tenant, w.prepare(tenant, name))
				if err != nil && !errors.Is(err, log.ErrNotOwner) {
					t.Errorf("%s: %v", name, err)
				}
				if err == nil {
					mu.Lock()
					receipts[tenant][name] = got[0]
					mu.Unlock()
				}
			}
		})
	}
	counted := func(tenant id.Tenant) int {
		mu.Lock()
		defer mu.Unlock()
		return len(receipts[tenant])
	}
	for turn := range 12 {
		tenant := []id.Tenant{red, blue}[turn%2]
		from, to := nodes[turn/2%2], nodes[1-turn/2%2]
		for before := counted(tenant); counted(tenant) < before+10; {
			time.Sleep(time.Millisecond) // until the owner has taken some events
		}
		from.handOver(t, tenant, to)
	}
	close(stop)
	senders.Wait()
	for tenant, byName := range receipts {
		s, err := nodes[0].ledgers.State(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range byName {
			if at, err := nodes[0].ledgers.Find(t.Context(), s, id.Event(name)); err != nil || at != r.Index {
				t.Errorf("%s: got index %d, %v; want %d", name, at, err, r.Index)
			}
		}
	}
	result, err := audit.Fsck(t.Context(), w.store, keyring, nodes[0].anchors, func(f audit.Finding) { t.Error(f) })
	if err != nil || result.Findings > 0 {
		t.Errorf("fsck: %+v, %v", result, err)
	}
}
