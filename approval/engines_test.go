package approval_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// server is the PostgreSQL server of all tests, started for the first that needs it.
var server struct {
	once sync.Once
	*pgtest.Server
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if server.Server != nil {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

var schemas atomic.Int64

// engines are those that the service runs on, each new and empty.
var engines = map[string]func(t testing.TB) storage.Engine{
	"pebble": func(t testing.TB) storage.Engine {
		t.Helper()
		e, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 8 << 20})
		return closing(t, e, err)
	},
	"postgres": func(t testing.TB) storage.Engine {
		t.Helper()
		server.once.Do(func() { server.Server, server.err = pgtest.Start() })
		if server.err != nil {
			t.Fatal(server.err)
		}
		name := fmt.Sprint("t", schemas.Add(1))
		if err := server.Exec("CREATE SCHEMA " + name); err != nil {
			t.Fatal(err)
		}
		e, err := pgstore.Open(t.Context(), pgstore.Options{URL: server.URL("search_path=" + name), Writers: 1, Readers: 4})
		return closing(t, e, err)
	},
}

// closing ends an engine with the test.
func closing(t testing.TB, e storage.Engine, err error) storage.Engine {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}
