package schema

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/internal/syncs"
)

// row is a row of table node.
type row struct {
	id, url, version, key []byte
	beats                 int64
	schema                int64 // newest schema that its program knows
}

func (r row) name() string {
	if len(r.url) == 0 {
		return fmt.Sprintf("a process that serves alone (%s)", named(string(r.version)))
	}
	return fmt.Sprintf("%s (%s)", r.url, named(string(r.version)))
}

// Before writerStep, the table has no column for the schema of a node.
const (
	nodesSQL       = `SELECT id, url, version, key, beats, coalesce(schema, 7) FROM node WHERE org = 0`
	nodesBeforeSQL = `SELECT id, url, version, key, beats, 7::int8 FROM node WHERE org = 0`
)

func readNodes(ctx context.Context, conn *pgx.Conn, number int64) ([]row, error) {
	query := nodesSQL
	if number < writerStep {
		query = nodesBeforeSQL
	}
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", unreachable(err))
	}
	all, err := pgx.CollectRows(rows, func(c pgx.CollectableRow) (r row, err error) {
		return r, c.Scan(&r.id, &r.url, &r.version, &r.key, &r.beats, &r.schema)
	})
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", unreachable(err))
	}
	return all, nil
}

// findLiving returns the matching nodes that beat during a short wait, and those that do not. If no node matches, it
// does not wait.
func (p *Program) findLiving(ctx context.Context, conn *pgx.Conn, number int64,
	match func(row) bool) (alive, silent []row, err error) {
	before, err := readNodes(ctx, conn, number)
	if err != nil || !slices.ContainsFunc(before, match) {
		return nil, nil, err
	}
	if err := syncs.Sleep(ctx, p.pauses.sighting); err != nil {
		return nil, nil, err
	}
	after, err := readNodes(ctx, conn, number)
	for _, now := range after {
		same := func(r row) bool { return slices.Equal(r.id, now.id) && r.beats == now.beats }
		switch {
		case !match(now):
		case slices.ContainsFunc(before, same):
			silent = append(silent, now)
		default:
			alive = append(alive, now)
		}
	}
	return alive, silent, err
}

// compareKeys rejects a program whose master keys are not those of the living nodes. The error contains no key.
func (p *Program) compareKeys(ctx context.Context, conn *pgx.Conn, s state) error {
	if p.Keys == nil || !s.hasNodes {
		return nil
	}
	foreign := func(r row) bool { return !slices.Contains(p.Keys, string(r.key)) }
	alive, _, err := p.findLiving(ctx, conn, s.number, foreign)
	if err != nil || len(alive) == 0 {
		return err
	}
	return fmt.Errorf("%w: the master key is not the one of the nodes that serve from it. Give this node the "+
		"master key of the others, or those of both sides of a change", ErrRefused)
}
