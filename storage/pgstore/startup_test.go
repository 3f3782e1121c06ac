package pgstore

import (
	"maps"
	"slices"
	"testing"
)

// PgBouncer rejects any other startup parameter.
func TestStartupParameters(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		c, err := newConnector(Options{URL: "postgres://ledger@localhost/ledger", ReadOnly: readOnly})
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Sorted(maps.Keys(c.single().RuntimeParams))
		if want := []string{"application_name", "client_encoding"}; !slices.Equal(got, want) {
			t.Errorf("read-only %v: got %v, want %v", readOnly, got, want)
		}
		if c.single().AfterConnect == nil {
			t.Error("no settings are set after connecting")
		}
	}
}
