package pgstore_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore"
)

// A read-only store returns the stored data and rejects all writes.
func TestReadOnly(t *testing.T) {
	url := fresh(t, shared)
	e := open(t, pgstore.Options{URL: url})
	w := newWorld(t, e)
	w.found()
	w.mustAppend(red, "red-0")
	w.mustAppend(blue, "blue-0", "blue-1")
	want := []any{w.contents(red), w.contents(blue)}
	w.close()
	closeEngine(t, e)

	passed := number(t, url, "SELECT coalesce(sum(passed), 0) FROM barrier")
	r := open(t, pgstore.Options{URL: url, ReadOnly: true})
	w.store = r
	w.open()
	if got := []any{w.contents(red), w.contents(blue)}; !reflect.DeepEqual(got, want) {
		t.Error("the ledgers are others than were written")
	}
	w.close()
	appended := r.Append([]storage.Batch{{Tenant: red}}).Wait()[0]
	write := r.Write(t.Context(), red, []storage.Change{{Kind: "kind", Key: "key", Value: []byte("v")}})
	drop := r.Drop(t.Context(), red, storage.Record{Kind: "kind", Key: "key", Version: 1})
	for name, err := range map[string]error{"append": appended, "write": write, "drop": drop} {
		if !errors.Is(err, storage.ErrReadOnly) {
			t.Errorf("%s: got %v, want %v", name, err, storage.ErrReadOnly)
		}
	}
	must(t, r.Barrier(t.Context()))
	closeEngine(t, r)
	if now := number(t, url, "SELECT coalesce(sum(passed), 0) FROM barrier"); now != passed {
		t.Errorf("barriers: got %d, want %d as before", now, passed)
	}
}

// A schema of another version is rejected with an explanation and not changed.
func TestReadOnlyMigratesNothing(t *testing.T) {
	older, empty := fresh(t, shared), fresh(t, shared)
	must(t, pgstore.MigrateTo(t.Context(), older, 2))
	for url, words := range map[string]string{older: "the schema has version 2", empty: "the schema has version 0"} {
		_, err := pgstore.Open(t.Context(), pgstore.Options{URL: url, ReadOnly: true})
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %q", err, words)
		}
	}
	if got := number(t, older, "SELECT max(version_id) FROM goose_db_version"); got != 2 {
		t.Errorf("the schema has version %d now", got)
	}
	if got := number(t, empty, "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"); got != 0 {
		t.Errorf("%d tables were made", got)
	}
}
