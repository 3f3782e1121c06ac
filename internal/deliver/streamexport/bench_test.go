package streamexport_test

import (
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

// BenchmarkExport sends 20,000 events to a receiver on loopback, which decodes them.
func BenchmarkExport(b *testing.B) {
	const many = 20_000
	for name, open := range map[string]func(testing.TB) storage.Engine{"pebble": enginetest.Pebble, "postgres": enginetest.Postgres} {
		for _, encoding := range []streamexport.Encoding{streamexport.EncodingProtobuf, streamexport.EncodingJSON} {
			b.Run(fmt.Sprint(name, "/", encoding), func(b *testing.B) {
				h, r := newHouse(b, open(b)), newReceiver(b)
				h.appendMany(red, many)
				b.ResetTimer()
				for range b.N {
					h.put(red, r.URL, fromIndex(0), func(r *streamexport.Request) { r.Encoding = encoding })
					for sent := 0; sent < many; {
						h.sweep()
						h.settle()
						for _, one := range r.take() {
							sent += len(one.records)
						}
					}
				}
				b.ReportMetric(many*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}
