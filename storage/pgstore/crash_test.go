package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// start runs a server for one test.
func start(t *testing.T, settings ...string) *pgtest.Server {
	t.Helper()
	s, err := pgtest.Start(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A server whose processes are killed during appends, and which recovers, has everything that was acknowledged; the
// ledgers of the same process continue.
func TestKilledServer(t *testing.T) {
	s, url := shared, fresh(t, shared)
	e := open(t, pgstore.Options{URL: url})
	w := newWorld(t, e)
	w.found()
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for range 2 {
			time.Sleep(150 * time.Millisecond)
			if err := errors.Join(s.Kill(), s.Run()); err != nil {
				t.Error(err)
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}()
	acknowledgements := w.traffic(stop)
	t.Logf("%d and %d events acknowledged", len(acknowledgements.acknowledged[red]), len(acknowledgements.acknowledged[blue]))
	w.retry("after")
	w.keeps(acknowledgements)
	after := open(t, pgstore.Options{URL: url})
	w.reopen(after)
	w.keeps(acknowledgements)
	w.close()
	closeEngine(t, e)
	closeEngine(t, after)
}

// retry appends an event to each organization: the first attempts may use connections that a crash has closed. An event
// with an unknown outcome may be stored, so each attempt uses another name.
func (w *world) retry(name string) {
	w.t.Helper()
	for _, tenant := range []id.Tenant{red, blue} {
		var err error
		for i, end := 0, time.Now().Add(time.Minute); ; i++ {
			if err = w.append(tenant, fmt.Sprint(name, i)); err == nil || time.Now().After(end) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// waits selects our backends that wait for a standby; those of autovacuum wait, too.
const waits = "wait_event = 'SyncRep' AND backend_type = 'client backend'"

// awaitAbsent makes all commits of a server wait for a standby that does not exist. The test must undo this with
// awaitNobody before it ends, because other tests use the server.
func awaitAbsent(t *testing.T, s *pgtest.Server) {
	t.Helper()
	t.Cleanup(func() {
		if err := awaitNobody(s); err != nil {
			t.Error(err)
		}
	})
	must(t, s.Exec("ALTER SYSTEM SET synchronous_standby_names = 'absent'", "SELECT pg_reload_conf()"))
	// Commits wait when the checkpointer has read the setting, which no query shows, so one of them shows it.
	config, err := pgx.ParseConfig(s.URL())
	must(t, err)
	config.RuntimeParams["synchronous_commit"] = "on" // whatever the server's default is
	waited := false
	config.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) { waited = true } // that the wait was canceled
	conn, err := pgx.ConnectConfig(t.Context(), config)
	must(t, err)
	done := make(chan error, 1)
	go func() {
		var err error
		for !waited && err == nil {
			_, err = conn.Exec(t.Context(), "SELECT pg_logical_emit_message(true, '', '')")
		}
		done <- errors.Join(err, conn.Close(t.Context()))
	}()
	cancelWaits(t, s, 1)
	must(t, <-done)
}

func awaitNobody(s *pgtest.Server) error {
	return s.Exec("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
}

// A commit whose wait for the standby is canceled is visible but not safe: its append has an unknown outcome, and
// neither a barrier nor a record read passes before the standby has it.
func TestCancelledWait(t *testing.T) {
	s, url := shared, fresh(t, shared)
	e := open(t, pgstore.Options{URL: url})
	one, two := storagetest.NewWriter(1), storagetest.NewWriter(2)
	wantAll(t, e.Append([]storage.Batch{one.Next(1), two.Next(1)}).Wait(), nil)
	wantAll(t, []error{e.Write(t.Context(), 1, []storage.Change{{Kind: "kind", Key: "key", Value: []byte("old")}})}, nil)
	awaitAbsent(t, s)

	plain, changing := one.Next(2), two.Next(2)
	changing.Changes = []storage.Change{{Kind: "kind", Key: "key", Value: []byte("new"), If: storage.AnyVersion}}
	pending := e.Append([]storage.Batch{plain, changing})
	cancelWaits(t, s, 2)
	wantAll(t, pending.Wait(), storage.ErrUnknown)
	if head(t, e, 1) != plain.Head || head(t, e, 2) != changing.Head {
		t.Error("the cancelled commits can't be seen")
	}
	barrier, read := make(chan error, 1), make(chan error, 1)
	go func() { barrier <- e.Barrier(t.Context()) }()
	go func() {
		r, err := e.Get(t.Context(), 2, "kind", "key")
		if err == nil && string(r.Value) != "new" {
			err = errors.New("an old value")
		}
		read <- err
	}()
	must(t, s.Await("SELECT count(*) >= 2 FROM pg_stat_activity WHERE "+waits))
	select {
	case err := <-barrier:
		t.Errorf("the barrier was passed: %v", err)
	case err := <-read:
		t.Errorf("the record was read: %v", err)
	default:
	}
	must(t, awaitNobody(s))
	wantAll(t, []error{<-barrier, <-read}, nil)
	wantAll(t, e.Append([]storage.Batch{one.Next(1), two.Next(1)}).Wait(), nil)
	closeEngine(t, e)
}

// cancelWaits cancels n waits of backends for a standby.
func cancelWaits(t *testing.T, s *pgtest.Server, n int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	conn, err := pgx.Connect(ctx, s.URL())
	must(t, err)
	defer conn.Close(ctx)
	cancelled := []string{} // process and start of the query: a canceled one may be listed once more, when its process does the next
	for ; len(cancelled) < n; time.Sleep(5 * time.Millisecond) {
		rows, err := conn.Query(ctx, `SELECT name, pg_cancel_backend(pid) FROM (SELECT pid, pid || ' ' || query_start AS name FROM pg_stat_activity
			WHERE `+waits+`) AS waiting WHERE name <> ALL ($1)`, cancelled)
		must(t, err)
		var query string
		var done bool
		_, err = pgx.ForEachRow(rows, []any{&query, &done}, func() error {
			if done {
				cancelled = append(cancelled, query)
			}
			return nil
		})
		must(t, err)
	}
}

// Ledgers find a canceled commit again and acknowledge it only when the standby has it.
func TestLedgersAfterACancelledWait(t *testing.T) {
	s, url := shared, fresh(t, shared)
	e := open(t, pgstore.Options{URL: url})
	w := newWorld(t, e)
	w.found()
	w.mustAppend(red, "before")
	shown := w.checkpoint(red)
	awaitAbsent(t, s)
	acknowledged := make(chan error, 1)
	go func() { acknowledged <- w.append(red, "waits") }()
	cancelWaits(t, s, 1)
	must(t, s.Await("SELECT bool_or(wait_event = 'SyncRep' AND query LIKE '%barrier%') FROM pg_stat_activity"))
	select {
	case err := <-acknowledged:
		t.Errorf("acknowledged before the standby has it: %v", err)
	default:
	}
	if got := w.checkpoint(red); got != shown {
		t.Errorf("shown before the standby has it: %+v", got)
	}
	must(t, awaitNobody(s))
	if err := <-acknowledged; err != nil {
		t.Errorf("the event that was stored all the time: %v", err)
	}
	if got := w.state(red).Size(); got != 2 {
		t.Errorf("got size %d, want 2", got)
	}
	w.keeps(&acknowledgements{})
	w.close()
	closeEngine(t, e)
}

// The primary is killed and the standby promoted. With a synchronous standby, nothing acknowledged is lost and no log
// forks.
func TestFailOverToASynchronousStandby(t *testing.T) {
	primary := start(t)
	standby, err := primary.Standby("second")
	must(t, err)
	defer func() { must(t, standby.Stop()) }()
	must(t, primary.Exec("ALTER SYSTEM SET synchronous_standby_names = 'second'", "SELECT pg_reload_conf()"))
	must(t, primary.Await("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))
	if _, err := pgstore.Open(t.Context(), pgstore.Options{URL: standby.URL()}); err == nil {
		t.Error("a standby was opened")
	}
	e := open(t, pgstore.Options{URL: primary.URL()})
	if !e.Synchronous() {
		t.Error("the synchronous standby is not known")
	}
	w := newWorld(t, e)
	w.found()
	stop := make(chan struct{})
	time.AfterFunc(400*time.Millisecond, func() {
		if err := primary.Kill(); err != nil {
			t.Error(err)
		}
		close(stop)
	})
	acknowledgements := w.traffic(stop)
	must(t, standby.Promote())
	t.Logf("%d and %d events acknowledged", len(acknowledgements.acknowledged[red]), len(acknowledgements.acknowledged[blue]))
	after := open(t, pgstore.Options{URL: standby.URL()})
	w.reopen(after)
	w.keeps(acknowledgements)
	w.mustAppend(red, "after")
	w.mustAppend(blue, "after")
	w.keeps(acknowledgements)
	w.close()
	closeEngine(t, e)
	closeEngine(t, after)
}

// With an asynchronous standby, acknowledged data may be lost. This is detected: the ledger is frozen at what it has
// shown, and the other one continues.
func TestFailOverToAnAsynchronousStandby(t *testing.T) {
	primary := start(t)
	standby, err := primary.Standby("second")
	must(t, err)
	defer func() { must(t, standby.Stop()) }()
	e := open(t, pgstore.Options{URL: primary.URL()})
	w := newWorld(t, e)
	w.found()
	w.mustAppend(red, "replicated")
	w.mustAppend(blue, "replicated")
	must(t, primary.Await("SELECT coalesce(bool_and(replay_lsn = pg_current_wal_lsn()), false) FROM pg_stat_replication"))
	must(t, standby.Halt())
	w.mustAppend(red, "lost", "lost-too")
	shown := w.checkpoint(red)
	must(t, primary.Kill())
	must(t, standby.Run())
	must(t, standby.Promote())

	after := open(t, pgstore.Options{URL: standby.URL()})
	w.reopen(after)
	if got := w.state(red).Fault().Level; got != log.Frozen {
		t.Errorf("the ledger that lost events: got level %q, want %q", got, log.Frozen)
	}
	if got := w.checkpoint(red); got != shown {
		t.Errorf("the frozen ledger shows %+v, want %+v", got, shown)
	}
	if err := w.append(red, "on-a-fork"); err == nil {
		t.Error("the frozen ledger took an event")
	}
	w.mustAppend(blue, "goes-on")
	w.close()
	closeEngine(t, e)
	closeEngine(t, after)
}

// As above, and the process dies with the primary, without time to write anything: acknowledged events are lost from
// both ledgers. Without a synchronous standby, the anchor is written before the response, so both ledgers are frozen.
func TestFailOverToAnAsynchronousStandbyAndTheProcessDies(t *testing.T) {
	primary := start(t)
	standby, err := primary.Standby("second")
	must(t, err)
	defer func() { must(t, standby.Stop()) }()
	e := open(t, pgstore.Options{URL: primary.URL()})
	if e.Synchronous() {
		t.Error("an asynchronous standby counts as a synchronous one")
	}
	w := newWorld(t, e)
	w.first = func() bool { return !e.Synchronous() }
	w.reopen(e)
	w.found()
	w.mustAppend(red, "replicated")
	w.mustAppend(blue, "replicated")
	must(t, primary.Await("SELECT coalesce(bool_and(replay_lsn = pg_current_wal_lsn()), false) FROM pg_stat_replication"))
	must(t, standby.Halt())
	acknowledged := map[id.Tenant]id.Index{}
	for i := range 40 {
		for _, tenant := range []id.Tenant{red, blue} {
			w.mustAppend(tenant, fmt.Sprint("lost-", i))
			acknowledged[tenant] = w.state(tenant).Size()
		}
	}
	anchors := t.TempDir() // what the dead process leaves
	must(t, os.CopyFS(anchors, os.DirFS(w.anchors)))
	must(t, primary.Kill())
	must(t, standby.Run())
	must(t, standby.Promote())

	after := open(t, pgstore.Options{URL: standby.URL()})
	died := w.ledgers
	w.store, w.anchors = after, anchors
	w.open()
	for _, tenant := range []id.Tenant{red, blue} {
		s := w.state(tenant)
		if s.Fault().Level != log.Frozen || s.Shown().Size != acknowledged[tenant] {
			t.Errorf("tenant %d lost events: got %+v, showing size %d, want it frozen at %d", tenant, s.Fault(), s.Shown().Size, acknowledged[tenant])
		}
	}
	w.close()
	must(t, died.Close())
	closeEngine(t, e)
	closeEngine(t, after)
}
