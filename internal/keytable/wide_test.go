package keytable

import (
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

func isWide(v event.Verifier) bool {
	table, ok := v.(*edkey.Table)
	return ok && table.IsWide()
}

// useOften asks for the verifier of a key until its wide table is due, and waits for the table.
func useOften(tables *Tables, owner id.Tenant, k edkey.Private) {
	for range buildAt {
		tables.Verifier(owner, k.Public())
		waitForBuilds(tables)
	}
	for range widenAt {
		tables.Verifier(owner, k.Public())
	}
	waitForBuilds(tables)
}

// A wide table is built when the narrow one was used often enough, and not before.
func TestWideTables(t *testing.T) {
	tables := New(Options{Bytes: 64 << 20, Clock: fixedTime})
	often, seldom := signer(t, 1), signer(t, 2)
	for _, k := range []edkey.Private{often, seldom} {
		for range buildAt + widenAt - 2 {
			tables.Verifier(red, k.Public())
			if tables.uses.Len() > 0 { // no table yet
				waitForBuilds(tables)
			}
		}
	}
	for i, want := range []bool{false, false, true, true} {
		if got := isWide(use(t, tables, red, often)); got != want {
			t.Errorf("use %d: got a wide table %v, want %v", buildAt+widenAt-1+i, got, want)
		}
	}
	if !isTable(use(t, tables, red, seldom)) || isWide(use(t, tables, red, seldom)) {
		t.Error("a key that was used less often has no narrow table")
	}
}

// A caller that finds all builders busy gets the narrow table, and a later one the wide table.
func TestWideTableWaitsForABuilder(t *testing.T) {
	tables := New(Options{Bytes: 64 << 20, Clock: fixedTime})
	k := signer(t, 1)
	for range buildAt {
		use(t, tables, red, k)
	}
	for range cap(tables.slots) {
		tables.slots <- struct{}{}
	}
	for range widenAt + 10 {
		if v := tables.Verifier(red, k.Public()); !isTable(v) || isWide(v) {
			t.Fatalf("got %T, want a narrow table", v)
		}
	}
	for range cap(tables.slots) {
		<-tables.slots
	}
	use(t, tables, red, k)
	if !isWide(use(t, tables, red, k)) {
		t.Error("got no wide table after a builder was free")
	}
}

// More busy keys than fit into wide tables: memory stays bounded, each table is earned by its uses, and another
// organization's narrow tables stay.
func TestBoundOfWideTables(t *testing.T) {
	const size = 12 * wideShare * edkey.WideTableBytes
	tables := New(Options{Bytes: size, Clock: fixedTime})
	neighbour := signer(t, 1000)
	for range buildAt {
		use(t, tables, blue, neighbour)
	}
	const keys = 30
	for round := range 2 {
		for i := range keys {
			if k := signer(t, i); round > 0 && !isWide(use(t, tables, red, k)) && isWide(use(t, tables, red, k)) {
				t.Fatalf("key %d: got a wide table anew by one use", i)
			}
			useOften(tables, red, signer(t, i))
			if got := tables.totalWeight(); got > size {
				t.Fatalf("tables weigh %d, want %d at most", got, size)
			}
			if got, most := tables.wide.TotalWeight(), int64(size/wideShare); got > most || got == 0 {
				t.Fatalf("wide tables weigh %d, want up to %d", got, most)
			}
		}
		if got, most := builds(t, tables), uint64(1+keys+(round+1)*keys); got > most {
			t.Errorf("round %d: got %d tables built, want %d at most", round, got, most)
		}
	}
	if !isTable(use(t, tables, blue, neighbour)) {
		t.Error("the neighbour has lost its table")
	}
}

// If its share has no capacity for a wide table, all memory is for narrow ones.
func TestNoWideTables(t *testing.T) {
	const size = wideShare*edkey.WideTableBytes - 1
	tables := New(Options{Bytes: size, Clock: fixedTime})
	k := signer(t, 1)
	useOften(tables, red, k)
	if v := use(t, tables, red, k); !isTable(v) || isWide(v) {
		t.Errorf("got %T, want a narrow table", v)
	}
}
