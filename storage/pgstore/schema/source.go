package schema

import (
	"embed"
	"io/fs"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schemaText is the schema that the migrations create. Each table, column, constraint and unique index has a line: its
// name, a colon and its properties. TestSchemaText compares it with a database that the migrations created, and writes
// it with -update.
//
//go:embed schema.txt
var schemaText string

// released returns the steps of this version.
func released() (source, error) {
	files, err := fs.Sub(migrations, "migrations")
	return source{files: files, text: schemaText}, err
}
