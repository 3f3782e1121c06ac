package pgstore

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// readPage calls page with a connection, to read one page, and translates its error. No connection is held between two
// pages.
type readPage func(ctx context.Context, page func(querier) error) error

// pageSize is the number of ledgers that are read at a time.
const pageSize = 1000

// A page of up to pageSize ledgers takes one statement, and a second one if records are read. The parameters are the
// first tenant, the last tenant and the number of ledgers; for recordsSQL, the tenants and kinds.
const (
	tenantsSQL = `SELECT org FROM head WHERE org >= $1 AND org <= $2 ORDER BY org LIMIT $3`
	headsSQL   = `SELECT org, size, root, last, last_received, epoch, config_version FROM head
WHERE org >= $1 AND org <= $2 ORDER BY org LIMIT $3`
	recordsSQL = `SELECT asked.org, asked.kind, r.value
FROM (SELECT org, kind FROM unnest($1::int8[]) AS org CROSS JOIN unnest($2::bytea[]) AS kind) AS asked
CROSS JOIN LATERAL (SELECT value FROM record
	WHERE record.org = asked.org AND record.kind = asked.kind AND record.key = '' LIMIT 1) AS r`
)

// tenantPages yields all tenants that have a ledger, in ascending order. It reads the next page only when the consumer
// needs it.
func tenantPages(ctx context.Context, read readPage) iter.Seq2[id.Tenant, error] {
	return pages(func(begin, last int64) (page []id.Tenant, err error) {
		err = read(ctx, func(q querier) error {
			rows, err := q.Query(ctx, tenantsSQL, begin, last, pageSize)
			if err != nil {
				return err
			}
			page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (id.Tenant, error) {
				var org int64
				err := row.Scan(&org)
				return id.Tenant(org), err
			})
			return err
		})
		return page, err
	}, func(t id.Tenant) id.Tenant { return t })
}

// surveyPages implements storage.Surveyor. It also reads the heads of tenants that are not wanted, and skips them.
func surveyPages(ctx context.Context, question storage.SurveyQuestion, read readPage) iter.Seq2[storage.SurveyedLedger, error] {
	all := pages(func(begin, last int64) (page []storage.SurveyedLedger, err error) {
		err = read(ctx, func(q querier) error {
			page, err = readHeads(ctx, q, begin, last)
			if err != nil {
				return err
			}
			return addRecords(ctx, q, question, page)
		})
		return page, err
	}, func(l storage.SurveyedLedger) id.Tenant { return l.Tenant })
	return func(yield func(storage.SurveyedLedger, error) bool) {
		for l, err := range all {
			if err == nil && l.Values == nil {
				continue // not wanted
			}
			if !yield(l, err) {
				return
			}
		}
	}
}

// pages yields the elements of all pages. read returns at most pageSize elements, in ascending order, of the tenants
// [begin, last].
func pages[T any](read func(begin, last int64) ([]T, error), tenant func(T) id.Tenant) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		// Tenants from 2^63 on are negative as int8.
		for _, half := range [][2]int64{{0, math.MaxInt64}, {math.MinInt64, -1}} {
			for begin, last, more := half[0], half[1], true; more; {
				page, err := read(begin, last)
				if err != nil {
					var none T
					yield(none, fmt.Errorf("list tenants: %w", err))
					return
				}
				for _, element := range page {
					if !yield(element, nil) {
						return
					}
				}
				if more = len(page) == pageSize; more {
					newest := int64(tenant(page[len(page)-1]))
					begin, more = newest+1, newest != last
				}
			}
		}
	}
}

func readHeads(ctx context.Context, q querier, begin, last int64) ([]storage.SurveyedLedger, error) {
	rows, err := q.Query(ctx, headsSQL, begin, last, pageSize)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l storage.SurveyedLedger, err error) {
		var root, last []byte
		var org, size, received, epoch, config int64
		if err := row.Scan(&org, &size, &root, &last, &received, &epoch, &config); err != nil {
			return l, err
		}
		l.Tenant = id.Tenant(org)
		l.Head = storage.Head{Size: id.Index(size), LastReceived: id.Instant(received), Epoch: uint64(epoch),
			ConfigVersion: uint64(config)}
		if len(root) != len(l.Head.Root) || len(last) != len(l.Head.Last) {
			l.Err = fmt.Errorf("head: %w", storage.ErrCorrupt)
		}
		copy(l.Head.Root[:], root)
		copy(l.Head.Last[:], last)
		return l, nil
	})
}

// addRecords adds the records of the wanted ledgers. Values stays nil for the others.
func addRecords(ctx context.Context, q querier, question storage.SurveyQuestion, page []storage.SurveyedLedger) error {
	selected := make(map[int64]*storage.SurveyedLedger, len(page))
	var orgs []int64
	for i := range page {
		if l := &page[i]; question.Wants(l.Tenant) {
			l.Values = map[storage.Kind][]byte{}
			selected[int64(l.Tenant)] = l
			orgs = append(orgs, int64(l.Tenant))
		}
	}
	if len(orgs) == 0 || len(question.Kinds) == 0 {
		return nil
	}
	kinds := make([][]byte, len(question.Kinds))
	for i, kind := range question.Kinds {
		kinds[i] = []byte(kind)
	}
	rows, err := q.Query(ctx, recordsSQL, orgs, kinds)
	if err != nil {
		return err
	}
	var org int64
	var kind, value []byte
	_, err = pgx.ForEachRow(rows, []any{&org, &kind, &value}, func() error {
		selected[org].Values[storage.Kind(kind)] = append([]byte{}, value...)
		return nil
	})
	return err
}
