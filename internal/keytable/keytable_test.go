package keytable

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

const red, blue = id.Tenant(1), id.Tenant(2)

func fixedTime() time.Time { return time.UnixMilli(1_000_000) }

func signer(t testing.TB, n int) edkey.Private {
	t.Helper()
	seed := bytes.Repeat([]byte{7}, edkey.SeedSize)
	seed[0], seed[1] = byte(n), byte(n>>8)
	k, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// use asks for a verifier, waits until no table is being built, and checks that the verifier distinguishes good
// signatures from bad ones.
func use(t *testing.T, tables *Tables, owner id.Tenant, k edkey.Private) event.Verifier {
	t.Helper()
	v := tables.Verifier(owner, k.Public())
	waitForBuilds(tables)
	sig := k.Sign([]byte("message"))
	if !v.Verify([]byte("message"), sig[:]) || v.Verify([]byte("other"), sig[:]) {
		t.Fatalf("%T: wrong answer", v)
	}
	return v
}

func waitForBuilds(tables *Tables) {
	for range cap(tables.slots) {
		tables.slots <- struct{}{}
	}
	for range cap(tables.slots) {
		<-tables.slots
	}
}

func isTable(v event.Verifier) bool {
	_, ok := v.(*edkey.Table)
	return ok
}

func count(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

func TestBuiltAtTheThirdUse(t *testing.T) {
	tables := New(Options{Bytes: 64 << 20, Clock: fixedTime})
	for _, k := range []edkey.Private{signer(t, 1), signer(t, 2)} {
		var got []bool
		for range 5 {
			got = append(got, isTable(use(t, tables, red, k)))
		}
		if want := [5]bool{3: true, 4: true}; [5]bool(got) != want {
			t.Errorf("got tables %v, want %v", got, want)
		}
	}
	if hits, misses := count(t, tables.metrics.hits), count(t, tables.metrics.misses); hits != 4 || misses != 6 {
		t.Errorf("got %v hits and %v misses, want 4 and 6", hits, misses)
	}
}

func TestTurnedOff(t *testing.T) {
	for _, size := range []int64{0, 1, shards*edkey.TableBytes - 1} {
		tables := New(Options{Bytes: size, Clock: fixedTime})
		for range 5 {
			if isTable(use(t, tables, red, signer(t, 1))) {
				t.Errorf("%d bytes: got a table", size)
			}
		}
	}
}

// Many keys stay within the memory bound, and a key that is always in use keeps its table.
func TestBoundOfMemory(t *testing.T) {
	const room = shards * 4
	now := fixedTime()
	tables := New(Options{Bytes: room * edkey.TableBytes, Clock: func() time.Time { now = now.Add(buildInterval); return now }})
	busy := signer(t, 0)
	for range 4 {
		use(t, tables, blue, busy)
	}
	for i := range 10 * room {
		for range 3 {
			use(t, tables, red, signer(t, 1+i))
			if !isTable(use(t, tables, blue, busy)) {
				t.Fatalf("after %d other keys: the busy key has no table", i)
			}
		}
		if got := tables.tables.TotalWeight(); got > room*edkey.TableBytes {
			t.Fatalf("tables weigh %d, want %d at most", got, room*edkey.TableBytes)
		}
	}
	if got := tables.tables.Len(); got < room/2 {
		t.Errorf("got %d tables, want about %d", got, room)
	}
}

// An organization that keeps using new keys gets a limited number of tables per second, and another organization gets
// its own.
func TestAttackByManyKeys(t *testing.T) {
	tables := New(Options{Bytes: 1 << 30, Clock: fixedTime})
	for i := range 3 * buildsAtOnce {
		for range 3 {
			use(t, tables, red, signer(t, i))
		}
	}
	if got := tables.tables.Len(); got != buildsAtOnce {
		t.Errorf("got %d tables of the attacker, want %d", got, buildsAtOnce)
	}
	for range 3 {
		use(t, tables, blue, signer(t, 4*buildsAtOnce))
	}
	if !isTable(use(t, tables, blue, signer(t, 4*buildsAtOnce))) {
		t.Error("the neighbour got no table")
	}
}

// More keys than fit, all used equally: few tables are built, and a new key of another organization gets one within a
// second.
func TestMoreKeysThanRoom(t *testing.T) {
	const room, organizations = shards * 2, 50
	now := fixedTime()
	tables := New(Options{Bytes: room * edkey.TableBytes, Clock: func() time.Time { return now }})
	begun := now
	for i := range 4000 {
		now = now.Add(time.Millisecond)
		use(t, tables, id.Tenant(10+i%organizations), signer(t, i%(10*room)))
	}
	got, most := builds(t, tables), uint64(room+replacesAtOnce+now.Sub(begun)/replaceTogether)
	if got > most {
		t.Errorf("got %d tables in %v, want %d at most", got, now.Sub(begun), most)
	}
	for i := 0; !isTable(use(t, tables, blue, signer(t, 5000))); i++ {
		if now = now.Add(10 * time.Millisecond); i > 100 {
			t.Fatal("the neighbour's key got no table in a second")
		}
		use(t, tables, red, signer(t, 6000+i%40))
	}
}

func builds(t *testing.T, tables *Tables) uint64 {
	t.Helper()
	var m dto.Metric
	if err := tables.metrics.builds.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetHistogram().GetSampleCount()
}

// No caller waits, and no key is lost, if all builders are busy.
func TestBusyBuilders(t *testing.T) {
	tables := New(Options{Bytes: 64 << 20, Clock: fixedTime})
	for range cap(tables.slots) {
		tables.slots <- struct{}{}
	}
	k := signer(t, 1)
	for range 10 {
		if isTable(tables.Verifier(red, k.Public())) {
			t.Fatal("got a table that was not built")
		}
	}
	for range cap(tables.slots) {
		<-tables.slots
	}
	use(t, tables, red, k)
	if !isTable(use(t, tables, red, k)) {
		t.Error("got no table after a builder was free")
	}
}

func TestManyCallers(t *testing.T) {
	tables := New(Options{Bytes: shards * 2 * edkey.TableBytes, Clock: fixedTime})
	var wrong atomic.Int64
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range 200 {
				k := signer(t, (i*7+caller)%40)
				sig := k.Sign([]byte("message"))
				v := tables.Verifier(id.Tenant(1+caller%2), k.Public())
				if !v.Verify([]byte("message"), sig[:]) || v.Verify([]byte("messagf"), sig[:]) {
					wrong.Add(1)
				}
			}
		})
	}
	callers.Wait()
	waitForBuilds(tables)
	if wrong.Load() != 0 {
		t.Errorf("got %d wrong answers", wrong.Load())
	}
}

func TestMetrics(t *testing.T) {
	for size, want := range map[int64]float64{0: 0, 64 << 20: float64(edkey.BaseBytes + edkey.TableBytes)} {
		tables, registry := New(Options{Bytes: size, Clock: fixedTime}), prometheus.NewRegistry()
		tables.Register(registry)
		for range 3 {
			use(t, tables, red, signer(t, 1))
		}
		families, err := registry.Gather()
		if err != nil || len(families) != 3 {
			t.Fatalf("got %d metrics, %v, want 3", len(families), err)
		}
		for _, f := range families {
			if f.GetName() == "agentledger_key_table_bytes" && f.GetMetric()[0].GetGauge().GetValue() != want {
				t.Errorf("%d bytes: got %v, want %v", size, f.GetMetric()[0].GetGauge().GetValue(), want)
			}
		}
	}
}
