package index

import (
	"errors"
	"fmt"
	"math/rand/v2"
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
	f.Add(columnsOf(rows).encode())
	f.Fuzz(func(t *testing.T, record []byte) {
		var c columns
		err := c.decode(record)
		n := len(c.received)
		if err == nil && n != chunkEvents || err != nil && !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("columns: got %d rows, %v", n, err)
		}
	})
}

// Columns are read as they were written, with few texts and with more than a byte can number.
func TestColumns(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, tools := range []int{1, narrow, narrow + 1, chunkEvents} {
		rows := make([]Row, chunkEvents)
		for i := range rows {
			rows[i] = Row{Agent: id.Agent(fmt.Sprint("agt_", random.IntN(9))), Tool: id.Tool(fmt.Sprint("tool_", i%tools)), Kind: "k", Rule: fmt.Sprint("r", i%3),
				ReceivedAt: id.Instant(random.Uint32()), Effective: id.Decision(random.IntN(4)), Declared: id.Decision(random.IntN(4))}
		}
		var c columns
		if err := c.decode(columnsOf(rows).encode()); err != nil {
			t.Fatal(err)
		}
		for i, want := range rows {
			text := func(column int) string { return c.texts[column][c.numbers[column][i]] }
			got := Row{Agent: id.Agent(text(agentColumn)), Tool: id.Tool(text(toolColumn)), Kind: text(kindColumn), Rule: text(ruleColumn),
				ReceivedAt: c.received[i], Effective: id.Decision(c.decisions[i] >> 2), Declared: id.Decision(c.decisions[i] & 3)}
			if got != want {
				t.Fatalf("%d tools: row %d: got %+v, want %+v", tools, i, got, want)
			}
		}
	}
}
