package pgstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// lockHead makes another session lock the head of a tenant until it ends.
func lockHead(t *testing.T, url string, tenant id.Tenant) (end func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	tx, err := conn.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), "SELECT 1 FROM head WHERE org = $1 FOR UPDATE", int64(tenant))
	must(t, err)
	return func() {
		t.Helper()
		must(t, tx.Rollback(t.Context()))
		must(t, conn.Close(t.Context()))
	}
}

// try appends an event for as long as a busy machine may need.
func (w *world) try(tenant id.Tenant, name string) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	_, err := w.ledgers.Append(ctx, tenant, w.prepare(tenant, name))
	return err
}

// While another session locks the head of one organization, another organization continues, on the same connection or
// another; appends of the first are rejected as not applied, and continue when the lock is released.
func TestLockedOrganization(t *testing.T) {
	for _, writers := range []int{1, 4} {
		t.Run(fmt.Sprint("writers=", writers), func(t *testing.T) {
			url := fresh(t, shared)
			e := open(t, pgstore.Options{URL: url, Writers: writers})
			w := newWorld(t, e)
			w.found()
			w.mustAppend(red, "before")
			w.mustAppend(blue, "before")
			own := e.Stream(red)
			end := lockHead(t, url, red)
			refused := make(chan error, 3)
			for i := range cap(refused) {
				go func() { refused <- w.try(red, fmt.Sprint("locked-", i)) }()
			}
			for i := range 20 {
				if err := w.try(blue, fmt.Sprint("e", i)); err != nil {
					t.Errorf("the other organization: %v", err)
				}
			}
			for range cap(refused) {
				if err := <-refused; !fault.Is(err, fault.Unavailable) || fault.Of(err).RetryAfter == 0 {
					t.Errorf("the locked organization: got %v, want unavailable, and when to try again", err)
				}
			}
			if e.Stream(red) == own || e.Stream(blue) == e.Stream(red) {
				t.Errorf("streams: red %d, blue %d; want red in one of its own", e.Stream(red), e.Stream(blue))
			}
			if got := w.state(red).Size(); got != 1 {
				t.Errorf("got size %d of the locked organization, want 1", got)
			}
			end()
			for i := range cap(refused) {
				if err := w.try(red, fmt.Sprint("locked-", i)); err != nil {
					t.Errorf("after the lock is gone: %v", err)
				}
			}
			if got := w.state(red).Size(); got != id.Index(1+cap(refused)) {
				t.Errorf("got size %d, want %d", got, 1+cap(refused))
			}
			if got := e.Stream(red); got != own {
				t.Errorf("got stream %d after an append that met no lock, want %d", got, own)
			}
			w.keeps(&acknowledgements{})
			w.close()
			closeEngine(t, e)
		})
	}
}

// Of a joint statement, only the locked part is rejected, whatever is locked.
func TestLockedParts(t *testing.T) {
	url := fresh(t, shared)
	e := open(t, pgstore.Options{URL: url, Writers: 1})
	one, two, three := storagetest.NewWriter(1), storagetest.NewWriter(2), storagetest.NewWriter(3)
	wantAll(t, e.Append([]storage.Batch{one.Next(1), two.Next(1), three.Next(1)}).Wait(), nil)
	end := lockHead(t, url, 2)
	locked := two.Next(1)
	got := e.Append([]storage.Batch{one.Next(1), locked, three.Next(1)}).Wait()
	wantAll(t, []error{got[0], got[2]}, nil)
	wantAll(t, got[1:2], storage.ErrUnavailable)
	got = e.Append([]storage.Batch{one.Next(1), locked}).Wait() // aside, and still locked
	wantAll(t, got[:1], nil)
	wantAll(t, got[1:], storage.ErrUnavailable)
	end()
	wantAll(t, e.Append([]storage.Batch{locked}).Wait(), nil)

	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	tx, err := conn.Begin(t.Context())
	must(t, err)
	// A name that another session is about to take: no head is locked.
	b := two.Next(1)
	digest := storage.DigestIdempotencyKey(string(b.Events[0].ID))
	_, err = tx.Exec(t.Context(), "INSERT INTO event (org, idx, name) VALUES (2, 1000, $1)", digest[:])
	must(t, err)
	got = e.Append([]storage.Batch{one.Next(1), b}).Wait()
	wantAll(t, got[:1], nil)
	wantAll(t, got[1:], storage.ErrUnavailable)
	must(t, tx.Rollback(t.Context()))
	must(t, conn.Close(t.Context()))
	wantAll(t, e.Append([]storage.Batch{one.Next(1), b}).Wait(), nil)
	closeEngine(t, e)
}

// A write of a record that another session has locked was also not applied.
func TestLockedRecord(t *testing.T) {
	url := fresh(t, shared)
	e := open(t, pgstore.Options{URL: url})
	put := []storage.Change{{Kind: "kind", Key: "key", Value: []byte("v"), If: storage.AnyVersion}}
	must(t, e.Write(t.Context(), 1, put))
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	tx, err := conn.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), "SELECT 1 FROM record FOR UPDATE")
	must(t, err)
	wantAll(t, []error{e.Write(t.Context(), 1, put)}, storage.ErrUnavailable)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	wantAll(t, []error{e.Write(ctx, 1, put)}, storage.ErrUnknown)
	must(t, tx.Rollback(t.Context()))
	must(t, conn.Close(t.Context()))
	must(t, e.Write(t.Context(), 1, put))
	closeEngine(t, e)
}
