package pgstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

const headSQL = `SELECT size, root, last, last_received, epoch, config_version FROM head WHERE org = $1`

// Head implements storage.Ledgers.
func (e *Engine) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	if err := e.beginCall(ctx); err != nil {
		return storage.Head{}, fmt.Errorf("read head: %w", err)
	}
	defer e.endCall()
	h, found, err := readHead(ctx, e.pool, t)
	if err == nil && !found {
		err = storage.ErrNotFound
	}
	if err != nil {
		return storage.Head{}, fmt.Errorf("read head: %w", err)
	}
	return h, nil
}

func readHead(ctx context.Context, q querier, t id.Tenant) (h storage.Head, found bool, err error) {
	rows, err := q.Query(ctx, headSQL, int64(t))
	if err != nil {
		return h, false, readError(err)
	}
	h, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (h storage.Head, err error) {
		var root, last []byte
		var size, received, epoch, config int64
		if err := row.Scan(&size, &root, &last, &received, &epoch, &config); err != nil {
			return h, err
		}
		h = storage.Head{Size: id.Index(size), LastReceived: id.Instant(received), Epoch: uint64(epoch), ConfigVersion: uint64(config)}
		if !parseHash(&h.Root, root) || !parseHash(&h.Last, last) {
			return h, corruptValue("head")
		}
		return h, nil
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return storage.Head{}, false, nil
	}
	return h, err == nil, readError(err)
}

// parseHash copies a stored hash and reports whether its length is valid.
func parseHash(dst *id.Hash, v []byte) bool { return copy(dst[:], v) == len(v) && len(v) == len(dst) }

// Lookup implements storage.Ledgers.
func (e *Engine) Lookup(ctx context.Context, t id.Tenant, names []storage.DedupKey) ([]id.Index, error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("look up names: %w", err)
	}
	defer e.endCall()
	if len(names) == 0 {
		return nil, nil
	}
	found, err := e.names.Find(ctx, t, names)
	if err != nil {
		return nil, fmt.Errorf("look up names: %w", readError(err))
	}
	return found, nil
}

const countersSQL = `SELECT name, value FROM counter WHERE org = $1 AND name = ANY ($2::bytea[])`

// Counters implements storage.Ledgers.
func (e *Engine) Counters(ctx context.Context, t id.Tenant, names []string) ([]uint64, error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	defer e.endCall()
	if len(names) == 0 {
		return nil, nil
	}
	queried := make([][]byte, len(names))
	for i, n := range names {
		queried[i] = []byte(n)
	}
	known := make(map[string]uint64, len(names))
	rows, err := e.pool.Query(ctx, countersSQL, int64(t), queried)
	if err == nil {
		var name []byte
		var value int64
		_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
			known[string(name)] = uint64(value)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read counters: %w", readError(err))
	}
	values := make([]uint64, len(names))
	for i, n := range names {
		values[i] = known[n]
	}
	return values, nil
}

// Tenants implements storage.Ledgers.
func (e *Engine) Tenants(ctx context.Context) iter.Seq2[id.Tenant, error] {
	return tenantPages(ctx, e.readPage)
}

// Survey implements storage.Surveyor.
func (e *Engine) Survey(ctx context.Context, q storage.SurveyQuestion) iter.Seq2[storage.SurveyedLedger, error] {
	return surveyPages(ctx, q, e.readPage)
}

func (e *Engine) readPage(ctx context.Context, page func(querier) error) error {
	if err := e.beginCall(ctx); err != nil {
		return err
	}
	defer e.endCall()
	return readError(page(e.pool))
}
