package index

import (
	"errors"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Damaged columns are rejected, and never make the reader fail otherwise.
func FuzzColumns(f *testing.F) {
	rows := make([]Row, chunkEvents)
	for i := range rows {
		rows[i] = Row{Agent: "a", Tool: id.Tool([]string{"x", "y"}[i%2]), ReceivedAt: id.Instant(i)}
	}
	f.Add(encodeColumns(rows))
	f.Fuzz(func(t *testing.T, record []byte) {
		n := 0
		err := visitColumns(record, 0, func(*Row) { n++ })
		if err == nil && n != chunkEvents || err != nil && !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("columns: got %d rows, %v", n, err)
		}
	})
}
