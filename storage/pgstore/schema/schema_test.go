package schema_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
	"github.com/agentledger/agentledger/storage/pgstore/schema"
	"github.com/agentledger/agentledger/storage/pgstore/schema/upgradetest"
)

// shared is the database server of all tests.
var shared *pgtest.Server

func TestMain(m *testing.M) {
	var err error
	if shared, err = pgtest.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var schemas atomic.Int64

// place is an empty schema of the database.
type place struct {
	t      *testing.T
	config *pgx.ConnConfig
	conn   *pgx.Conn
}

func newPlace(t *testing.T) *place {
	t.Helper()
	name := fmt.Sprint("s", schemas.Add(1))
	must(t, shared.Exec("CREATE SCHEMA "+name))
	return placeAt(t, shared.URL("search_path="+name))
}

// newPlaceOf returns a place that a program has upgraded. All such places of a run use the same program.
func newPlaceOf(t *testing.T, p *schema.Program) *place {
	t.Helper()
	url, err := shared.NewSchema(func(url string) error {
		config, err := pgx.ParseConfig(url)
		if err == nil {
			err = p.Bring(t.Context(), config)
		}
		return err
	})
	must(t, err)
	return placeAt(t, url)
}

func placeAt(t *testing.T, url string) *place {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	must(t, err)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return &place{t: t, config: config, conn: conn}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *place) exec(sql string, args ...any) {
	p.t.Helper()
	_, err := p.conn.Exec(p.t.Context(), sql, args...)
	must(p.t, err)
}

func (p *place) number(sql string) (n int64) {
	p.t.Helper()
	must(p.t, p.conn.QueryRow(p.t.Context(), sql).Scan(&n))
	return n
}

// program returns the program of this version, with more steps.
func program(t *testing.T, version string, more ...upgradetest.Step) *schema.Program {
	t.Helper()
	p, err := schema.New("", nil, nil)
	must(t, err)
	p, err = p.With(version, more...)
	must(t, err)
	return p
}

// wantRefused checks that an error is ErrRefused and contains the given words.
func wantRefused(t *testing.T, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, schema.ErrRefused) {
		t.Fatalf("got %v, want a refusal", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, want it to name %s", err, w)
		}
	}
}

// The newest released step is the program's, and each step names the oldest program that may write after it.
func TestSteps(t *testing.T) {
	steps := program(t, "v1").Steps()
	want := []int64{1, 1, 3, 3, 5, 6, 7, 7}
	for i, step := range steps[:len(want)] {
		if step.Version != int64(i+1) || step.Lowest != want[i] {
			t.Errorf("got %+v, want version %d and lowest %d", step, i+1, want[i])
		}
	}
	const head = "-- Lowest: "
	for name, files := range map[string]fstest.MapFS{
		"no line":         {"00001_a.sql": {Data: []byte("-- +goose Up\n")}},
		"no number":       {"a.sql": {Data: []byte(head + "1\n")}},
		"a gap":           {"00001_a.sql": {Data: []byte(head + "1\n")}, "00003_b.sql": {Data: []byte(head + "1\n")}},
		"lowest falls":    {"00001_a.sql": {Data: []byte(head + "1\n")}, "00002_b.sql": {Data: []byte(head + "0\n")}},
		"lowest is ahead": {"00001_a.sql": {Data: []byte(head + "2\n")}},
	} {
		if steps, err := schema.StepsOf(files); err == nil {
			t.Errorf("%s: got %v, want an error", name, steps)
		}
	}
}

// A step that expands removes and changes nothing, and adds no rule to an existing table.
func TestExpandingStepsAdd(t *testing.T) {
	p := program(t, "v1")
	where := newPlace(t)
	read := func() map[string]string {
		text, err := p.ReadText(t.Context(), where.conn)
		must(t, err)
		return schema.Parse(text)
	}
	steps := p.Steps()
	must(t, p.BringTo(t.Context(), where.config, 7))
	for i := 7; i < len(steps); i++ {
		before := read()
		must(t, p.BringTo(t.Context(), where.config, steps[i].Version))
		if steps[i].Lowest > steps[i-1].Lowest {
			continue // it contracts
		}
		after := read()
		for name, properties := range before {
			if after[name] != properties {
				t.Errorf("step %d: %s is %q: want %q", steps[i].Version, name, after[name], properties)
			}
		}
		for name, properties := range after {
			if _, was := before[name]; was || strings.HasPrefix(name, "table ") {
				continue
			}
			_, table, _ := strings.Cut(name, " of ")
			isColumn := strings.HasPrefix(name, "column ")
			if isColumn {
				table, _, _ = strings.Cut(strings.TrimPrefix(name, "column "), ".")
			}
			_, old := before["table "+table]
			if old && (!isColumn || strings.Contains(properties, "not null") && !strings.Contains(properties, "default")) {
				t.Errorf("step %d: %s: %s: older programs do not know it", steps[i].Version, name, properties)
			}
		}
	}
}

