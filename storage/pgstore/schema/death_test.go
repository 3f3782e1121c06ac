package schema_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/storage/pgstore/schema"
	"github.com/agentledger/agentledger/storage/pgstore/schema/upgradetest"
)

// death ends the connections of a program at one of its statements: before it is sent, or after the server has executed
// it and before the program does anything else.
type death struct {
	at    int64 // statement, from 1
	after bool
	done  atomic.Int64 // statements that were begun
}

func (d *death) TraceQueryStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	n := d.done.Add(1)
	if n > d.at || n == d.at && !d.after {
		_ = conn.PgConn().Conn().Close()
	}
	return ctx
}

func (d *death) TraceQueryEnd(_ context.Context, conn *pgx.Conn, _ pgx.TraceQueryEndData) {
	if d.done.Load() >= d.at {
		_ = conn.PgConn().Conn().Close()
	}
}

// A program that dies at any statement of an expansion or a contraction leaves a schema that the next start upgrades,
// with each step applied once. Until then, older programs get the right error.
func TestDeathAtEachStatement(t *testing.T) {
	v1, v3 := program(t, "v1"), program(t, "v3", upgradetest.Expanding(), upgradetest.Contracting())
	whole := newPlace(t)
	must(t, v1.Bring(t.Context(), whole.config))
	counted := &death{at: 1 << 30}
	whole.config.Tracer = counted
	must(t, v3.Bring(t.Context(), whole.config))
	t.Logf("%d statements", counted.done.Load())
	var all sync.WaitGroup
	atOnce := make(chan struct{}, 20)
	for n := range counted.done.Load() {
		for _, after := range []bool{false, true} {
			atOnce <- struct{}{}
			all.Go(func() {
				defer func() { <-atOnce }()
				dieAt(t, v1, v3, &death{at: n + 1, after: after})
			})
		}
	}
	all.Wait()
}

func dieAt(t *testing.T, v1, v3 *schema.Program, d *death) {
	where := newPlaceOf(t, v1)
	traced := where.config.Copy()
	traced.Tracer = d
	died := v3.Bring(t.Context(), traced)
	number := where.number("SELECT max(version_id) FROM goose_db_version")
	lowest := where.number("SELECT lowest FROM writer")
	if number == v3.Newest() && lowest <= v1.Newest() {
		t.Errorf("statement %d: the schema has version %d, and programs of %d may write", d.at, number, lowest)
	}
	if err := v1.Ask(t.Context(), where.conn); (err == nil) != (lowest <= v1.Newest()) {
		t.Errorf("statement %d: lowest is %d, got %v", d.at, lowest, err)
	}
	must(t, v3.Bring(t.Context(), where.config))
	want := v3.Newest() + 1 // and the line of no step
	if got := where.number("SELECT count(*) FROM goose_db_version"); got != want {
		t.Errorf("statement %d, after %v: %v: got %d lines of versions, want %d", d.at, d.after, died, got, want)
	}
	wantRefused(t, v1.Bring(t.Context(), where.config), "v3")
}

// Programs that start concurrently apply each step once, also next to a program of the previous version.
func TestManyAtOnce(t *testing.T) {
	v2, v3 := program(t, "v2", upgradetest.Expanding()), program(t, "v3", upgradetest.Expanding(), upgradetest.Contracting())
	where := newPlace(t)
	var all sync.WaitGroup
	for range 4 {
		for _, p := range []*schema.Program{v2, v3} {
			all.Go(func() {
				if err := p.Bring(t.Context(), where.config); err != nil && p != v2 {
					t.Errorf("%s: %v", p.Version, err)
				}
			})
		}
	}
	all.Wait()
	if got, want := where.number("SELECT count(*) FROM goose_db_version"), v3.Newest()+1; got != want {
		t.Errorf("got %d lines of versions, want %d", got, want)
	}
	must(t, v2.Bring(t.Context(), where.config))
}

// A step whose tables are used by another session waits without blocking others for long, and is applied afterwards.
func TestStepBehindALongRead(t *testing.T) {
	v1, v2 := program(t, "v1"), program(t, "v2", upgradetest.Expanding())
	where := newPlace(t)
	must(t, v1.Bring(t.Context(), where.config))
	reader, err := pgx.ConnectConfig(t.Context(), where.config)
	must(t, err)
	defer reader.Close(t.Context())
	tx, err := reader.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), "SELECT count(*) FROM event")
	must(t, err)
	brought := make(chan error, 1)
	go func() { brought <- v2.Bring(t.Context(), where.config) }()
	for where.number("SELECT count(*) FROM goose_lock WHERE locked") == 0 {
	}
	for range 50 { // others get their locks all the time
		where.exec("INSERT INTO event (org, idx, name) VALUES (1, 1, 'a') ON CONFLICT DO NOTHING")
		where.exec("UPDATE head SET size = 1")
	}
	select {
	case err := <-brought:
		t.Fatalf("the step was taken under a reader: %v", err)
	default:
	}
	must(t, tx.Rollback(t.Context()))
	must(t, <-brought)
}
