package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/internal/syncs"
)

const (
	lockEpochSQL  = `SELECT epoch FROM lease_epoch WHERE org = 0 FOR UPDATE`
	lockWriterSQL = `LOCK TABLE writer IN ACCESS EXCLUSIVE MODE`
	forgetSQL     = `DELETE FROM node USING unnest($1::bytea[], $2::int8[]) AS seen (id, beats)
WHERE node.org = 0 AND node.id = seen.id AND node.beats = seen.beats`
	olderSQL = `SELECT count(*) FROM node WHERE org = 0 AND coalesce(schema, 7) < $1`
	raiseSQL = `UPDATE writer SET lowest = greatest(lowest, $1), version = $2 WHERE org = 0`
)

// raiseLowest raises the lowest number to that of a step, once no living node knows only older schemas. It returns
// after the time in which every running older program has seen the number.
func (p *Program) raiseLowest(ctx context.Context, conn *pgx.Conn, step Step, grace time.Duration) error {
	older := func(r row) bool { return r.schema < step.Lowest }
	for {
		alive, silent, err := p.findLiving(ctx, conn, step.Version-1, older)
		if err != nil {
			return err
		}
		if len(alive) > 0 {
			return refuseStep(step, alive)
		}
		err = p.untilFree(ctx, func() error { return p.raiseOnce(ctx, conn, step, silent) })
		if err == nil {
			break
		}
		if !errors.Is(err, errOlderNode) {
			return err
		}
	}
	p.Logger.InfoContext(ctx, "the database accepts only newer programs from now on", "lowest_schema", step.Lowest)
	return syncs.Sleep(ctx, grace)
}

func refuseStep(step Step, alive []row) error {
	names := make([]string, len(alive))
	for i, r := range alive {
		names[i] = r.name()
	}
	return fmt.Errorf("%w yet: nodes serve from it whose programs do not know schema %d: %s. Upgrade them to the "+
		"version before this one, one after another, or stop them", ErrRefused, step.Lowest,
		strings.Join(names, ", "))
}

// errOlderNode is returned by raiseOnce if an older node has joined in the meantime.
var errOlderNode = errors.New("an older node has joined")

// raiseOnce raises the number in one transaction, during which no append is in flight and no node joins.
func (p *Program) raiseOnce(ctx context.Context, conn *pgx.Conn, step Step, silent []row) error {
	ids, beats := make([][]byte, len(silent)), make([]int64, len(silent))
	for i, r := range silent {
		ids[i], beats[i] = r.id, r.beats
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '"+stepLockTimeout+"'"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, lockEpochSQL); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, lockWriterSQL); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, forgetSQL, ids, beats); err != nil {
			return err
		}
		older := int64(0)
		if err := tx.QueryRow(ctx, olderSQL, step.Lowest).Scan(&older); err != nil {
			return err
		}
		if older > 0 {
			return errOlderNode
		}
		_, err := tx.Exec(ctx, raiseSQL, step.Lowest, []byte(p.Version))
		return err
	})
}