// A schema that a newer program has expanded is used by the previous program, also read-only. After the contraction it
// is not, and the error names both versions. The program between the two continues. Another store in the database is
// not affected.
func TestOneVersionBack(t *testing.T) {
	v1, v2 := program(t, "v1"), program(t, "v2", upgradetest.Expanding())
	v3 := program(t, "v3", upgradetest.Expanding(), upgradetest.Contracting())
	where, other := newPlace(t), newPlace(t)
	must(t, v1.Bring(t.Context(), other.config))
	for _, p := range []*schema.Program{v1, v2, v1, v2} {
		must(t, p.Bring(t.Context(), where.config))
		must(t, p.Check(t.Context(), where.config))
		must(t, p.Ask(t.Context(), where.conn))
	}
	for _, change := range []string{"ALTER TABLE head DROP COLUMN note", "CREATE UNIQUE INDEX odd ON event (note)"} {
		tx, err := where.conn.Begin(t.Context())
		must(t, err)
		_, err = tx.Exec(t.Context(), change)
		must(t, err)
		must(t, tx.Commit(t.Context()))
		if err := v1.Bring(t.Context(), where.config); err == nil || !strings.Contains(err.Error(), "differs from the one") {
			t.Errorf("%s: got %v, want the difference", change, err)
		}
		where.exec("DROP INDEX IF EXISTS odd")
		where.exec("ALTER TABLE head ADD COLUMN IF NOT EXISTS note bytea")
	}
	must(t, v3.Bring(t.Context(), where.config))
	for _, err := range []error{v1.Bring(t.Context(), where.config), v1.Check(t.Context(), where.config),
		v1.Ask(t.Context(), where.conn)} {
		wantRefused(t, err, "version v3", "version v1", "newer program")
	}
	must(t, v2.Bring(t.Context(), where.config))
	must(t, v2.Check(t.Context(), where.config))
	must(t, v1.Bring(t.Context(), other.config))
	must(t, v1.Ask(t.Context(), other.conn))
}

// addNode writes the row of a node. A living node beats until the test ends or stop is called.
func (p *place) addNode(name byte, version, key string, known *int64, lives bool) (stop func()) {
	p.t.Helper()
	id := make([]byte, 16)
	id[0] = name
	p.exec("INSERT INTO node (org, id, beats, leaving, url, version, key, schema) VALUES (0, $1, 0, 0, $2, $3, $4, $5)", id,
		[]byte("https://node:"+string(name)), []byte(version), []byte(key), known)
	if !lives {
		return func() {}
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	conn, err := pgx.ConnectConfig(ctx, p.config)
	must(p.t, err)
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			_, _ = conn.Exec(ctx, "UPDATE node SET beats = beats + 1 WHERE id = $1", id)
			time.Sleep(20 * time.Millisecond)
		}
	})
	stop = func() {
		cancel()
		group.Wait()
		_ = conn.Close(context.WithoutCancel(ctx))
	}
	p.t.Cleanup(stop)
	return stop
}

// While a node is alive whose program would break, the contraction is refused with the node's name and changes nothing.
// Once that node is silent, it is forgotten. Nodes with newer programs do not prevent it.
func TestContractionWaitsForNodes(t *testing.T) {
	v1, v2 := program(t, "v1"), program(t, "v2", upgradetest.Expanding())
	v3 := program(t, "v3", upgradetest.Expanding(), upgradetest.Contracting())
	where := newPlace(t)
	must(t, v2.Bring(t.Context(), where.config))
	newer, older := v2.Newest(), v1.Newest()
	where.addNode('a', "v2", "k", &newer, true)
	stop := where.addNode('b', "v1", "k", &older, true)
	unknown := where.addNode('c', "v0", "k", nil, true) // of a program before the column
	wantRefused(t, v3.Bring(t.Context(), where.config), "https://node:b", "v1", "https://node:c")
	must(t, v1.Ask(t.Context(), where.conn))
	if got := where.number("SELECT max(version_id) FROM goose_db_version"); got != v2.Newest() {
		t.Errorf("the schema has version %d, want %d as before", got, v2.Newest())
	}
	stop()
	wantRefused(t, v3.Bring(t.Context(), where.config), "https://node:c")
	unknown()
	must(t, v3.Bring(t.Context(), where.config))
	wantRefused(t, v1.Ask(t.Context(), where.conn), "v3")
	if got := where.number("SELECT count(*) FROM node"); got != 1 {
		t.Errorf("%d nodes are left, want the one that knows enough", got)
	}
}

// A program whose master key differs from that of a living node is refused before it changes anything; the error
// contains neither key. A dead node, and a program with both keys of a key change, are accepted.
func TestForeignMasterKey(t *testing.T) {
	v1, v2 := program(t, "v1"), program(t, "v2", upgradetest.Expanding())
	where, other := newPlace(t), newPlace(t)
	must(t, v1.Bring(t.Context(), where.config))
	must(t, v1.Bring(t.Context(), other.config))
	where.addNode('a', "v1", "dead key", nil, false)
	stop := where.addNode('b', "v1", "their key", nil, true)
	for _, p := range []*schema.Program{v2.WithKeys("own key"), v2.WithKeys([]string{}...)} {
		err := p.Bring(t.Context(), where.config)
		if p.Keys == nil {
			t.Fatal("the keys are not compared")
		}
		wantRefused(t, err, "master key")
		if strings.Contains(err.Error(), "own key") || strings.Contains(err.Error(), "their key") {
			t.Errorf("%v names a key", err)
		}
	}
	if got := where.number("SELECT max(version_id) FROM goose_db_version"); got != v1.Newest() {
		t.Errorf("the schema has version %d, want %d as before", got, v1.Newest())
	}
	must(t, v2.WithKeys("new key", "their key").Bring(t.Context(), where.config))
	must(t, v2.WithKeys("own key").Bring(t.Context(), other.config))
	stop()
	must(t, v2.WithKeys("own key").Bring(t.Context(), where.config))
}
