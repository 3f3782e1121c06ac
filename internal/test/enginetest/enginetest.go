// Package enginetest opens the storage engines of the service for tests that must hold on every engine. It also simulates
// faults: a process that dies at a write (Mortal), a store that is unavailable for a while (Away), and a disk that loses
// unsynced data (CrashDisk).
//
// A package's tests call Main from TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }
package enginetest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// server is the PostgreSQL server that all tests of a program share. The first test that needs it starts it.
var server struct {
	once sync.Once
	*pgtest.Server
	err error
}

// Main runs the tests, stops the server and returns the exit status.
func Main(m *testing.M) int {
	code := m.Run()
	if server.Server == nil {
		return code
	}
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Each runs a test on every engine. open returns a new, empty store.
func Each(t *testing.T, test func(t *testing.T, open func(testing.TB) storage.Engine)) {
	t.Run("pebble", func(t *testing.T) { test(t, Pebble) })
	t.Run("postgres", func(t *testing.T) { test(t, Postgres) })
}

// Pebble opens an embedded store in memory. It is closed at the end of the test.
func Pebble(t testing.TB) storage.Engine {
	t.Helper()
	e, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 8 << 20})
	return closeAtCleanup(t, e, err)
}

// Postgres opens a store in a schema of its own on the shared server.
func Postgres(t testing.TB) storage.Engine {
	t.Helper()
	server.once.Do(func() { server.Server, server.err = pgtest.Start() })
	if server.err != nil {
		t.Fatal(server.err)
	}
	url, err := server.NewSchema(FillSchema)
	if err != nil {
		t.Fatal(err)
	}
	e, err := pgstore.Open(t.Context(), pgstore.Options{URL: url, Writers: 1, Readers: 4})
	return closeAtCleanup(t, e, err)
}

// FillSchema makes the tables of a store in an empty schema, for pgtest.Server.NewSchema.
func FillSchema(url string) error {
	e, err := pgstore.Open(context.Background(), pgstore.Options{URL: url, Writers: 1, Readers: 1})
	if err != nil {
		return err
	}
	return e.Close()
}

func closeAtCleanup(t testing.TB, e storage.Engine, err error) storage.Engine {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}
