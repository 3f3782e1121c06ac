package pgstore

import (
	"context"
	_ "embed" // of schemaText
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/storage/pgstore/schematext"
)

// schemaText is the schema that the migrations make. Each table, column, constraint and unique index
// has a line: its name, a colon and its properties. TestSchemaText compares it with a database that
// the migrations made, and writes it with -update.
//
//go:embed schema.txt
var schemaText string

// schemaTables are the tables of a store. The tables of the migrations' own are not among them.
var schemaTables = []string{"barrier", "counter", "event", "head", "lease", "lease_epoch", "node", "record", "segment", "tile"}

// schemaSQL returns the properties of the tables $1 that the search_path leads to, and of their parts, as (name,
// properties). It needs no right on the tables. Other tables, indexes that are not unique, and settings for speed and
// space alone are left out, because operators may add and change those.
const schemaSQL = `WITH ours AS (
	SELECT c.* FROM pg_class c WHERE c.relname = ANY($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND pg_table_is_visible(c.oid)
)
SELECT 'table ' || c.relname,
	CASE c.relkind WHEN 'r' THEN 'plain' ELSE 'of kind ' || c.relkind::text END
	|| CASE c.relpersistence WHEN 'p' THEN ', logged' WHEN 'u' THEN ', unlogged' ELSE ', temporary' END
	|| CASE WHEN c.relrowsecurity THEN ', with row security' ELSE '' END
	|| CASE WHEN EXISTS (SELECT FROM pg_inherits i WHERE c.oid IN (i.inhparent, i.inhrelid)) THEN ', with inheritance' ELSE '' END
FROM ours c
UNION ALL
SELECT 'column ' || c.relname || '.' || a.attname,
	format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ', not null' ELSE '' END
	|| CASE WHEN a.attgenerated <> '' THEN ', generated' WHEN a.attidentity <> '' THEN ', identity' WHEN a.atthasdef THEN ', with a default' ELSE '' END
FROM ours c JOIN pg_attribute a ON a.attrelid = c.oid WHERE a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'constraint ' || k.conname || ' of ' || c.relname, pg_get_constraintdef(k.oid, true)
FROM ours c JOIN pg_constraint k ON k.conrelid = c.oid WHERE k.contype <> 'n'
UNION ALL
SELECT 'index ' || x.relname || ' of ' || c.relname,
	'unique ' || m.amname || ' (' || (
		SELECT string_agg(pg_get_indexdef(i.indexrelid, n, true), ', ' ORDER BY n) FROM generate_series(1, i.indnatts) n
	) || ')' || coalesce(' where ' || pg_get_expr(i.indpred, i.indrelid, true), '')
	|| CASE WHEN i.indnullsnotdistinct THEN ', nulls not distinct' ELSE '' END
	|| CASE WHEN i.indisvalid AND i.indisready AND i.indislive THEN '' ELSE ', invalid' END
	|| CASE WHEN i.indimmediate THEN '' ELSE ', deferrable' END
FROM ours c JOIN pg_index i ON i.indrelid = c.oid JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
WHERE i.indisunique
UNION ALL
SELECT 'trigger ' || t.tgname || ' of ' || c.relname, pg_get_triggerdef(t.oid, true)
FROM ours c JOIN pg_trigger t ON t.tgrelid = c.oid WHERE NOT t.tgisinternal
UNION ALL
SELECT 'rule ' || r.rulename || ' of ' || c.relname, pg_get_ruledef(r.oid, true)
FROM ours c JOIN pg_rewrite r ON r.ev_class = c.oid WHERE r.rulename <> '_RETURN'
UNION ALL
SELECT 'policy ' || p.polname || ' of ' || c.relname, 'of row security'
FROM ours c JOIN pg_policy p ON p.polrelid = c.oid`

// readSchema returns the properties of the store's tables and of their parts, by name.
func readSchema(ctx context.Context, conn *pgx.Conn) (map[string]string, error) {
	rows, err := conn.Query(ctx, schemaSQL, schemaTables)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", unreachable(err))
	}
	found := make(map[string]string)
	var name, properties string
	_, err = pgx.ForEachRow(rows, []any{&name, &properties}, func() error {
		found[name] = properties
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", unreachable(err))
	}
	return found, nil
}

// checkSchema compares the schema of the database with the schema that the migrations make. The
// error names each difference. For example, without a unique index an event could be stored twice.
func checkSchema(ctx context.Context, config *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return unreachable(err)
	}
	defer conn.Close(ctx)
	found, err := readSchema(ctx, conn)
	if err != nil {
		return err
	}
	if different := schematext.Differences(found, schematext.Parse(schemaText)); len(different) > 0 {
		return errors.New("the schema is not the one that this program made, restore it from a backup or mend it by hand: " + strings.Join(different, "; "))
	}
	return nil
}
