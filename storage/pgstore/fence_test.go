package pgstore_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/schema"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// An append that waits while the lowest schema is raised is not applied, for both organizations, alone and together.
// After that, every call of the engine fails, and OnOutdated is called once. The store of another service continues.
func TestOutdatedProgram(t *testing.T) {
	url, other := fresh(t, shared), fresh(t, shared)
	var acknowledgements atomic.Int64
	e := open(t, pgstore.Options{URL: url, Version: "v1", Writers: 1, OnOutdated: func(err error) {
		acknowledgements.Add(1)
		if !errors.Is(err, schema.ErrRefused) {
			t.Errorf("got %v, want a refusal", err)
		}
	}})
	neighbour := open(t, pgstore.Options{URL: other})
	one, two, far := storagetest.NewWriter(1), storagetest.NewWriter(2), storagetest.NewWriter(1)
	wantAll(t, e.Append([]storage.Batch{one.Next(2), two.Next(2)}).Wait(), nil)
	wantAll(t, neighbour.Append([]storage.Batch{far.Next(2)}).Wait(), nil)
	must(t, e.Write(t.Context(), red, []storage.Change{{Kind: "k", Key: "a", Value: []byte("v")}}))

	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(t.Context())
	tx, err := conn.Begin(t.Context())
	must(t, err)
	for _, sql := range []string{"LOCK TABLE writer IN ACCESS EXCLUSIVE MODE",
		"UPDATE writer SET lowest = 1000, described = 1000, version = 'v9'"} {
		_, err = tx.Exec(t.Context(), sql)
		must(t, err)
	}
	created := storagetest.NewWriter(3)
	together := e.Append([]storage.Batch{one.Next(1), two.Next(3)})
	alone := e.Append([]storage.Batch{created.Next(1)})
	must(t, shared.Await("SELECT count(*) >= 1 FROM pg_locks WHERE NOT granted"))
	must(t, tx.Commit(t.Context()))
	for _, got := range append(together.Wait(), alone.Wait()...) {
		if !errors.Is(got, storage.ErrUnavailable) || !errors.Is(got, schema.ErrRefused) {
			t.Errorf("append: got %v, want the refusal", got)
		}
	}
	if got := number(t, url, "SELECT sum(size) FROM head"); got != 4 {
		t.Errorf("the ledgers have %d events, want 4 as before", got)
	}
	_, read := e.Head(t.Context(), red)
	write := e.Write(t.Context(), red, []storage.Change{{Kind: "k", Key: "b", Value: []byte("v")}})
	for name, err := range map[string]error{"read": read, "write": write,
		"append": e.Append([]storage.Batch{one.Next(1)}).Wait()[0]} {
		if !errors.Is(err, schema.ErrRefused) {
			t.Errorf("%s: got %v, want the refusal", name, err)
		}
	}
	if got := acknowledgements.Load(); got != 1 {
		t.Errorf("the program was told %d times, want once", got)
	}
	wantAll(t, neighbour.Append([]storage.Batch{far.Next(2)}).Wait(), nil)
	closeEngine(t, neighbour)
	closeEngine(t, e)
}

// An idle program detects within a short time that it is too old, even if it only reads.
func TestIdleOutdatedProgram(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		url := fresh(t, shared)
		must(t, pgstore.Migrate(t.Context(), url))
		acknowledgements := make(chan error, 1)
		e := open(t, pgstore.Options{URL: url, ReadOnly: readOnly, OnOutdated: func(err error) { acknowledgements <- err }})
		number(t, url, "UPDATE writer SET lowest = 1000 RETURNING 1")
		if err := <-acknowledgements; !errors.Is(err, schema.ErrRefused) {
			t.Errorf("got %v, want a refusal", err)
		}
		closeEngine(t, e)
	}
}
