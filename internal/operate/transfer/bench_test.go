package transfer_test

import (
	"flag"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

var moved = flag.Int("events", 20_000, "events that BenchmarkMove moves")

func pebbleOnDisk(t testing.TB) storagetest.Engine {
	t.Helper()
	e, err := pebblestore.Open(pebblestore.Options{Dir: filepath.Join(t.TempDir(), "db"), CacheBytes: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// One organization with events of 1 KiB, on real disks: run it with -benchtime 1x and, for the numbers in the manual,
// -events 200000.
func BenchmarkMove(b *testing.B) {
	keyring := newKeyring(b)
	here := newHouse(b, pebbleOnDisk(b), keyring)
	here.start()
	here.found("red", "ann@example.com", 1).fill(*moved)
	here.stop()
	for _, to := range []struct {
		name   string
		engine func(testing.TB) storagetest.Engine
	}{{"postgres", postgres}, {"pebble", pebbleOnDisk}} {
		there := newHouse(b, to.engine(b), keyring)
		dir := filepath.Join(b.TempDir(), "export")
		steps := []struct {
			name string
			run  func()
		}{
			{"export", func() { here.export(dir, "") }},
			{"check", func() {
				if _, err := there.checkExport(dir, ""); err != nil {
					b.Fatal(err)
				}
			}},
			{"import", func() { there.imports(dir, "") }},
		}
		b.Run("to="+to.name, func(b *testing.B) {
			for range b.N { // later rounds have nothing to do
				for _, s := range steps {
					began, cpu := time.Now(), cpuTime(b)
					s.run()
					b.ReportMetric(float64(*moved)/time.Since(began).Seconds(), s.name+"-events/s")
					b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(*moved), s.name+"-cpu-µs/event")
				}
			}
		})
		here = there
	}
}

// cpuTime returns the processor time of this process so far. Unlike rates, it depends little on the load of the
// machine.
func cpuTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// fill stores n events of 1 KiB.
func (r *resident) fill(n int) {
	r.t.Helper()
	const batch = 1000
	for stored := 0; stored < n; stored += batch {
		prepares := make([]log.Prepare, min(batch, n-stored))
		for i := range prepares {
			prepares[i] = r.prepare(r.sized(), "")
		}
		for _, o := range r.ledgers.AppendAll(r.t.Context(), r.Tenant, prepares) {
			if o.Err != nil {
				r.t.Fatal(o.Err)
			}
		}
	}
}

// sized returns an event of 1 KiB.
func (r *resident) sized() *event.Envelope {
	const size = 1024
	e := r.signed(r.name("event"), "")
	return r.signed(r.name("event"), strings.Repeat("x", max(0, size-len(e.Canonical))))
}
