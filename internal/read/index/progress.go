package index

import (
	"context"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/follow"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// The kinds of records of the index. They are derived (storage.Kind.Derived), so they are never exported.
const (
	kindProgress storage.Kind = "derived/index"          // key "": a position of package follow
	kindPostings storage.Kind = "derived/index_postings" // generation/bucket/block
	kindSingles  storage.Kind = "derived/index_singles"  // generation/bucket/block
	kindRecent   storage.Kind = "derived/index_recent"   // generation/group/chunk
	kindColumns  storage.Kind = "derived/index_columns"  // generation/chunk
)

// kinds are those that each generation has.
func kinds() []storage.Kind {
	return []storage.Kind{kindPostings, kindSingles, kindRecent, kindColumns}
}

// The number of a generation has the version of its form in the bits above formBits, so an older form is below.
const (
	form     = 2
	formBits = 24
)

// generation is a copy of the index of a ledger, with the position behind its last event.
type generation struct {
	Number   uint64   `json:"number"`
	Position id.Index `json:"position"` // a multiple of chunkEvents
}

// progress says which generations a ledger has. The position of the current one is that of the follower.
type progress struct {
	Current  generation  `json:"-"`                 // which is read
	Number   uint64      `json:"generation"`        // of Current
	Next     *generation `json:"next,omitempty"`    // which is built to replace it; nil: none
	Dropping bool        `json:"dropping,omitzero"` // records below Current are being deleted
}

// readProgress reads the note of a position. An index of another form counts as none, and its records are
// deleted.
func readProgress(p follow.Position) progress {
	var found progress
	err := json.Unmarshal([]byte(p.Note), &found)
	if err != nil || found.Number>>formBits != form {
		return progress{Current: generation{Number: form << formBits}, Dropping: true}
	}
	found.Current = generation{found.Number, p.Next}
	return found
}

// note is the note that readProgress reads.
func (p progress) note() (string, error) {
	p.Number = p.Current.Number
	text, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("encode progress: %w", err)
	}
	return string(text), nil
}

// readProgress returns the progress of a ledger.
func (x *Index) readProgress(ctx context.Context, t id.Tenant) (progress, error) {
	stored, err := records.New[follow.Position](x.store, kindProgress, "The index can't be read").Get(ctx, t, "")
	return readProgress(stored.Value), err
}

func generationPrefix(number uint64) string { return fmt.Sprintf("%08x/", number) }

// recordKey is the key of a bucket's postings of a block, or of a group's postings of a chunk.
func recordKey(number uint64, bucket uint16, part uint64) string {
	return fmt.Sprintf("%08x/%03x/%08x", number, bucket, part)
}

func errKey() error { return fmt.Errorf("postings: key: %w", storage.ErrCorrupt) }

// partOf reads the block or chunk of such a key.
func partOf(key string) (uint64, error) {
	if len(key) < 8 {
		return 0, errKey()
	}
	part, err := strconv.ParseUint(key[len(key)-8:], 16, 32)
	if err != nil {
		return 0, errKey()
	}
	return part, nil
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
