package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// BenchmarkAppend writes events with envelopes of 1 KiB. Like the ledgers, it prepares each append while the previous
// one becomes durable. An operation is an event; generating the events counts in ns/op but not in events/s. on must
// open a store, call run with it and close it.
func BenchmarkAppend(b *testing.B, on func(b *testing.B, run func(storage.Engine))) {
	for _, c := range []struct{ size, tenants int }{
		{1, 1}, {16, 1}, {64, 1}, {256, 1}, {1024, 1}, {64, 64}, {256, 64}, {1024, 1024},
	} {
		b.Run(fmt.Sprintf("batch=%d/tenants=%d", c.size, c.tenants), func(b *testing.B) {
			on(b, func(e storage.Engine) { benchmarkAppend(b, e, c.size, c.tenants) })
		})
	}
}

func benchmarkAppend(b *testing.B, e storage.Engine, size, tenants int) {
	writers := make([]*Writer, tenants)
	for i := range writers {
		writers[i] = NewWriter(id.Tenant(i + 1))
		mustWait(b, e.Append([]storage.Batch{writers[i].Next(0)}))
	}
	var last storage.Pending
	var spent time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += size {
		batches := nextBatches(writers, min(size, b.N-done))
		start := time.Now()
		p := e.Append(batches)
		mustWait(b, last)
		spent += time.Since(start)
		last = p
	}
	start := time.Now()
	mustWait(b, last)
	spent += time.Since(start)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/spent.Seconds(), "events/s")
}

// nextBatches distributes n events among the writers.
func nextBatches(writers []*Writer, n int) (batches []storage.Batch) {
	for i, w := range writers {
		share := n / len(writers)
		if i < n%len(writers) {
			share++
		}
		if share > 0 {
			batches = append(batches, w.Next(share))
		}
	}
	return batches
}

func mustWait(b *testing.B, p storage.Pending) {
	b.Helper()
	if p == nil {
		return
	}
	for _, err := range p.Wait() {
		if err != nil {
			b.Fatal(err)
		}
	}
}
