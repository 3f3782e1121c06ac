package pgstore_test

import (
	"testing"

	"github.com/agentledger/agentledger/storage/pgstore"
)

// With ConnectAhead, the connections for appends and at least 8 others are open when Open returns, and their statements
// are prepared.
func TestConnectAhead(t *testing.T) {
	url := fresh(t, shared) + "&application_name=ahead"
	e := open(t, pgstore.Options{URL: url, ConnectAhead: true})
	defer closeEngine(t, e)
	const sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ahead' AND pid <> pg_backend_pid() AND query LIKE "
	if got := number(t, url, sql+"'%UPDATE head SET size%'"); got != 4 {
		t.Errorf("got %d connections that have prepared appends, want 4", got)
	}
	all, prepared, err := e.CountPrepared(t.Context())
	if err != nil || all < 8 || prepared != all {
		t.Errorf("got %d connections for reads, of which %d are prepared, %v; want at least 8, all prepared", all, prepared, err)
	}
}
