package pgstore_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore"
)

// A store that predates segments is upgraded with all its data, and can be continued: separate rows and segments form
// one ledger.
func TestUpgrade(t *testing.T) {
	made, older := fresh(t, shared), fresh(t, shared)
	e := open(t, pgstore.Options{URL: made})
	w := newWorld(t, e)
	w.found()
	for i := range 300 { // one by one, so that they are in separate rows as before
		w.mustAppend(red, fmt.Sprint("red-", i))
	}
	w.mustAppend(blue, "blue-0", "blue-1")
	if got := number(t, made, "SELECT count(*) FROM segment"); got != 0 {
		t.Fatalf("got %d segments of single events, want none", got)
	}
	want := [][]any{w.contents(red), w.contents(blue)}
	w.close()
	closeEngine(t, e)

	must(t, pgstore.MigrateTo(t.Context(), older, 2))
	_, from, _ := strings.Cut(made, "search_path=")
	_, to, _ := strings.Cut(older, "search_path=")
	for _, table := range []string{"head", "event", "tile", "counter", "record", "barrier"} {
		must(t, shared.Exec(fmt.Sprintf("INSERT INTO %s.%s SELECT * FROM %s.%s", to, table, from, table)))
	}
	e = open(t, pgstore.Options{URL: older})
	w.store = e
	w.open()
	if got := [][]any{w.contents(red), w.contents(blue)}; !reflect.DeepEqual(got, want) {
		t.Error("the ledgers are others than before")
	}
	w.keeps(&acknowledgements{})
	for i, tenant := range []id.Tenant{red, blue, red, blue, red} {
		w.mustAppendTogether(tenant, fmt.Sprint("together-", i), 3+30*i)
	}
	if err := w.append(red, "red-7"); err == nil {
		t.Error("an id of before was taken again")
	}
	if got := number(t, older, "SELECT sum(count) FROM segment"); got != 33+63+93+123 {
		t.Errorf("got %d events in segments, want %d", got, 33+63+93+123)
	}
	w.keeps(&acknowledgements{})
	for tenant, size := range map[id.Tenant]int{red: 300 + 3 + 63 + 123, blue: 2 + 33 + 93} {
		n := 0
		for e, err := range e.Events(t.Context(), tenant, 0, storage.NoIndex, storage.FieldRecord|storage.FieldEnvelope) {
			if err != nil || int(e.Index) != n || len(e.Record) == 0 || len(e.Envelope) == 0 || e.ReceivedAt == 0 {
				t.Fatalf("event %d: got %+v, %v", n, e, err)
			}
			n++
		}
		if n != size {
			t.Errorf("tenant %d: got %d events, want %d", tenant, n, size)
		}
	}
	w.close()
	closeEngine(t, e)
}

// Exists reports only a database with a store, and creates none. Another schema of the same database does not count.
func TestExists(t *testing.T) {
	one, other := fresh(t, shared), fresh(t, shared)
	exists := func(url string) bool {
		t.Helper()
		found, err := pgstore.Exists(t.Context(), pgstore.Options{URL: url})
		must(t, err)
		return found
	}
	for range 2 {
		if exists(one) {
			t.Error("an empty schema holds a store")
		}
	}
	closeEngine(t, open(t, pgstore.Options{URL: one}))
	if !exists(one) || exists(other) {
		t.Errorf("got %v and %v, want the first one only", exists(one), exists(other))
	}
	if _, err := pgstore.Exists(t.Context(), pgstore.Options{URL: one + "&host=/nowhere"}); err == nil {
		t.Error("a server that can't be reached was looked at")
	}
}
