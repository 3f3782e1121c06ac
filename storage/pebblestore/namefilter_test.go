package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
)

// store contains the names of several ledgers, sorted as in a store.
type store map[id.Tenant][]uint64

func (s store) apply(t id.Tenant, n uint64) {
	at, _ := slices.BinarySearch(s[t], n)
	s[t] = slices.Insert(s[t], at, n)
}

// cursor iterates over the names of a ledger, and then over one of the next ledger.
type cursor struct {
	ledger id.Tenant
	names  []uint64
	at     int
	err    error
}

func (c *cursor) SeekGE(key []byte) bool {
	if c.at = 0; len(key) > 8 {
		c.at, _ = slices.BinarySearch(c.names, binary.BigEndian.Uint64(key[8:]))
	}
	return true
}

func (c *cursor) Next() bool {
	c.at++
	return c.err == nil && c.at <= len(c.names)
}

func (c *cursor) Key() []byte {
	if c.at == len(c.names) {
		return filterKey(c.ledger+1, 0)
	}
	return filterKey(c.ledger, c.names[c.at])
}

func (c *cursor) Error() error { return c.err }

func ledgerKey(t id.Tenant) []byte { return binary.BigEndian.AppendUint64(nil, uint64(t)) }

func filterKey(t id.Tenant, n uint64) []byte { return binary.BigEndian.AppendUint64(ledgerKey(t), n) }

func (s store) sweep(f *nameFilter, t id.Tenant, most int) error {
	return f.Sweep(t, &cursor{ledger: t, names: s[t]}, ledgerKey(t), ledgerKey(t+1), most)
}

// appendName does what an engine does when an event is appended. It reports whether the name was known to be absent.
func (s store) appendName(f *nameFilter, t id.Tenant, n uint64) (absent bool) {
	v := f.View(t)
	if !v.Whole() {
		if due := f.Due(t, 1, 0); due > 0 {
			_ = s.sweep(f, t, due)
			v = f.View(t)
		}
	}
	absent = v.Absent(filterKey(t, n))
	s.apply(t, n)
	f.Add(filterKey(t, n))
	return absent
}

// A name that was applied is never considered absent, while sweeps run next to appends of two ledgers, and with filters
// that are repeatedly full. Most new names are known to be absent.
func TestAppliedNamesAreNeverAbsent(t *testing.T) {
	for _, layers := range []int{1, 2} {
		t.Run(fmt.Sprint("layers=", layers), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(layers)))
			f, s := newNameFilter(), make(store)
			f.most = layers
			skipped, events := 0, 3*capacity(layers)/2
			for i := range events {
				ledger := id.Tenant(1 + rng.IntN(2))
				if held := s[ledger]; len(held) > 0 {
					old := held[rng.IntN(len(held))]
					if f.View(ledger).Absent(filterKey(ledger, old)) {
						t.Fatalf("event %d: name %x was applied and is taken for absent", i, old)
					}
				}
				if s.appendName(f, ledger, rng.Uint64()) {
					skipped++
				}
			}
			if f.resets == 0 || skipped < events/2 {
				t.Errorf("%d resets, %d of %d names without a search: the test does not test", f.resets, skipped, events)
			}
		})
	}
}

func TestNewNamesAreAbsent(t *testing.T) {
	f, s := newNameFilter(), make(store)
	for n := range uint64(40_000) {
		f.Add(filterKey(2, n)) // of another ledger
	}
	if err := s.sweep(f, 1, 1); err != nil {
		t.Fatal(err)
	}
	taken := 0
	for n := range uint64(40_000) {
		if !f.View(1).Absent(filterKey(1, n)) {
			taken++
		}
	}
	if taken > 200 {
		t.Errorf("%d of 40,000 new names may be there, want less than 200", taken)
	}
}

// A ledger has no view before a sweep has read its last name.
func TestSweep(t *testing.T) {
	f, s := newNameFilter(), make(store)
	for n := range uint64(100) {
		s.apply(1, n)
		s.apply(2, n)
	}
	for range 3 {
		if err := s.sweep(f, 1, 30); err != nil || f.View(1).Whole() {
			t.Fatalf("a part was read: got %v, whole %t", err, f.View(1).Whole())
		}
	}
	failed := &cursor{ledger: 1, names: s[1], err: errors.New("read")}
	if err := f.Sweep(1, failed, ledgerKey(1), ledgerKey(2), 30); !errors.Is(err, failed.err) || f.View(1).Whole() {
		t.Fatalf("a read failed: got %v, whole %t", err, f.View(1).Whole())
	}
	if err := s.sweep(f, 1, 30); err != nil || !f.View(1).Whole() || f.View(2).Whole() {
		t.Fatalf("all was read: got %v, whole %t, the neighbour %t", err, f.View(1).Whole(), f.View(2).Whole())
	}
	for n := range uint64(100) {
		if f.View(1).Absent(filterKey(1, n)) {
			t.Errorf("name %d is taken for absent", n)
		}
	}
}

func TestDue(t *testing.T) {
	f, s := newNameFilter(), make(store)
	for _, c := range []struct {
		searched int
		size     id.Index
		want     int
	}{
		{searchesFirst - 1, 5, 0},
		{1, 5, 0},
		{1, 5, sweptFirst + sweptEach},
		{10, 5, sweptFirst + 10*sweptEach},
		{10, id.Index(capacity(maxLayers)), 0}, // does not fit
	} {
		if got := f.Due(1, c.searched, c.size); got != c.want {
			t.Errorf("%d names, %d events: got %d, want %d", c.searched, c.size, got, c.want)
		}
	}
	if err := s.sweep(f, 1, 1); err != nil {
		t.Fatal(err)
	}
	if got := f.Due(1, 10, 5); got != 0 {
		t.Errorf("all was read: got %d, want 0", got)
	}
}

func TestManyLedgers(t *testing.T) {
	f := newNameFilter()
	for i := range id.Tenant(maxLedgers + 1) {
		f.Due(1+i, 1, 1)
	}
	if len(f.ledgers) != 1 || f.resets != 1 {
		t.Errorf("got %d ledgers and %d resets, want 1 and 1", len(f.ledgers), f.resets)
	}
}
