package archive_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive"
	"github.com/agentledger/agentledger/storage/archive/objects"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// server is the database server of all tests.
var server *pgtest.Server

func TestMain(m *testing.M) {
	var err error
	if server, err = pgtest.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := errors.Join(server.CheckRunning(), server.Stop()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var schemas atomic.Int64

// openPebble returns a function that opens a new embedded store, any number of times.
func openPebble(*testing.T) func(t testing.TB) archive.Inner {
	fs := vfs.NewMem()
	return func(t testing.TB) archive.Inner {
		t.Helper()
		e, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: fs, CacheBytes: 8 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}

// openPostgres returns a function that opens a new store in the database.
func openPostgres(t *testing.T) func(t testing.TB) archive.Inner {
	t.Helper()
	url, err := server.NewSchema(enginetest.FillSchema)
	if err != nil {
		t.Fatal(err)
	}
	return func(t testing.TB) archive.Inner {
		t.Helper()
		e, err := pgstore.Open(t.Context(), pgstore.Options{URL: url, Writers: 2, Readers: 4})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}

// each runs a test on both engines. open opens the store of the test.
func each(t *testing.T, test func(t *testing.T, open func(testing.TB) archive.Inner)) {
	t.Run("pebble", func(t *testing.T) { test(t, openPebble(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, openPostgres(t)) })
}

func newEngine(t testing.TB, o archive.Options) *archive.Engine {
	t.Helper()
	e, err := archive.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// eager archives everything possible after each append.
type eager struct {
	*archive.Engine
	t testing.TB
}

func (e eager) Append(batches []storage.Batch) storage.Pending {
	return eagerPending{e.Engine.Append(batches), e}
}

type eagerPending struct {
	storage.Pending
	engine eager
}

func (p eagerPending) Wait() []error {
	results := p.Pending.Wait()
	for _, err := range results {
		if err == nil {
			if err := p.engine.Pass(context.Background()); err != nil && !errors.Is(err, storage.ErrUnavailable) {
				p.engine.t.Errorf("archive: %v", err)
			}
			break
		}
	}
	return results
}

func TestConformance(t *testing.T) {
	each(t, func(t *testing.T, _ func(testing.TB) archive.Inner) {
		fresh, width := openPebble, id.Index(2)
		if t.Name() == "TestConformance/postgres" {
			fresh, width = openPostgres, 32
		}
		moved := 0
		storagetest.Run(t, func(t *testing.T) storagetest.Open {
			open, store := fresh(t), newMemory()
			t.Cleanup(func() { moved += len(store.names()) })
			return func(t *testing.T) storagetest.Engine {
				o := archive.Options{Engine: open(t), Objects: store, CacheBytes: 2000}
				return eager{newEngine(t, o.WithWidth(width)), t}
			}
		})
		if moved < 100 {
			t.Errorf("got %d objects in all stores together, want 100 or more", moved)
		}
	})
}

var _ objects.Store = (*memory)(nil)
