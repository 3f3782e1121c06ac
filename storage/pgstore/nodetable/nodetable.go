// Package nodetable stores the nodes of a service, and their leases, in the tables of its PostgreSQL database. It implements
// cluster.Table.
//
// Invariants:
//
//   - A beat is one transaction with one commit. Like an append, it waits for the standby, so a node whose appends cannot
//     become durable soon owns nothing.
//   - Steps that change members or leases lock the only row of lease_epoch. So they are serialized, and the leases of an
//     epoch become visible together.
//   - That lock is taken before the row of any node, and a beat without changes locks only its own row. So steps do not
//     deadlock.
//   - A beat without changes leaves no transaction open, because its commit is sent with it. A node that is cut off during
//     another step loses its locks after a second and a half. The others forget it only later, so they never wait for it.
package nodetable

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/storage"
)

// Transactor runs transactions on the database.
type Transactor interface {
	// Transact runs work in one transaction. If work returns an error, nothing was applied.
	Transact(ctx context.Context, work func(pgx.Tx) error) error
	// Send runs statements in one transaction, with one round trip.
	Send(ctx context.Context, statements *pgx.Batch) error
	// Schema returns the number of the newest schema that the program knows.
	Schema() int64
}

// Table is a cluster.Table. Its methods may be called concurrently.
type Table struct{ database Transactor }

var _ cluster.Table = (*Table)(nil)

// New returns the table of a database, whose schema is that of package pgstore.
func New(database Transactor) *Table { return &Table{database} }

// joinSQL adds no node whose program is too old for the database (package schema).
const joinSQL = `INSERT INTO node (org, id, beats, leaving, url, version, key, schema, protocol)
SELECT 0, $1::bytea, 0, $7::int2, $2::bytea, $3::bytea, $4::bytea, $5::int8, $6::int8 FROM writer
WHERE writer.org = 0 AND writer.lowest <= $5::int8`

var errTooOld = errors.New("the database accepts only newer programs")

