package index

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// The kinds of records of the index. They are derived (storage.Kind.Derived), so they are never exported.
const (
	kindProgress storage.Kind = "derived/index"          // key ""
	kindPostings storage.Kind = "derived/index_postings" // generation/bucket/block
	kindColumns  storage.Kind = "derived/index_columns"  // generation/chunk
)

// generation is a copy of the index of a ledger, with the position behind its last event.
type generation struct {
	Number   uint64   `json:"number"`
	Position id.Index `json:"position"` // a multiple of chunkEvents
}

// progress says which generations a ledger has.
type progress struct {
	Current generation  `json:"current"`           // which is read
	Next    *generation `json:"next,omitempty"`    // which is built to replace it; nil: none
	Dropped *uint64     `json:"dropped,omitempty"` // whose records are being deleted; nil: none
}

func (x *Index) progressRecords() records.Store[progress] {
	return records.New[progress](x.store, kindProgress, "The index can't be read")
}

// readProgress returns the progress of a ledger, the zero value for one without an index.
func (x *Index) readProgress(ctx context.Context, t id.Tenant) (records.Versioned[progress], error) {
	return x.progressRecords().Get(ctx, t, "")
}

func generationPrefix(number uint64) string { return fmt.Sprintf("%08x/", number) }

func postingsKey(number uint64, bucket byte, block uint64) string {
	return fmt.Sprintf("%08x/%02x/%08x", number, bucket, block)
}

func columnsKey(number, chunk uint64) string { return fmt.Sprintf("%08x/%010x", number, chunk) }

// readRecord returns the value of a record, nil when it is absent.
func (x *Index) readRecord(ctx context.Context, t id.Tenant, kind storage.Kind, key string) ([]byte, error) {
	found, err := x.store.Scan(ctx, t, kind, key, key+"\x00", 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0].Value, nil
}
