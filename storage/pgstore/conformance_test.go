package pgstore_test

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// shared is the server of all tests that do not stop it.
var shared *pgtest.Server

func TestMain(m *testing.M) {
	var err error
	if shared, err = pgtest.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := errors.Join(shared.CheckRunning(), shared.Stop()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var schemas atomic.Int64

// fresh creates an empty schema and returns its URL.
func fresh(t testing.TB, s *pgtest.Server) string {
	t.Helper()
	name := fmt.Sprint("s", schemas.Add(1))
	if err := s.Exec("CREATE SCHEMA " + name); err != nil {
		t.Fatal(err)
	}
	return s.URL("search_path=" + name)
}

func open(t testing.TB, o pgstore.Options) *pgstore.Engine {
	t.Helper()
	e, err := pgstore.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Open {
		t.Helper()
		url, err := shared.NewSchema(enginetest.FillSchema)
		if err != nil {
			t.Fatal(err)
		}
		return func(t *testing.T) storagetest.Engine {
			return open(t, pgstore.Options{URL: url, Writers: 2, Readers: 4})
		}
	})
}
