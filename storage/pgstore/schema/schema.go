// Package schema upgrades the tables of a store to the version of a program, and decides which programs may use them.
// Package pgstore calls it before it opens a store, and regularly while the store is open.
//
// The schema has a number. Each step raises it by one and states the oldest schema that a program must know to write after
// the step. A step that does not change the latter expands the schema: older programs continue to work. A step that raises
// it contracts the schema: programs that know only older schemas stop.
//
// Invariants:
//
//   - A step is one transaction together with its number, so it is applied completely or not at all.
//   - A program does not use a store whose lowest number is above the newest step that it knows. A newer schema with a lower
//     number is used unchanged, and its tables are compared with the text that the newer program stored.
//   - The lowest number is raised before the step that needs it, under a lock that every append and every join of a node
//     waits for. So no append of an older program is applied afterwards. The step follows after graceTime, when every
//     running older program has seen the number (pgstore.Engine).
//   - The lowest number is not raised while a node with an older program is alive.
//   - A step waits at most stepLockTimeout at a time for a lock of another session, because appends queue behind it.
//   - A program whose master key differs from those of the living nodes changes nothing.
package schema

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/storage"
)

// ErrRefused is returned if the program may not use the database, now or until an operator has changed something.
// Restarting the program does not help.
var ErrRefused = errors.New("this program may not use the database")

// ErrOlder is returned by Check if the schema has an earlier version. Bring upgrades such a schema.
var ErrOlder = errors.New("the schema has version")

// Program is a program that opens a store.
type Program struct {
	Version string       // for messages
	Keys    []string     // fingerprints of its master keys, newest first; if nil, not compared with those of the nodes
	Logger  *slog.Logger // if nil, messages are discarded

	known  source
	steps  []Step
	pauses pauses
}

// pauses are the waiting times of a start. All programs use the defaults; tests shorten them.
type pauses struct {
	sighting time.Duration // within which a living node must have beaten
	grace    time.Duration // between raising the lowest number and the step that needs it
	locked   time.Duration // before a step whose tables were in use is retried
	lease    time.Duration // after which the turn of a dead program expires
}

// graceTime is longer than a running older program takes to detect that it is too old, plus the duration of its calls
// that started before.
const graceTime = 4 * time.Second

// New returns a program with the steps that it was built with.
func New(version string, keys []string, logger *slog.Logger) (*Program, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	known, err := released()
	if err != nil {
		return nil, fmt.Errorf("read the steps of the schema: %w", err)
	}
	steps, err := known.steps()
	if err != nil {
		return nil, err
	}
	return &Program{Version: version, Keys: keys, Logger: logger, known: known, steps: steps,
		pauses: pauses{sighting: 2200 * time.Millisecond, grace: graceTime, locked: 300 * time.Millisecond,
			lease: 10 * time.Second}}, nil
}

// Newest returns the number of the newest schema that the program knows.
func (p *Program) Newest() int64 { return p.steps[len(p.steps)-1].Version }

// Bring upgrades the schema to the program's version, and compares the tables. A newer schema that admits the program
// is left unchanged. Programs may call it concurrently. Errors wrap ErrRefused if the program may not use the database.
func (p *Program) Bring(ctx context.Context, config *pgx.ConnConfig) error {
	conn, s, err := p.connect(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := p.compareKeys(ctx, conn, s); err != nil {
		return err
	}
	if s.number < p.Newest() {
		if err := p.takeSteps(ctx, conn, config, s); err != nil {
			return fmt.Errorf("upgrade the schema from version %d to %d: %w", s.number, p.Newest(), err)
		}
	}
	if s.described < p.Newest() {
		if err := p.describe(ctx, conn); err != nil {
			return err
		}
	}
	return p.compareTables(ctx, conn)
}

// Check returns an error if the schema does not admit the program or is older, and changes nothing.
func (p *Program) Check(ctx context.Context, config *pgx.ConnConfig) error {
	conn, s, err := p.connect(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if s.number < p.Newest() {
		return fmt.Errorf("%w %d, this program needs %d: start the server once, which upgrades it", ErrOlder,
			s.number, p.Newest())
	}
	return p.compareTables(ctx, conn)
}

// connect connects to a database that admits the program. The caller must close the connection.
func (p *Program) connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, state, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, state{}, unreachable(err)
	}
	s, err := p.admit(ctx, conn)
	if err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, state{}, err
	}
	return conn, s, nil
}

// admit reads the state, and returns ErrRefused if the schema does not admit the program.
func (p *Program) admit(ctx context.Context, conn *pgx.Conn) (state, error) {
	s, err := readState(ctx, conn)
	if err != nil {
		return s, err
	}
	if s.number < writerStep {
		return s, nil // every step after writerStep is known to have the number
	}
	return s, p.refuseOld(s.lowest, s.version)
}

// Querier is a connection or a pool.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

const lowestSQL = `SELECT lowest, version FROM writer WHERE org = 0`

// Ask returns ErrRefused if the database accepts only newer programs, and another error if it cannot be queried.
func (p *Program) Ask(ctx context.Context, q Querier) error {
	var lowest int64
	var version []byte
	if err := q.QueryRow(ctx, lowestSQL).Scan(&lowest, &version); err != nil {
		return fmt.Errorf("read the lowest schema: %w", unreachable(err))
	}
	return p.refuseOld(lowest, string(version))
}

// refuseOld returns ErrRefused if the database accepts only newer programs.
func (p *Program) refuseOld(lowest int64, by string) error {
	if lowest <= p.Newest() {
		return nil
	}
	return fmt.Errorf("%w: since %s it accepts only programs that know schema %d or a newer one; this is %s and knows "+
		"schema %d. Install the newer program", ErrRefused, named(by), lowest, named(p.Version), p.Newest())
}

// named returns the version of a program for messages.
func named(version string) string {
	if version == "" {
		return "a program without a version"
	}
	return "version " + version
}

// compareTables compares the tables with the text of the schema that the database has.
func (p *Program) compareTables(ctx context.Context, conn *pgx.Conn) error {
	s, err := readState(ctx, conn)
	if err != nil {
		return err
	}
	want := p.known.text
	if s.number > p.Newest() {
		if s.described != s.number {
			return fmt.Errorf("the schema is being upgraded to version %d, or a program died during the upgrade: "+
				"start the newer program", s.number)
		}
		want = s.tables
	}
	return compare(ctx, conn, want)
}

// takeSteps applies the remaining steps in order.
func (p *Program) takeSteps(ctx context.Context, conn *pgx.Conn, config *pgx.ConnConfig, s state) error {
	lowest, grace := p.steps[max(s.number, writerStep)-1].Lowest, p.pauses.grace
	if s.number < writerStep {
		grace = 0 // no running program checks the number
	}
	for _, step := range p.steps[s.number:] {
		if step.Version <= writerStep || step.Lowest <= lowest {
			continue // it is applied together with the next ones
		}
		if err := p.stepUpTo(ctx, config, step.Version-1); err != nil {
			return err
		}
		if err := p.raiseLowest(ctx, conn, step, grace); err != nil {
			return fmt.Errorf("step %d: %w", step.Version, err)
		}
		lowest = step.Lowest
	}
	return p.stepUpTo(ctx, config, p.Newest())
}

func unreachable(err error) error { return fmt.Errorf("%w: %w", storage.ErrUnavailable, err) }
