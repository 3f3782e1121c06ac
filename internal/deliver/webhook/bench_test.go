package webhook_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/enginetest"
)

// BenchmarkWaiting makes waiting deliveries to one receiver on loopback. It reports the maximum growth of the heap,
// sampled every 1,000 deliveries.
func BenchmarkWaiting(b *testing.B) {
	for _, many := range []int64{10_000, 30_000, 100_000} {
		b.Run(fmt.Sprint("pebble/", many), func(b *testing.B) {
			keyring, err := seal.NewKeyring(seal.NewKey())
			if err != nil {
				b.Fatal(err)
			}
			caller := egress.New(egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
			for range b.N {
				b.StopTimer()
				store := enginetest.Pebble(b)
				var arrived, most atomic.Int64
				done := make(chan struct{})
				before := heapInUse()
				receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					n := arrived.Add(1)
					if n%1000 == 0 {
						most.Store(max(most.Load(), heapInUse()-before))
					}
					if n == many {
						close(done)
					}
				}))
				o := webhook.New(webhook.Options{Records: store, Keyring: keyring, Caller: caller})
				writeMany(b, o, store, red, receiver.URL, int(many))
				ctx, cancel := context.WithCancel(b.Context())
				b.StartTimer()
				go o.Run(ctx, slog.New(slog.DiscardHandler))
				<-done
				b.StopTimer()
				cancel()
				o.Run(ctx, slog.New(slog.DiscardHandler))
				receiver.Close()
				b.ReportMetric(float64(most.Load()>>20), "MiB")
				b.ReportMetric(float64(many)*float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
			}
		})
	}
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
