package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// schemaSQL returns the properties of the tables $1 in the search_path and of their parts, as (name, properties). It
// needs no privileges on the tables. It omits other tables, non-unique indexes, and settings that affect only speed and
// space, because operators may add and change those.
const schemaSQL = `WITH ours AS (
	SELECT c.* FROM pg_class c
	WHERE c.relname = ANY($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND pg_table_is_visible(c.oid)
)
SELECT 'table ' || c.relname,
	CASE c.relkind WHEN 'r' THEN 'plain' ELSE 'of kind ' || c.relkind::text END
	|| CASE c.relpersistence WHEN 'p' THEN ', logged' WHEN 'u' THEN ', unlogged' ELSE ', temporary' END
	|| CASE WHEN c.relrowsecurity THEN ', with row security' ELSE '' END
	|| CASE WHEN EXISTS (SELECT FROM pg_inherits i WHERE c.oid IN (i.inhparent, i.inhrelid)) THEN ', with inheritance'
		ELSE '' END
FROM ours c
UNION ALL
SELECT 'column ' || c.relname || '.' || a.attname,
	format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ', not null' ELSE '' END
	|| CASE WHEN a.attgenerated <> '' THEN ', generated' WHEN a.attidentity <> '' THEN ', identity'
		WHEN a.atthasdef THEN ', with a default' ELSE '' END
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
FROM ours c JOIN pg_index i ON i.indrelid = c.oid JOIN pg_class x ON x.oid = i.indexrelid
	JOIN pg_am m ON m.oid = x.relam
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

// readTables returns the properties of tables and of their parts, by name.
func readTables(ctx context.Context, conn *pgx.Conn, tables []string) (map[string]string, error) {
	rows, err := conn.Query(ctx, schemaSQL, tables)
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

// compare compares the schema of the database with a text. The error lists each difference. For example, without a
// unique index an event could be stored twice.
func compare(ctx context.Context, conn *pgx.Conn, text string) error {
	want := Parse(text)
	found, err := readTables(ctx, conn, tablesOf(want))
	if err != nil {
		return err
	}
	if different := differences(found, want); len(different) > 0 {
		return errors.New("the schema differs from the one that this program created; restore it from a backup or " +
			"repair it by hand: " + strings.Join(different, "; "))
	}
	return nil
}

// tablesOf returns the names of the tables of a schema. It does not include the migration tool's own tables.
func tablesOf(schema map[string]string) (tables []string) {
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		if table, is := strings.CutPrefix(name, "table "); is {
			tables = append(tables, table)
		}
	}
	return tables
}

// Text returns the text of the tables that the program's steps create.
func (p *Program) Text() string { return p.known.text }

// ReadText returns the text of a database's tables that have the same names as the program's tables.
func (p *Program) ReadText(ctx context.Context, conn *pgx.Conn) (string, error) {
	found, err := readTables(ctx, conn, tablesOf(Parse(p.known.text)))
	return formatSchema(found), err
}
