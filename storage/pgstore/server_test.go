package pgstore_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// wantRefused checks that a store cannot be opened, and that the error names the reason.
func wantRefused(t *testing.T, url, says string) {
	t.Helper()
	e, err := pgstore.Open(t.Context(), pgstore.Options{URL: url})
	if err == nil {
		closeEngine(t, e)
	}
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want it to name %s", err, says)
	}
}

// A server that could lose acknowledged data is rejected, at the start and on every later connection.
func TestUnsafeServers(t *testing.T) {
	for _, setting := range []string{"fsync", "full_page_writes"} {
		t.Run(setting, func(t *testing.T) {
			url := fresh(t, shared)
			e := open(t, pgstore.Options{URL: url})
			must(t, shared.Exec("ALTER SYSTEM SET "+setting+" = off", "SELECT pg_reload_conf()"))
			must(t, shared.Await("SELECT current_setting('"+setting+"') = 'off'"))
			wantRefused(t, url, setting)
			wantAll(t, e.Append([]storage.Batch{storagetest.NewWriter(1).Next(1)}).Wait(), storage.ErrUnavailable)
			must(t, shared.Exec("ALTER SYSTEM RESET "+setting, "SELECT pg_reload_conf()"))
			must(t, shared.Await("SELECT current_setting('"+setting+"') = 'on'"))
			wantAll(t, e.Append([]storage.Batch{storagetest.NewWriter(1).Next(1)}).Wait(), nil)
			closeEngine(t, e)
		})
	}
	url := fresh(t, shared)
	for _, value := range []string{"off", "local", "remote_write"} {
		wantRefused(t, url+"&synchronous_commit="+value, "synchronous_commit")
	}
	closeEngine(t, open(t, pgstore.Options{URL: url + "&synchronous_commit=remote_apply"}))
	latin := fmt.Sprint("latin", schemas.Add(1))
	must(t, shared.Exec("CREATE DATABASE "+latin+" ENCODING 'LATIN1' TEMPLATE template0"))
	wantRefused(t, strings.Replace(shared.URL(), "/postgres?", "/"+latin+"?", 1), "LATIN1")
}

// A configuration that is weakened later does not affect connections in use.
func TestPinnedSession(t *testing.T) {
	e := open(t, pgstore.Options{URL: fresh(t, shared), Writers: 1})
	w := storagetest.NewWriter(1)
	wantAll(t, e.Append([]storage.Batch{w.Next(1)}).Wait(), nil)
	t.Cleanup(func() {
		if err := shared.Exec("ALTER SYSTEM RESET synchronous_commit", "SELECT pg_reload_conf()"); err != nil {
			t.Error(err)
		}
	})
	must(t, shared.Exec("ALTER SYSTEM SET synchronous_commit = off"))
	awaitAbsent(t, shared)
	must(t, shared.Await("SELECT current_setting('synchronous_commit') = 'off'"))
	p := e.Append([]storage.Batch{w.Next(1)})
	must(t, shared.Await("SELECT count(*) >= 1 FROM pg_stat_activity WHERE "+waits)) // off would not wait
	must(t, awaitNobody(shared))
	wantAll(t, p.Wait(), nil)
	closeEngine(t, e)
}

func TestWarnings(t *testing.T) {
	var written bytes.Buffer
	e := open(t, pgstore.Options{URL: fresh(t, shared), Logger: slog.New(slog.NewTextHandler(&written, nil))})
	closeEngine(t, e)
	if got := written.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "no synchronous standby") {
		t.Errorf("got %q, want a warning of the missing standby", got)
	}
}

