package pgstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/storage"
)

// PlansOf returns the plan of each statement on the connections of an engine.
func (e *Engine) PlansOf(t *testing.T) map[string]string {
	t.Helper()
	conn, err := e.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	plans := make(map[string]string)
	for i, sql := range []string{
		appendSQL, appendEventsSQL, appendOneSQL, freeSQL, barrierSQL, lockSQL, putSQL, replaceSQL, removeSQL, keysSQL,
		partitionSQL, sizeSQL, entriesSQL, entryOneSQL, headSQL, findSQL, findOneSQL,
		countersSQL, tenantsSQL, headsSQL, recordsSQL, scanSQL, scanToEndSQL, tileHashesSQL, tileRootsSQL, zeroHeadSQL,
		eventsSQL(0, eventsWithin, segmentsWithin), eventsSQL(storage.FieldRecord, eventsWithin, segmentsWithin),
		eventsSQL(storage.FieldEnvelope, eventsWithin, segmentsWithin), eventsSQL(storage.FieldRecord, eventsAt, segmentsAt),
	} {
		name := fmt.Sprint("planned", i)
		described, err := conn.Conn().Prepare(t.Context(), name, sql)
		if err != nil {
			t.Fatal(err)
		}
		nulls := strings.TrimSuffix(strings.Repeat("NULL, ", len(described.ParamOIDs)), ", ")
		if nulls != "" {
			nulls = "(" + nulls + ")"
		}
		rows, err := conn.Query(t.Context(), "EXPLAIN EXECUTE "+name+nulls, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		plans[sql] = strings.Join(lines, "\n")
	}
	return plans
}