// Join implements cluster.Table.
func (t *Table) Join(ctx context.Context, node cluster.Node) error {
	err := t.database.Transact(ctx, func(tx pgx.Tx) error {
		joined, err := tx.Exec(ctx, joinSQL, node.ID[:], []byte(node.URL), []byte(node.Version), []byte(node.Key),
			t.database.Schema(), int64(node.Protocol), flag(node.Leaving))
		if err == nil && joined.RowsAffected() == 0 {
			err = errTooOld
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("add node: %w", err)
	}
	return nil
}

// Beat implements cluster.Table.
func (t *Table) Beat(ctx context.Context, s cluster.Step) (v cluster.View, err error) {
	if s.HasChanges() {
		err = t.database.Transact(ctx, func(tx pgx.Tx) (err error) {
			v, err = applyStep(ctx, tx, s)
			return err
		})
	} else {
		v, err = t.beatOnly(ctx, s)
	}
	if err != nil {
		return cluster.View{}, fmt.Errorf("beat: %w", err)
	}
	return v, nil
}

// beatOnly applies a step without changes, as nearly all steps are. It sends all statements at once, including the
// commit: each round trip takes long on a busy machine, and a late beat is worthless.
func (t *Table) beatOnly(ctx context.Context, s cluster.Step) (v cluster.View, err error) {
	b, begin := &pgx.Batch{}, beginning{}
	begin.queueBeat(b, s)
	queueView(b, s.Known, &v)
	if err := t.database.Send(ctx, b); err != nil {
		return v, err
	}
	return v, begin.check()
}

const (
	lockEpochSQL = `SELECT epoch, ` + endSoon + ` FROM lease_epoch WHERE org = 0 FOR UPDATE`
	readStateSQL = `SELECT epoch, clock_timestamp() FROM lease_epoch WHERE org = 0`
	beatSQL      = `UPDATE node SET beats = beats + 1, leaving = $2 WHERE org = 0 AND id = $1
AND $3 <= (SELECT epoch FROM lease_epoch WHERE org = 0)`
	readNodesSQL = `SELECT id, beats, leaving, url, version, key, coalesce(protocol, 1) FROM node WHERE org = 0`
	leasesSQL    = `SELECT shard, epoch, owner FROM lease WHERE org = 0 AND epoch > $1`
)

// endSoon makes the server end the transaction if the node sends nothing for this long.
const endSoon = `set_config('idle_in_transaction_session_timeout', '1500ms', true)`

// applyStep applies a step with changes. It locks the epoch before the row of any node, so that two steps cannot
// deadlock. All statements are sent at once. If the node is not a member, they are rolled back.
func applyStep(ctx context.Context, tx pgx.Tx, s cluster.Step) (v cluster.View, err error) {
	b, begin := &pgx.Batch{}, beginning{}
	b.Queue(lockEpochSQL).QueryRow(func(row pgx.Row) error { return row.Scan(nil, nil) })
	begin.queueBeat(b, s)
	queueChanges(b, s)
	queueView(b, s.Known, &v)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return v, err
	}
	return v, begin.check()
}

// beginning contains the results of the first statements of a step.
type beginning struct {
	beaten int64 // number of nodes whose count was incremented
}

func (g *beginning) queueBeat(b *pgx.Batch, s cluster.Step) {
	b.Queue(beatSQL, s.Node[:], flag(s.Leaving), int64(s.Known)).Exec(func(tag pgconn.CommandTag) error {
		g.beaten = tag.RowsAffected()
		return nil
	})
}

// check returns cluster.ErrForgotten if the node is not a member, or knows a later epoch than the database.
func (g *beginning) check() error {
	if g.beaten == 0 {
		return cluster.ErrForgotten
	}
	return nil
}

func flag(b bool) int16 {
	if b {
		return 1
	}
	return 0
}

const (
	forgetSQL = `DELETE FROM node USING unnest($1::bytea[], $2::int8[]) AS seen (id, beats)
WHERE node.org = 0 AND node.id = seen.id AND node.beats = seen.beats AND node.id <> $3`
	raiseEpochSQL = `UPDATE lease_epoch SET epoch = epoch + 1 WHERE org = 0`
	newEpoch      = `(SELECT epoch FROM lease_epoch WHERE org = 0)`
	giveSQL       = `UPDATE lease SET owner = gift.receiver, epoch = ` + newEpoch + `
FROM unnest($2::int2[], $3::int8[], $4::bytea[]) AS gift (shard, epoch, receiver)
WHERE lease.org = 0 AND lease.shard = gift.shard AND lease.epoch = gift.epoch AND lease.owner = $1
AND EXISTS (SELECT FROM node WHERE node.org = 0 AND node.id = gift.receiver)`
	takeSQL = `UPDATE lease SET owner = $1, epoch = ` + newEpoch + `
WHERE org = 0 AND shard = ANY ($2::int2[])
AND (owner = $1 OR NOT EXISTS (SELECT FROM node WHERE node.org = 0 AND node.id = lease.owner))`
	leaveSQL = `DELETE FROM node WHERE org = 0 AND id = $1`
)

// queueChanges queues the changes of a step, in a transaction that holds the lock of the epoch.
func queueChanges(b *pgx.Batch, s cluster.Step) {
	if len(s.Forget) > 0 {
		ids, beats := sightings(s.Forget)
		b.Queue(forgetSQL, ids, beats, s.Node[:])
	}
	if s.ChangesLeases() {
		b.Queue(raiseEpochSQL)
	}
	if len(s.Give) > 0 {
		shards, epochs, receivers := gifts(s.Give)
		b.Queue(giveSQL, s.Node[:], shards, epochs, receivers)
	}
	if len(s.Take) > 0 {
		b.Queue(takeSQL, s.Node[:], shardNumbers(s.Take))
	}
	if s.Leave {
		b.Queue(leaveSQL, s.Node[:])
	}
}

func sightings(seen []cluster.Sighting) (ids [][]byte, beats []int64) {
	for _, s := range seen {
		ids, beats = append(ids, s.Node[:]), append(beats, int64(s.Beats))
	}
	return ids, beats
}

func gifts(all []cluster.Gift) (shards []int16, epochs []int64, receivers [][]byte) {
	for _, g := range all {
		shards, epochs = append(shards, int16(g.Lease.Shard)), append(epochs, int64(g.Lease.Epoch))
		receivers = append(receivers, g.To[:])
	}
	return shards, epochs, receivers
}

func shardNumbers(shards []cluster.Shard) (numbers []int16) {
	for _, s := range shards {
		numbers = append(numbers, int16(s))
	}
	return numbers
}

// queueView reads the epoch before the leases, so that no lease of that epoch is missed.
func queueView(b *pgx.Batch, known cluster.Epoch, v *cluster.View) {
	b.Queue(readStateSQL).QueryRow(func(row pgx.Row) error {
		epoch := int64(0)
		err := row.Scan(&epoch, &v.Time)
		v.Epoch = cluster.Epoch(epoch)
		return err
	})
	queueRows(b, scanNode, &v.Nodes, readNodesSQL)
	queueRows(b, scanLease, &v.Leases, leasesSQL, int64(known))
}

func queueRows[T any](b *pgx.Batch, scan pgx.RowToFunc[T], into *[]T, sql string, args ...any) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, scan)
		return err
	})
}

func scanNode(row pgx.CollectableRow) (n cluster.Node, err error) {
	var nodeID, url, version, key []byte
	var beats, protocol int64
	var leaving int16
	if err := row.Scan(&nodeID, &beats, &leaving, &url, &version, &key, &protocol); err != nil {
		return n, err
	}
	n = cluster.Node{URL: string(url), Version: string(version), Key: string(key), Protocol: int(protocol),
		Leaving: leaving != 0, Beats: uint64(beats)}
	return n, parseNodeID(&n.ID, nodeID)
}

func scanLease(row pgx.CollectableRow) (l cluster.Lease, err error) {
	var owner []byte
	var shard int16
	var epoch int64
	if err := row.Scan(&shard, &epoch, &owner); err != nil {
		return l, err
	}
	l = cluster.Lease{Shard: cluster.Shard(shard), Epoch: cluster.Epoch(epoch)}
	if len(owner) == 0 {
		return l, nil
	}
	return l, parseNodeID(&l.Owner, owner)
}

func parseNodeID(n *cluster.NodeID, v []byte) error {
	if copy(n[:], v) != len(v) || len(v) != len(n) {
		return fmt.Errorf("id of a node: %w", storage.ErrCorrupt)
	}
	return nil
}
