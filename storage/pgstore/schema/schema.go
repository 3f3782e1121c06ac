// Package schema brings the tables of a store up to the version of a program, and says which programs may use them.
//
// The schema has a number. Each step raises it by one and names the oldest schema that a program may know to write
// after it. A step that leaves that number as it was expands the schema: programs before it go on. A step that raises
// it contracts the schema: programs that know less end.
//
// Invariants:
//
//   - A step is one transaction with its number, so that it is there as a whole or not at all.
//   - A program uses no store whose lowest number is above the newest step that it knows. A newer schema with a lower
//     number is used as it is, and its tables are compared with the text that the newer program left.
//   - The lowest number is raised before the step that needs it, under a lock that each append and each join of a node
//     waits for. So no append of an older program is applied afterwards. The step comes graceTime later, when every
//     older program that runs has seen the number (Guard).
//   - The lowest number is not raised while a node lives whose program knows less.
//   - A step waits for a lock of another session for stepLockTimeout at a time, because appends wait behind it.
//   - A program whose master key is not one of those of a living node changes nothing.
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

// ErrRefused: the program may not use the database, today or until an operator has changed something. To start it
// again is of no use.
var ErrRefused = errors.New("this program may not use the database")

// ErrOlder is returned by Check if the schema is of an earlier version. Bring upgrades such a schema.
var ErrOlder = errors.New("the schema has version")

// Program is a program that opens a store.
type Program struct {
	Version string       // for people
	Keys    []string     // fingerprints of its master keys, the newest first; nil: not compared with those of nodes
	Logger  *slog.Logger // nil discards

	known  source
	steps  []Step
	pauses pauses
}

// pauses are how long a start waits. The default is that of every program.
type pauses struct {
	sighting time.Duration // until a node that lives must have beaten
	grace    time.Duration // from the raise of the lowest number until the step that needs it
	locked   time.Duration // until a step is tried again whose tables were in use
	lease    time.Duration // of the turn of a program that dies
}

// graceTime is longer than an older program that runs takes to see that it is too old (Guard), and than its
// calls that began before.
const graceTime = 4 * time.Second

// New returns a program with the steps that it was built with.
func New(version string, keys []string, logger *slog.Logger) (*Program, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	known, err := own()
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

// Bring brings the schema up to the program's, and compares the tables. A newer schema that takes the program stays as
// it is. Programs may call it at the same time. Errors wrap ErrRefused if the program may not use the database.
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
			return fmt.Errorf("bring the schema from version %d to %d: %w", s.number, p.Newest(), err)
		}
	}
	if s.described < p.Newest() {
		if err := p.describe(ctx, conn); err != nil {
			return err
		}
	}
	return p.compareTables(ctx, conn)
}

// Check refuses a schema that does not take the program, or that is older, and changes nothing.
func (p *Program) Check(ctx context.Context, config *pgx.ConnConfig) error {
	conn, s, err := p.connect(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if s.number < p.Newest() {
		return fmt.Errorf("%w %d, this program needs %d: start the server once, which brings it up", ErrOlder,
			s.number, p.Newest())
	}
	return p.compareTables(ctx, conn)
}

// connect connects to a database that takes the program. The caller closes the connection.
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

// admit reads the state, and refuses a schema that does not take the program.
func (p *Program) admit(ctx context.Context, conn *pgx.Conn) (state, error) {
	s, err := readState(ctx, conn)
	if err != nil {
		return s, err
	}
	if s.number < writerStep {
		return s, nil // any step after writerStep has the number
	}
	return s, p.refuseOld(s.lowest, s.version)
}

// Querier is a connection or a pool.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

const lowestSQL = `SELECT lowest, version FROM writer WHERE org = 0`

// Ask returns ErrRefused if the database takes newer programs only, and another error if it can't be asked.
func (p *Program) Ask(ctx context.Context, q Querier) error {
	var lowest int64
	var version []byte
	if err := q.QueryRow(ctx, lowestSQL).Scan(&lowest, &version); err != nil {
		return fmt.Errorf("read the lowest schema: %w", unreachable(err))
	}
	return p.refuseOld(lowest, string(version))
}

// refuseOld returns ErrRefused for a database that takes newer programs only.
func (p *Program) refuseOld(lowest int64, by string) error {
	if lowest <= p.Newest() {
		return nil
	}
	return fmt.Errorf("%w: since %s it takes programs that know schema %d or a newer one; this one is %s and knows "+
		"schema %d. Install the newer program", ErrRefused, named(by), lowest, named(p.Version), p.Newest())
}

// named returns the version of a program for people.
func named(version string) string {
	if version == "" {
		return "a program without a version"
	}
	return "version " + version
}

// compareTables compares the tables with the text of the schema that is there.
func (p *Program) compareTables(ctx context.Context, conn *pgx.Conn) error {
	s, err := readState(ctx, conn)
	if err != nil {
		return err
	}
	want := p.known.text
	if s.number > p.Newest() {
		if s.described != s.number {
			return fmt.Errorf("the schema is being brought to version %d, or a program died meanwhile: "+
				"start the newer program", s.number)
		}
		want = s.tables
	}
	return compare(ctx, conn, want)
}

// takeSteps takes the steps that are left, in their order.
func (p *Program) takeSteps(ctx context.Context, conn *pgx.Conn, config *pgx.ConnConfig, s state) error {
	lowest, grace := p.steps[max(s.number, writerStep)-1].Lowest, p.pauses.grace
	if s.number < writerStep {
		grace = 0 // no program that runs looks at the number
	}
	for _, step := range p.steps[s.number:] {
		if step.Version <= writerStep || step.Lowest <= lowest {
			continue // it is taken with the ones behind it
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
