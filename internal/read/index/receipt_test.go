package index_test

import (
	"testing"

	"github.com/agentledger/agentledger/internal/read/index"
)

// Results without the receipt of a tool cost no allocation.
func TestResultsWithoutReceipts(t *testing.T) {
	payload := []byte(`{"call_id":"c1","parent_event_id":"e1","phase":"result","receipt":"R-1009","status":"ok"}`)
	if n := testing.AllocsPerRun(100, func() {
		if index.ReadReceipt(payload) != nil {
			t.Fatal("a receipt")
		}
	}); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

// BenchmarkReadReceipt is what each result without a receipt costs the follower of the index.
func BenchmarkReadReceipt(b *testing.B) {
	payload := []byte(`{"call_id":"c1","input_digest":"0000000000000000000000000000000000000000000000000000000000000000","parent_event_id":"e1","phase":"result","status":"ok"}`)
	b.ReportAllocs()
	for b.Loop() {
		index.ReadReceipt(payload)
	}
}
