package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// lockSQL reads the versions of records and keeps other transactions from changing them until the transaction ends. It
// takes the locks in key order, so that two transactions do not deadlock. It looks up each record by its whole key;
// while there are few records, the planner would execute a join by reading all records of the organization.
const lockSQL = `SELECT r.kind, r.key, r.version
FROM (SELECT * FROM unnest($2::bytea[], $3::bytea[]) AS names (kind, key) ORDER BY kind, key) AS c
CROSS JOIN LATERAL (SELECT kind, key, version FROM record WHERE record.org = $1 AND record.kind = c.kind AND record.key = c.key FOR UPDATE) AS r`

const putSQL = `INSERT INTO record (org, kind, key, value, version)
SELECT $1::int8, * FROM unnest($2::bytea[], $3::bytea[], $4::bytea[], $5::int8[])
ON CONFLICT (org, kind, key) DO NOTHING`

// replaceSQL is for records that exist and are locked.
const replaceSQL = `INSERT INTO record (org, kind, key, value, version)
SELECT $1::int8, * FROM unnest($2::bytea[], $3::bytea[], $4::bytea[], $5::int8[])
ON CONFLICT (org, kind, key) DO UPDATE SET value = excluded.value, version = excluded.version`

const removeSQL = `DELETE FROM record WHERE org = $1 AND kind = $2 AND key = $3`

// recordName identifies a record of one tenant.
type recordName struct {
	kind storage.Kind
	key  string
}

// staged is the combined result of the changes to one record.
type staged struct {
	recordName
	stored  uint64 // version before the changes; 0 if absent
	version uint64 // version after the changes; 0 if deleted
	value   []byte
}

// change checks the changes in order and writes their results, or returns an *storage.ItemError. If it returns errMet,
// the whole transaction must be retried.
func change(ctx context.Context, tx pgx.Tx, t id.Tenant, changes []storage.Change) error {
	if len(changes) == 0 {
		return nil
	}
	stored, err := lockVersions(ctx, tx, t, changes)
	if err != nil {
		return err
	}
	all, err := stage(changes, stored)
	if err != nil {
		return err
	}
	var created, replaced, removed recordColumns
	for _, s := range all {
		switch {
		case s.stored == 0 && s.version > 0:
			created.addRecord(s)
		case s.version > 0:
			replaced.addRecord(s)
		case s.stored > 0:
			removed.addRecord(s)
		}
	}
	return write(ctx, tx, t, &created, &replaced, &removed)
}

func lockVersions(ctx context.Context, tx pgx.Tx, t id.Tenant, changes []storage.Change) (map[recordName]uint64, error) {
	var names recordColumns
	for i := range changes {
		names.addRecord(staged{recordName: recordName{changes[i].Kind, changes[i].Key}})
	}
	rows, err := tx.Query(ctx, lockSQL, int64(t), names.kind, names.key)
	if err != nil {
		return nil, err
	}
	versions := make(map[recordName]uint64, len(changes))
	var kind, key []byte
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&kind, &key, &version}, func() error {
		versions[recordName{storage.Kind(kind), string(key)}] = uint64(version)
		return nil
	})
	return versions, err
}

// stage applies the changes in order, each to the result of the earlier ones. It returns the result for each record.
func stage(changes []storage.Change, stored map[recordName]uint64) ([]staged, error) {
	at := make(map[recordName]int, len(changes))
	all := make([]staged, 0, len(changes))
	for i := range changes {
		c := &changes[i]
		name := recordName{c.Kind, c.Key}
		n, again := at[name]
		if !again {
			n = len(all)
			at[name] = n
			all = append(all, staged{recordName: name, stored: stored[name], version: stored[name]})
		}
		s := &all[n]
		if c.If != storage.AnyVersion && c.If != s.version {
			return nil, &storage.ItemError{Item: c.Item, Err: storage.ErrStale}
		}
		next, err := c.NextVersion(s.version)
		if err != nil {
			return nil, err
		}
		s.value, s.version = c.Value, next
	}
	return all, nil
}

// recordColumns contains columns of table record.
type recordColumns struct {
	kind, key, value [][]byte
	version          []int64
}

func (c *recordColumns) addRecord(s staged) {
	c.kind = append(c.kind, []byte(s.kind))
	c.key = append(c.key, []byte(s.key))
	c.value = append(c.value, s.value)
	c.version = append(c.version, int64(s.version))
}

func write(ctx context.Context, tx pgx.Tx, t id.Tenant, created, replaced, removed *recordColumns) error {
	org := int64(t)
	if len(created.key) > 0 {
		tag, err := tx.Exec(ctx, putSQL, org, created.kind, created.key, created.value, created.version)
		if err != nil {
			return err
		}
		if tag.RowsAffected() != int64(len(created.key)) {
			return errMet
		}
	}
	if len(replaced.key) > 0 {
		if _, err := tx.Exec(ctx, replaceSQL, org, replaced.kind, replaced.key, replaced.value, replaced.version); err != nil {
			return err
		}
	}
	if len(removed.key) == 0 {
		return nil
	}
	var b pgx.Batch // one round trip
	for i := range removed.key {
		b.Queue(removeSQL, org, removed.kind[i], removed.key[i])
	}
	return tx.SendBatch(ctx, &b).Close()
}
