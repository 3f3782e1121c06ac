// Package upgradetest adds steps of versions that do not exist to the steps of the schema, for tests of upgrades. No
// released program contains it.
package upgradetest

import (
	"fmt"
	"io/fs"
	"strings"
	"testing/fstest"
)

// Step is a step of a version that does not exist.
type Step struct {
	SQL            string
	Added, Removed string // lines of the schema's text
	Contracts      bool   // programs that know only older schemas cannot write after this step
}

// Expanding returns a step that older programs tolerate.
func Expanding() Step {
	return Step{
		SQL: "ALTER TABLE head ADD COLUMN note bytea; ALTER TABLE event ADD COLUMN note bytea;\n" +
			"CREATE TABLE extra (org int8 NOT NULL PRIMARY KEY, value bytea NOT NULL);",
		Added: "column head.note: bytea\ncolumn event.note: bytea\ntable extra: plain, logged\n" +
			"column extra.org: bigint, not null\ncolumn extra.value: bytea, not null\n" +
			"constraint extra_pkey of extra: PRIMARY KEY (org)\nindex extra_pkey of extra: unique btree (org)\n",
	}
}

// Contracting returns a step after Expanding that older programs do not tolerate.
func Contracting() Step {
	return Step{SQL: "ALTER TABLE head DROP COLUMN note;", Removed: "column head.note: bytea\n", Contracts: true}
}

// Extend returns the migration files and the text of a schema with additional steps. The last step in files has the
// given version, and programs that know the schema lowest can write after it.
func Extend(files fs.FS, text string, version, lowest int64, steps ...Step) (fs.FS, string, error) {
	all := fstest.MapFS{}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, "", err
	}
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, "", err
		}
		all[name] = &fstest.MapFile{Data: data}
	}
	for _, step := range steps {
		if step.Contracts {
			lowest = version
		}
		version++
		all[fmt.Sprintf("%05d_next.sql", version)] = &fstest.MapFile{
			Data: fmt.Appendf(nil, "-- Lowest: %d\n\n-- +goose Up\n%s\n", lowest, step.SQL)}
		text = strings.Replace(text+step.Added, step.Removed, "", 1)
	}
	return all, text, nil
}
