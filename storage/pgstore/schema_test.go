package pgstore_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/storage/pgstore"
)

var update = flag.Bool("update", false, "write schema.txt")

// The text that a database is compared with is what the migrations create.
func TestSchemaText(t *testing.T) {
	url := fresh(t, shared)
	must(t, pgstore.Migrate(t.Context(), url))
	got, err := pgstore.ReadSchema(t.Context(), url)
	must(t, err)
	if *update {
		must(t, os.WriteFile("schema/schema.txt", []byte(got), 0o644))
		return
	}
	if want := pgstore.SchemaText(); got != want {
		t.Errorf("got %s, want %s: write it with -update", got, want)
	}
}

// If any property that the program relies on is missing, the start reports it. Another store in the same database can
// still be opened.
func TestSchemaIsChecked(t *testing.T) {
	tests := []struct{ change, says string }{
		{"DROP TABLE segment", "table segment is missing"},
		{"ALTER TABLE event SET UNLOGGED", "table event is plain, unlogged: want plain, logged"},
		{"ALTER TABLE record ENABLE ROW LEVEL SECURITY", "table record is plain, logged, with row security"},
		{"CREATE TABLE later () INHERITS (event)", "table event is plain, logged, with inheritance"},
		{"ALTER TABLE head DROP COLUMN epoch", "column head.epoch is missing: want bigint, not null"},
		{"ALTER TABLE head ALTER COLUMN size DROP NOT NULL", "column head.size is bigint: want bigint, not null"},
		{"ALTER TABLE head ALTER COLUMN size TYPE numeric", "column head.size is numeric, not null: want bigint, not null"},
		{"ALTER TABLE head ADD COLUMN note text NOT NULL", "column head.note is not this program's: text, not null"},
		{"ALTER TABLE counter ALTER COLUMN value SET DEFAULT 1", "column counter.value is bigint, not null, with a default"},
		{"ALTER TABLE head DROP CONSTRAINT head_pkey", "constraint head_pkey of head is missing: want PRIMARY KEY (org)"},
		{"ALTER TABLE event DROP CONSTRAINT event_name", "constraint event_name of event is missing: want PRIMARY KEY (org, name)"},
		{"ALTER TABLE event DROP CONSTRAINT event_name, ADD CONSTRAINT event_name PRIMARY KEY (org, name) DEFERRABLE", "index event_name of event is unique btree (org, name), deferrable"},
		{"ALTER TABLE event DROP CONSTRAINT event_name; ALTER TABLE event ADD CONSTRAINT event_name PRIMARY KEY (org, name, idx)",
			"constraint event_name of event is PRIMARY KEY (org, name, idx): want PRIMARY KEY (org, name)"},
		{"ALTER TABLE tile DROP CONSTRAINT tile_pkey", "index tile_pkey of tile is missing: want unique btree (org, level, idx)"},
		{"ALTER TABLE counter DROP CONSTRAINT counter_pkey", "constraint counter_pkey of counter is missing"},
		{"ALTER TABLE record DROP CONSTRAINT record_pkey", "constraint record_pkey of record is missing"},
		{"ALTER TABLE barrier DROP CONSTRAINT barrier_pkey", "constraint barrier_pkey of barrier is missing"},
		{"ALTER TABLE segment DROP CONSTRAINT segment_pkey", "constraint segment_pkey of segment is missing"},
		{"ALTER TABLE node DROP CONSTRAINT node_pkey", "constraint node_pkey of node is missing"},
		{"ALTER TABLE lease DROP CONSTRAINT lease_pkey", "constraint lease_pkey of lease is missing"},
		{"ALTER TABLE lease_epoch DROP CONSTRAINT lease_epoch_pkey", "constraint lease_epoch_pkey of lease_epoch is missing"},
		{"DROP INDEX event_index", "index event_index of event is missing: want unique btree (org, idx) where entry IS NOT NULL"},
		{"DROP INDEX event_idempotency", "index event_idempotency of event is missing"},
		{"DROP INDEX event_index; CREATE INDEX event_index ON event (org, idx) WHERE entry IS NOT NULL", "index event_index of event is missing"},
		{"DROP INDEX event_index; CREATE UNIQUE INDEX event_index ON event (org, idx) WHERE entry IS NULL", "index event_index of event is unique btree (org, idx) where entry IS NULL"},
		{"DROP INDEX event_idempotency; CREATE UNIQUE INDEX event_idempotency ON event (idempotency) WHERE idempotency IS NOT NULL", "index event_idempotency of event is unique btree (idempotency)"},
		{"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'event_index'::regclass", "index event_index of event is unique btree (org, idx) where entry IS NOT NULL, invalid"},
		{"CREATE UNIQUE INDEX odd ON event (org, agent)", "index odd of event is not this program's"},
		{"ALTER TABLE head ADD CONSTRAINT small CHECK (size < 100)", "constraint small of head is not this program's: CHECK (size < 100)"},
		{"CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER spoiler BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION spoil()",
			"trigger spoiler of event is not this program's"},
		{"CREATE RULE lose AS ON INSERT TO tile DO INSTEAD NOTHING", "rule lose of tile is not this program's"},
		{"CREATE POLICY hide ON event USING (false)", "policy hide of event is not this program's"},
	}
	other := fresh(t, shared)
	closeEngine(t, open(t, pgstore.Options{URL: other}))
	for _, tt := range tests {
		t.Run(tt.change, func(t *testing.T) {
			url := fresh(t, shared)
			must(t, pgstore.Migrate(t.Context(), url))
			_, schema, _ := strings.Cut(url, "search_path=")
			must(t, shared.Exec(fmt.Sprintf("SET search_path = %s; SET allow_system_table_mods = on; %s", schema, tt.change)))
			wantRefused(t, url, tt.says)
			closeEngine(t, open(t, pgstore.Options{URL: other}))
		})
	}
}

// What an operator may add for reports, or change for speed, is not reported as a difference.
func TestSchemaOfAnOperator(t *testing.T) {
	url := fresh(t, shared)
	closeEngine(t, open(t, pgstore.Options{URL: url}))
	_, schema, _ := strings.Cut(url, "search_path=")
	must(t, shared.Exec("SET search_path = "+schema+"; CREATE INDEX by_agent ON event (org, agent); CREATE TABLE report (n int8); "+
		"CREATE VIEW sizes AS SELECT org, size FROM head; ALTER TABLE head SET (fillfactor = 70); ALTER TABLE event ALTER COLUMN agent SET STATISTICS 10"))
	closeEngine(t, open(t, pgstore.Options{URL: url}))
}
