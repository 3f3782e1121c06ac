package log_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// reverify runs the background re-verification until a condition holds.
func (w *world) reverify(until func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	go func() {
		defer cancel()
		for !until() && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}()
	w.auditor.Run(ctx, time.Millisecond)
	if !until() {
		w.t.Fatal("the re-verification did not get there")
	}
}

func (w *world) reverified(tenant id.Tenant) log.Reverified {
	w.t.Helper()
	v, err := w.ledgers.Reverified(w.t.Context(), tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func TestReverifyReachesTheHeads(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.burst(300, "e")
	w.reverify(func() bool { return w.reverified(red).To == 300 && w.reverified(blue).To == 300 })
	w.burst(20, "more")
	w.reverify(func() bool { return w.reverified(red).To == 320 })
	if f := w.state(red).Fault(); f.Level != log.Healthy {
		t.Errorf("got fault %+v", f)
	}
}

// Each kind of damage is found, named and has its consequence; the other
// organization has none.
func TestDamageIsFound(t *testing.T) {
	flip := func(b []byte) {
		if len(b) > 0 { // a read without this part
			b[len(b)/2] ^= 1
		}
	}
	tests := []struct {
		name   string
		damage func(e *storage.Event)
		place  string
		level  log.Level
	}{
		{"entry names another record", func(e *storage.Event) { e.Entry.Record[0] ^= 1 }, "entry", log.Frozen},
		{"entry names another entry", func(e *storage.Event) { e.Entry.Prev[0] ^= 1 }, "entry", log.Frozen},
		{"record differs", func(e *storage.Event) { flip(e.Record) }, "record 17", log.Suspect},
		{"envelope differs", func(e *storage.Event) { flip(e.Envelope) }, "envelope 17", log.Suspect},
		{"envelope of another event", func(e *storage.Event) { e.Envelope = []byte(`{}`) }, "envelope 17", log.Suspect},
		{"event id differs", func(e *storage.Event) { e.ID = "other" }, "record 17", log.Suspect},
		{"agent column differs", func(e *storage.Event) { e.Agent = "other" }, "record 17", log.Suspect},
		{"tool column differs", func(e *storage.Event) { e.Tool = "other" }, "envelope 17", log.Suspect},
		{"time column differs", func(e *storage.Event) { e.ReceivedAt++ }, "record 17", log.Suspect},
		{"decision column differs", func(e *storage.Event) { e.Effective = id.Deny }, "record 17", log.Suspect},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := &damaged{Model: storagetest.NewModel()}
			w := newWorld(t, store)
			w.burst(40, "e")
			store.event = func(tenant id.Tenant, e *storage.Event) {
				if tenant == red && e.Index == 17 {
					tt.damage(e)
				}
			}
			findings := w.fsck(store)
			if len(findings) == 0 {
				t.Fatal("fsck found nothing")
			}
			if !slices.ContainsFunc(findings, func(f audit.Finding) bool { return strings.HasPrefix(f.Place, tt.place) && f.Level == tt.level }) {
				t.Errorf("fsck: got %v, want %s at %q", findings, tt.level, tt.place)
			}
			for _, f := range findings {
				if f.Tenant != red {
					t.Errorf("fsck found a fault in the other organization: %v", f)
				}
			}
			w.reverify(func() bool { return w.state(red).Fault().Level != log.Healthy && w.reverified(blue).To == 40 })
			f := w.state(red).Fault()
			if f.Level != tt.level {
				t.Errorf("re-verification: got %+v, want level %s", f, tt.level)
			}
			if tt.level == log.Frozen {
				w.refuses(red, "frozen")
			} else if r, err := w.append(red, "after"); err != nil || r.ChainValid {
				t.Errorf("append to a suspect ledger: chain_valid %v, %v; want false", r.ChainValid, err)
			}
			if r, err := w.append(blue, "after"); err != nil || !r.ChainValid {
				t.Errorf("the other organization: chain_valid %v, %v", r.ChainValid, err)
			}
			store.event = nil
			w.reopen(store)
			if got := w.state(red).Fault().Level; got != tt.level {
				t.Errorf("after a restart: got level %q, want %q", got, tt.level)
			}
		})
	}
}

func TestDamagedLastEntryIsFoundByTheNextBatch(t *testing.T) {
	store := &damaged{Model: storagetest.NewModel()}
	w := newWorld(t, store)
	w.mustAppend(red, "a", "b")
	store.event = func(tenant id.Tenant, e *storage.Event) {
		if tenant == red && e.Index == 1 {
			e.Entry.Record[5] ^= 1
		}
	}
	r, err := w.append(red, "c")
	if err != nil || r.ChainValid {
		t.Errorf("got chain_valid %v, %v; want false", r.ChainValid, err)
	}
	w.refuses(red, "frozen")
	w.mustAppend(blue, "a")
}

// A store that does not answer in time, or not at all, is no damage of the record.
func TestSlowStoreLeavesTheChainValid(t *testing.T) {
	store := &damaged{Model: storagetest.NewModel()}
	w := newWorld(t, store)
	w.mustAppend(red, "a")
	for name, err := range map[string]error{"slow": context.DeadlineExceeded, "away": storage.ErrUnavailable} {
		store.slow = fmt.Errorf("read: %w", err)
		r, err := w.append(red, name)
		if err != nil || !r.ChainValid {
			t.Errorf("%s: got chain_valid %v, %v; want true", name, r.ChainValid, err)
		}
	}
	store.slow = nil
	if r, err := w.append(red, "again"); err != nil || !r.ChainValid || w.state(red).Fault().Level != log.Healthy {
		t.Errorf("afterwards: got chain_valid %v, fault %+v, %v", r.ChainValid, w.state(red).Fault(), err)
	}
}

func TestDamagedEndIsFoundAtStart(t *testing.T) {
	store := &damaged{Model: storagetest.NewModel()}
	w := newWorld(t, store)
	w.mustAppend(red, "a", "b", "c")
	store.event = func(tenant id.Tenant, e *storage.Event) {
		if tenant == red && e.Index == 1 {
			e.Entry.Record[5] ^= 1
		}
	}
	w.reopen(store)
	w.refuses(red, "frozen")
	w.mustAppend(blue, "a")
}