func TestAddresses(t *testing.T) {
	wantRefused(t, "postgres://user:secret@host:port/", "database URL")
	if _, err := pgstore.Open(t.Context(), pgstore.Options{URL: "postgres://user:secret@host:port/"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want an error without the password", err)
	}
	wantRefused(t, "postgres://postgres@/postgres?host=/nowhere", "unavailable")
}

// A schema of a newer program is not changed; a schema that several programs create concurrently is created once.
func TestMigration(t *testing.T) {
	url := fresh(t, shared)
	engines := make([]*pgstore.Engine, 3)
	var all sync.WaitGroup
	for i := range engines {
		all.Go(func() {
			var err error
			if engines[i], err = pgstore.Open(t.Context(), pgstore.Options{URL: url}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, e := range engines {
		if e != nil {
			closeEngine(t, e)
		}
	}
	if got := number(t, url, "SELECT count(*) FROM goose_db_version"); got != 9 {
		t.Errorf("got %d lines of versions, want 9: none, and eight migrations", got)
	}
	number(t, url, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true) RETURNING 1")
	wantRefused(t, url, "newer program")
}

// The schema keeps to what a sharded engine could have too.
func TestSchema(t *testing.T) {
	url := fresh(t, shared)
	closeEngine(t, open(t, pgstore.Options{URL: url}))
	const ours = "SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname NOT LIKE 'goose%'"
	tests := []struct {
		what, query string
		want        int64
	}{
		{"tables", "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND oid IN (" + ours + ")", 11},
		{"unique indexes", "SELECT count(*) FROM pg_index WHERE indisunique AND indrelid IN (" + ours + ")", 13},
		{"indexes that do not begin with the organization", "SELECT count(*) FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0] WHERE attname <> 'org' AND indrelid IN (" + ours + ")", 0},
		{"organizations that are not int8", "SELECT count(*) FROM pg_attribute WHERE attname = 'org' AND atttypid <> 'int8'::regtype AND attrelid IN (" + ours + " AND relkind = 'r')", 0},
		{"columns that are neither numbers nor bytes", "SELECT count(*) FROM pg_attribute WHERE attnum > 0 AND atttypid NOT IN ('int8'::regtype, 'int2'::regtype, 'bytea'::regtype) AND attrelid IN (" + ours + " AND relkind = 'r')", 0},
		{"sequences", "SELECT count(*) FROM pg_class WHERE relkind = 'S' AND oid IN (" + ours + ")", 0},
		{"triggers and foreign keys", "SELECT count(*) FROM pg_trigger WHERE tgrelid IN (" + ours + ")", 0},
		{"functions", "SELECT count(*) FROM pg_proc WHERE pronamespace = current_schema()::regnamespace", 0},
	}
	for _, test := range tests {
		if got := number(t, url, test.query); got != test.want {
			t.Errorf("%s: got %d, want %d", test.what, got, test.want)
		}
	}
}

// A row that conflicts with an index is ErrConflict, not ErrDuplicate: another process has appended.
func TestIndexTaken(t *testing.T) {
	url := fresh(t, shared)
	e := open(t, pgstore.Options{URL: url})
	one, two := storagetest.NewWriter(1), storagetest.NewWriter(2)
	wantAll(t, e.Append([]storage.Batch{one.Next(2), two.Next(2)}).Wait(), nil)
	number(t, url, "INSERT INTO event SELECT org, 2, received_at, effective, disclosure, entry, 'another', NULL, agent, trace, tool, action_kind, documents FROM event WHERE org = 1 AND idx = 1 RETURNING 1")
	got := e.Append([]storage.Batch{one.Next(1), two.Next(1)}).Wait()
	wantAll(t, got[:1], storage.ErrConflict)
	wantAll(t, got[1:], nil)
	number(t, url, "INSERT INTO segment VALUES (2, 3, 1, '', '') RETURNING 1")
	wantAll(t, e.Append([]storage.Batch{two.Next(20)}).Wait(), storage.ErrConflict)
	closeEngine(t, e)
}

// A role that may create tables in its schema upgrades the schema; a role that may only read and write tables can
// serve.
func TestRoles(t *testing.T) {
	n := schemas.Add(1)
	owner, server := fmt.Sprint("owner", n), fmt.Sprint("server", n)
	url := fresh(t, shared)
	_, schema, _ := strings.Cut(url, "search_path=")
	as := func(role string) string {
		return strings.Replace(url, "postgres://postgres@", "postgres://"+role+"@", 1)
	}
	must(t, shared.Exec("CREATE ROLE "+owner+" LOGIN", "CREATE ROLE "+server+" LOGIN",
		"GRANT USAGE, CREATE ON SCHEMA "+schema+" TO "+owner, "GRANT USAGE ON SCHEMA "+schema+" TO "+server))
	wantRefused(t, as(server), "permission denied")
	closeEngine(t, open(t, pgstore.Options{URL: as(owner)}))
	must(t, shared.Exec("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "+schema+" TO "+server))
	e := open(t, pgstore.Options{URL: as(server)})
	w := newWorld(t, e)
	w.found()
	w.mustAppend(red, "one", "two")
	w.keeps(&acknowledgements{})
	w.close()
	closeEngine(t, e)
}

// No statement reads a whole table, or everything of an organization in a table in order to find a part of it, even if
// it was planned while the table was empty.
func TestPlans(t *testing.T) {
	e := open(t, pgstore.Options{URL: fresh(t, shared)})
	for statement, plan := range e.PlansOf(t) {
		lines := append(strings.Split(plan, "\n"), "")
		for i, line := range lines[:len(lines)-1] {
			whole := strings.Contains(line, "Seq Scan") || strings.Contains(line, "Hash Join") || strings.Contains(line, "Merge Join")
			scan := strings.Contains(line, "Index Scan") || strings.Contains(line, "Index Only Scan")
			looks := strings.Contains(line, "Join Filter") || strings.Contains(line, "Bitmap") || strings.Contains(line, "Filter") && strings.Contains(line, "ANY (")
			if whole || looks || scan && !strings.Contains(lines[i+1], "Index Cond") {
				t.Errorf("%s\n%s", statement, plan)
				break
			}
		}
	}
	closeEngine(t, e)
}

func TestVersions(t *testing.T) {
	for version, ok := range map[int]bool{140012: false, 149999: false, 150000: true, 170002: true} {
		if err := pgstore.Refuse(version); (err == nil) != ok {
			t.Errorf("version %d: got %v", version, err)
		}
	}
}
