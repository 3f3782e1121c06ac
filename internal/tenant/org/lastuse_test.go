package org_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

func (w *world) lastUse(orgs *org.Orgs, tenant id.Tenant) id.Instant {
	w.t.Helper()
	key, err := orgs.ShowIngestKey(w.t.Context(), tenant, w.keyID[tenant])
	if err != nil {
		w.t.Fatal(err)
	}
	listed, err := orgs.ListIngestKeys(w.t.Context(), tenant)
	if err != nil || len(listed) != 1 || listed[0].LastUsedAt != key.LastUsedAt {
		w.t.Fatalf("got %+v, %v, want one that was used at %s", listed, err, key.LastUsedAt)
	}
	return key.LastUsedAt
}

func (w *world) use(tenant id.Tenant) {
	w.t.Helper()
	if _, err := w.orgs.Authenticate(w.t.Context(), w.token[tenant].Reveal()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) store() {
	w.t.Helper()
	if err := w.orgs.StoreLastUses(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// The last use of a key is shown to the minute at once, and to another process once it is stored.
func TestLastUse(t *testing.T) {
	w := newWorld(t)
	if got := w.lastUse(w.orgs, red); got != 0 {
		t.Errorf("never used: got %s", got)
	}
	w.Pass(90 * time.Second)
	first := id.InstantOf(w.Clock().Truncate(time.Minute))
	w.use(red)
	if got := w.lastUse(w.orgs, red); got != first {
		t.Errorf("got %s, want %s", got, first)
	}
	if got := w.lastUse(w.open(), red); got != 0 {
		t.Errorf("not stored yet: got %s", got)
	}
	w.store()
	w.use(red) // in the same minute
	if got := w.lastUse(w.open(), red); got != first {
		t.Errorf("got %s, want %s", got, first)
	}
	w.Pass(time.Minute)
	w.use(red)
	w.store()
	if got, want := w.lastUse(w.open(), red), first+60_000; got != want {
		t.Errorf("a minute later: got %s, want %s", got, want)
	}
	if got := w.lastUse(w.orgs, blue); got != 0 {
		t.Errorf("blue: got %s", got)
	}
	if got := len(w.Audit(t, red)); got != 0 {
		t.Errorf("a use is stated: got %d statements", got)
	}
}

// countingWrites counts the writes of records.
type countingWrites struct {
	storage.RecordStore
	writes int
	broken bool
}

func (c *countingWrites) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	if c.writes++; c.broken {
		return context.DeadlineExceeded
	}
	return c.RecordStore.Write(ctx, t, changes)
}

// However often a key is used in a minute, it is written once. A failed write is repeated.
func TestLastUseIsWrittenOnceAMinute(t *testing.T) {
	w := newWorld(t)
	store := &countingWrites{RecordStore: w.Store, broken: true}
	orgs, err := org.New(org.Options{Records: store, Events: w.SystemEvents, Ledgers: w.Ledgers, Clock: w.Clock})
	if err != nil {
		t.Fatal(err)
	}
	w.orgs = orgs
	for range 100 {
		w.use(red)
		w.use(blue)
	}
	if err := orgs.StoreLastUses(t.Context()); err == nil || store.writes != 2 {
		t.Errorf("broken store: got %v and %d writes, want 2", err, store.writes)
	}
	store.writes, store.broken = 0, false
	w.store()
	w.use(red)
	w.store()
	if store.writes != 2 {
		t.Errorf("got %d writes, want one for each organization", store.writes)
	}
	if got, want := w.lastUse(w.open(), blue), id.InstantOf(w.Clock().Truncate(time.Minute)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A service that stops stores the last uses that it has in memory.
func TestLastUseAtTheEnd(t *testing.T) {
	w := newWorld(t)
	w.use(red)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.orgs.RunLastUses(ctx, slog.New(slog.DiscardHandler))
	if got := w.lastUse(w.open(), red); got == 0 {
		t.Error("the use was lost")
	}
}

func TestChangeIngestKey(t *testing.T) {
	w := newWorld(t)
	name, yes := "Zapier", true
	change := func(tenant id.Tenant, keyID string, p org.KeyPatch) error {
		_, err := w.orgs.ChangeIngestKey(t.Context(), tenant, ann, keyID, p)
		return err
	}
	w.use(red) // in memory only
	for range 2 {
		if err := change(red, w.keyID[red], org.KeyPatch{Name: &name, Asks: &yes}); err != nil {
			t.Fatal(err)
		}
	}
	caller, err := w.orgs.Authenticate(t.Context(), w.token[red].Reveal())
	if err != nil || !caller.Asks {
		t.Errorf("got %+v, %v", caller, err)
	}
	statements := w.Audit(t, red)
	if want := `{"asks":true,"key_id":"` + w.keyID[red] + `","name":"Zapier"}`; len(statements) != 1 ||
		statements[0].Kind != "ledger_ingest_key_changed" || statements[0].Principal != ann || statements[0].Payload != want {
		t.Errorf("got %+v, want %s", statements, want)
	}
	key, _ := w.create(red, org.WantedKey{Name: "narrow", Scopes: 1 << org.ScopeEvaluate})
	control := "a\x00"
	const scopes = "asks requires the scopes evaluate and approvals"
	refused(t, "blue", change(blue, w.keyID[red], org.KeyPatch{Name: &name}), fault.NotFound, "Not found")
	refused(t, "scopes", change(red, key.ID, org.KeyPatch{Asks: &yes}), fault.Invalid, scopes)
	refused(t, "name", change(red, key.ID, org.KeyPatch{Name: &control}), fault.Invalid, "name must not have control characters")
	_, _, err = w.orgs.CreateIngestKey(t.Context(), red, ann, org.WantedKey{Name: "n", Scopes: 1 << org.ScopeApprovals, Asks: true})
	refused(t, "made so", err, fault.Invalid, scopes)
	if err := w.orgs.RevokeIngestKey(t.Context(), red, ann, key.ID); err != nil {
		t.Fatal(err)
	}
	refused(t, "revoked", change(red, key.ID, org.KeyPatch{Name: &name}), fault.Conflict, "The ingest key is revoked")
}

// elsewhere is the ledgers of a node that does not own Blue.
type elsewhere struct{ org.Ledgers }

func (e elsewhere) State(ctx context.Context, t id.Tenant) (*log.State, error) {
	if t == blue {
		return nil, fmt.Errorf("read: %w", log.ErrNotOwner)
	}
	return e.Ledgers.State(ctx, t)
}

func (e elsewhere) LastShown(ctx context.Context, t id.Tenant) (*log.State, error) {
	return e.Ledgers.State(ctx, t)
}

// A node that passed a request on leaves the last use of its key to the owner, and does not retry.
func TestLastUseIsTheOwners(t *testing.T) {
	w := newWorld(t)
	store := &countingWrites{RecordStore: w.Store}
	orgs, err := org.New(org.Options{Records: store, Events: w.SystemEvents, Ledgers: elsewhere{w.Ledgers}, Clock: w.Clock})
	if err != nil {
		t.Fatal(err)
	}
	w.orgs = orgs
	w.use(red)
	w.use(blue)
	w.store()
	w.store()
	if store.writes != 1 {
		t.Errorf("got %d writes, want that of the own organization", store.writes)
	}
}
