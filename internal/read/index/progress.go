package index

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// The kinds of records of the index. They are derived (storage.Kind.Derived), so they are never exported.
const (
	kindProgress storage.Kind = "derived/index"          // key "": a position of package follow
	kindPostings storage.Kind = "derived/index_postings" // generation/bucket/block
	kindRecent   storage.Kind = "derived/index_recent"   // generation/group/chunk
	kindColumns  storage.Kind = "derived/index_columns"  // generation/chunk
	kindActs     storage.Kind = "derived/index_acts"     // generation/chunk
	kindValues   storage.Kind = "derived/index_values"   // generation/chunk
)

// The number of a generation contains the version of its form in the bits above formBits, so an older form has a
// smaller number.
const (
	form     = 4
	formBits = 24
)

// generation is a copy of the index of a ledger, with the position after its last event.
type generation struct {
	Number   uint64     `json:"number"`
	Position id.Index   `json:"position"` // a multiple of chunkEvents
	Merges   mergeState `json:"merges,omitzero"`
	Columns  []Column   `json:"columns,omitempty"` // sorted by path; those whose values its records may contain
	Lost     bool       `json:"lost,omitzero"`     // a damaged record of values was deleted
}

func (g generation) wholeBlocks() uint64 { return uint64(g.Position) / blockEvents }

// progress contains the generations of a ledger. The position of the current one is the position of the follower.
type progress struct {
	Current  generation  `json:"-"`                 // the generation that is read
	Number   uint64      `json:"generation"`        // of Current
	Merges   mergeState  `json:"merges,omitzero"`   // of Current
	Columns  []Column    `json:"columns,omitempty"` // of Current
	Next     *generation `json:"next,omitempty"`    // being built to replace Current; may be nil
	Dropping bool        `json:"dropping,omitzero"` // records below Current are being deleted
	Erased   id.Index    `json:"erased,omitzero"`   // the values of events that were erased before this event are gone
	Erasing  *erasing    `json:"erasing,omitempty"` // the values of later erasures are being removed; may be nil
	Lost     bool        `json:"lost,omitzero"`     // of Current
}

// erasing is how far the values of events that were erased before an event have been removed.
type erasing struct {
	Number uint64   `json:"generation"` // done in earlier ones
	Chunk  uint64   `json:"chunk"`      // done in earlier chunks of the generation
	End    id.Index `json:"end"`        // the erasures before this event
}

// readProgress parses the note of a position. An index of another form counts as absent, and its records are deleted.
func readProgress(p follow.Position) progress {
	var found progress
	err := json.Unmarshal([]byte(p.Note), &found)
	if err != nil || found.Number>>formBits != form {
		return progress{Current: generation{Number: form << formBits}, Dropping: true}
	}
	found.Current = generation{found.Number, p.Next, found.Merges, found.Columns, found.Lost}
	return found
}

// note returns the note that readProgress parses.
func (p progress) note() (string, error) {
	p.Number, p.Merges, p.Columns, p.Lost = p.Current.Number, p.Current.Merges, p.Current.Columns, p.Current.Lost
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

// readRecord returns the value of a record, or nil if it is absent.
func (x *Index) readRecord(ctx context.Context, t id.Tenant, kind storage.Kind, key string) ([]byte, error) {
	found, err := x.store.Scan(ctx, t, kind, key, key+"\x00", 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0].Value, nil
}
