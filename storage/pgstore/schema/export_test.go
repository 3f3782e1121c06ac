package schema

import (
	"context"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/storage/pgstore/schema/upgradetest"
)

// With returns a program of a version with additional steps and short waits.
func (p *Program) With(version string, more ...upgradetest.Step) (*Program, error) {
	q := *p
	last := p.steps[len(p.steps)-1]
	var err error
	q.known.files, q.known.text, err = upgradetest.Extend(p.known.files, p.known.text, last.Version, last.Lowest, more...)
	if err != nil {
		return nil, err
	}
	q.Version = version
	q.pauses = pauses{sighting: 600 * time.Millisecond, grace: 50 * time.Millisecond, locked: 20 * time.Millisecond,
		lease: time.Second}
	q.steps, err = q.known.steps()
	return &q, err
}

// BringTo applies the steps up to a version, as an older program left the store, and does not compare the tables.
func (p *Program) BringTo(ctx context.Context, config *pgx.ConnConfig, version int64) error {
	return p.stepUpTo(ctx, config, version)
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
