package pgstore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// BenchmarkAppend writes to a server on this machine, whose data is in TMPDIR, with so much memory that only the log is
// written during the benchmark. bytes/event is the size of the events' tables and indexes, wal/event what was written
// to the server's log.
func BenchmarkAppend(b *testing.B) {
	dir, err := os.MkdirTemp("", "bench")
	if err == nil {
		err = os.Chmod(dir, 0o755) // the server runs as another user than root
	}
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := pgtest.StartIn(pgtest.Layout{Data: filepath.Join(dir, "data")}, "shared_buffers=1GB")
	if err != nil {
		b.Fatal(err)
	}
	defer s.Stop()
	storagetest.BenchmarkAppend(b, func(b *testing.B, run func(storage.Engine)) {
		url := fresh(b, s)
		e := open(b, pgstore.Options{URL: url})
		begin := number(b, url, "SELECT (pg_current_wal_lsn() - '0/0')::int8")
		run(e)
		end := number(b, url, "SELECT (pg_current_wal_lsn() - '0/0')::int8")
		b.ReportMetric(float64(end-begin)/float64(b.N), "wal/event")
		b.ReportMetric(float64(number(b, url, "SELECT pg_total_relation_size('event') + pg_total_relation_size('segment')"))/float64(b.N), "bytes/event")
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	})
}

// number returns the result of a query for one number.
func number(t testing.TB, url, query string) (n int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
