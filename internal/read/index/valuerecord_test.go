package index

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/storage"
)

// A record of values can be read if every act of its chunk has the longest text in each of eight columns.
func TestLongestValues(t *testing.T) {
	var columns []Column
	for n := range 8 {
		columns = append(columns, Column{Path: fmt.Sprint("column", n)})
	}
	random := rand.NewChaCha8([32]byte{1})
	text := make([]byte, column.MaxText)
	all := newValues(columns)
	for at := range id.Index(chunkEvents) {
		cells := make([]column.Value, len(columns))
		for n := range cells {
			_, _ = random.Read(text)
			cells[n] = column.Value{Kind: column.Text, Text: string(text)}
		}
		all.add(at, cells, columns)
	}
	found, err := decodeValues(all.encode(0), 0)
	if err != nil || len(found) != len(columns) || len(found[7].cells) != chunkEvents || found[7].cells[chunkEvents-1] != all[7].cells[chunkEvents-1] {
		t.Errorf("got %d columns, %v", len(found), err)
	}
	if longest := maxStored * chunkEvents * (2 + 2 + column.MaxText); longest > maxValues {
		t.Errorf("%d columns have up to %d bytes", maxStored, longest)
	}
}

// valueStore has records of values, and counts how often they are read.
type valueStore struct {
	Store
	values map[string][]byte
	reads  int
}

func (s *valueStore) Scan(_ context.Context, _ id.Tenant, _ storage.Kind, begin, _ string, _ int) ([]storage.Record, error) {
	s.reads++
	if value := s.values[begin]; value != nil {
		return []storage.Record{{Key: begin, Value: value}}, nil
	}
	return nil, nil
}

// The removal of values reads each record once, in writes of at most maxErasedRecords, and compares values with ranges as a scan does.
func TestEraseEachRecordOnce(t *testing.T) {
	const chunks = 3*maxErasedRecords + 5
	columns := []Column{{Path: "a"}}
	store := &valueStore{values: map[string][]byte{}}
	for chunk := range uint64(chunks) {
		all := newValues(columns)
		for n := range id.Index(100) {
			all.add(id.Index(chunk*chunkEvents)+n*50, []column.Value{{Kind: column.Number, Number: 5}}, columns)
		}
		store.values[columnsKey(1, chunk)] = all.encode(id.Index(chunk * chunkEvents))
	}
	random := rand.New(rand.NewPCG(1, 2))
	var ranges []id.Range
	for range 400 {
		begin := id.Index(random.IntN(chunks * chunkEvents))
		ranges = append(ranges, id.Range{Begin: begin, End: begin + 1 + id.Index(random.IntN(1000))})
	}
	erased := func(at id.Index) bool {
		for _, r := range ranges {
			if r.Begin <= at && at < r.End {
				return true
			}
		}
		return false
	}
	x, g := &Index{store: store}, &generation{Number: 1, Position: chunks * chunkEvents, Columns: columns}
	joined := joinRanges(append([]id.Range(nil), ranges...))
	for from, done, steps := uint64(0), false, 0; !done; steps++ {
		searched := 0
		changes, next, ended, err := x.eraseValuesIn(t.Context(), 1, g, joined, from, nil, &searched)
		if err != nil || len(changes) > maxErasedRecords || steps > chunks {
			t.Fatalf("step %d: %d changes, %v", steps, len(changes), err)
		}
		for _, c := range changes {
			store.values[c.Key] = c.Value
		}
		from, done = next, ended
	}
	if store.reads > chunks {
		t.Errorf("%d records were read, of %d", store.reads, chunks)
	}
	for chunk := range uint64(chunks) {
		begin := id.Index(chunk * chunkEvents)
		left := map[id.Index]bool{}
		err := visitValues(store.values[columnsKey(1, chunk)], begin, func(string) bool { return true }, func(at id.Index, _ column.Value) { left[at] = true })
		if err != nil {
			t.Fatal(err)
		}
		for n := range id.Index(100) {
			if at := begin + n*50; left[at] == erased(at) {
				t.Fatalf("event %d: left %v, erased %v", at, left[at], erased(at))
			}
		}
	}
}
