package schema

import (
	"fmt"
	"io/fs"
	"strings"
	"testing/fstest"
	"time"
)

// Next is a step of a version that does not exist.
type Next struct {
	SQL            string
	Added, Removed string // lines of the tables
	Contracts      bool   // programs that know only older schemas cannot write after this step
}

// Expanding and Contracting are such steps.
var (
	Expanding = Next{
		SQL: "ALTER TABLE head ADD COLUMN note bytea; ALTER TABLE event ADD COLUMN note bytea;\n" +
			"CREATE TABLE extra (org int8 NOT NULL PRIMARY KEY, value bytea NOT NULL);",
		Added: "column head.note: bytea\ncolumn event.note: bytea\ntable extra: plain, logged\n" +
			"column extra.org: bigint, not null\ncolumn extra.value: bytea, not null\n" +
			"constraint extra_pkey of extra: PRIMARY KEY (org)\nindex extra_pkey of extra: unique btree (org)\n",
	}
	Contracting = Next{SQL: "ALTER TABLE head DROP COLUMN note;", Removed: "column head.note: bytea\n", Contracts: true}
)

// With returns a program of a version with additional steps and short waits.
func (p *Program) With(version string, more ...Next) (*Program, error) {
	files := fstest.MapFS{}
	names, err := fs.Glob(p.known.files, "*.sql")
	for _, name := range names {
		if err != nil {
			return nil, err
		}
		var text []byte
		text, err = fs.ReadFile(p.known.files, name)
		files[name] = &fstest.MapFile{Data: text}
	}
	q := *p
	last := p.steps[len(p.steps)-1]
	for i, next := range more {
		number, lowest := last.Version+int64(i)+1, last.Lowest
		if next.Contracts {
			lowest = number - 1
		}
		files[fmt.Sprintf("%05d_next.sql", number)] = &fstest.MapFile{
			Data: fmt.Appendf(nil, "-- Lowest: %d\n\n-- +goose Up\n%s\n", lowest, next.SQL)}
		q.known.text = strings.Replace(q.known.text+next.Added, next.Removed, "", 1)
	}
	q.Version, q.known.files = version, files
	q.pauses = pauses{sighting: 600 * time.Millisecond, grace: 50 * time.Millisecond, locked: 20 * time.Millisecond,
		lease: time.Second}
	q.steps, err = q.known.steps()
	return &q, err
}

// WithKeys returns the program with other master keys.
func (p *Program) WithKeys(keys ...string) *Program {
	q := *p
	q.Keys = append([]string{}, keys...)
	return &q
}

// Steps returns the steps.
func (p *Program) Steps() []Step { return p.steps }

// StepsOf parses steps.
func StepsOf(files fs.FS) ([]Step, error) { return source{files: files}.steps() }
