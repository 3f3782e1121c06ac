//go:build agentledger_next

package schema

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing/fstest"
)

// nextStepsVariable is the environment variable with the number of steps, from 0 to 2, that the program has from
// versions that do not exist. Only programs for tests of upgrades are built with such steps.
const nextStepsVariable = "NEXT_STEPS_OF_TESTS"

// nextStep is a step of a version that does not exist.
type nextStep struct {
	sql            string
	added, removed string // lines of the schema
	contracts      bool   // programs without these steps cannot write after it
}

// own returns the released steps, followed by the first ones of versions that do not exist.
func own() (source, error) {
	s, err := released()
	if err != nil {
		return s, err
	}
	steps, err := s.steps()
	if err != nil {
		return s, err
	}
	count, err := strconv.Atoi(os.Getenv(nextStepsVariable))
	if err != nil {
		return s, err
	}
	files := fstest.MapFS{}
	if err := copyFiles(files, s.files); err != nil {
		return s, err
	}
	newest := steps[len(steps)-1]
	for i, next := range []nextStep{
		{
			sql: "ALTER TABLE head ADD COLUMN note bytea; ALTER TABLE event ADD COLUMN note bytea;\n" +
				"CREATE TABLE extra (org int8 NOT NULL PRIMARY KEY, value bytea NOT NULL);",
			added: "column head.note: bytea\ncolumn event.note: bytea\ntable extra: plain, logged\n" +
				"column extra.org: bigint, not null\ncolumn extra.value: bytea, not null\n" +
				"constraint extra_pkey of extra: PRIMARY KEY (org)\nindex extra_pkey of extra: unique btree (org)\n",
		},
		{sql: "ALTER TABLE head DROP COLUMN note;", removed: "column head.note: bytea\n", contracts: true},
	}[:count] {
		lowest := newest.Lowest
		if next.contracts {
			lowest = newest.Version + 1
		}
		number := newest.Version + int64(i) + 1
		files[fmt.Sprintf("%05d_next.sql", number)] = &fstest.MapFile{
			Data: fmt.Appendf(nil, "-- Lowest: %d\n\n-- +goose Up\n%s\n", lowest, next.sql)}
		s.text = strings.Replace(s.text+next.added, next.removed, "", 1)
	}
	s.files = files
	return s, nil
}

func copyFiles(to fstest.MapFS, from fs.FS) error {
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, name)
		to[name] = &fstest.MapFile{Data: text}
		return err
	})
}
