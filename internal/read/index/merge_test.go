package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

const mergeRed, mergeBlue id.Tenant = 11, 12

// memory has records in memory, by tenant, kind and key.
type memory struct {
	names  []string // in ascending order
	values map[string][]byte
}

func newMemory() *memory { return &memory{values: map[string][]byte{}} }

func name(t id.Tenant, kind storage.Kind, key string) string {
	return fmt.Sprint(int64(t), " ", kind, " ", key)
}

func (m *memory) put(n string, value []byte) {
	if at, found := slices.BinarySearch(m.names, n); !found {
		m.names = slices.Insert(m.names, at, n)
	}
	m.values[n] = value
}

func (m *memory) Scan(_ context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) (found []storage.Record, err error) {
	at, _ := slices.BinarySearch(m.names, name(t, kind, begin))
	for ; at < len(m.names) && m.names[at] < name(t, kind, end) && len(found) < limit; at++ {
		n := m.names[at]
		found = append(found, storage.Record{Kind: kind, Key: strings.TrimPrefix(n, name(t, kind, "")), Value: m.values[n]})
	}
	return found, nil
}

func (m *memory) write(t id.Tenant, changes []storage.Change) {
	for _, c := range changes {
		n := name(t, c.Kind, c.Key)
		if c.Value != nil {
			m.put(n, c.Value)
			continue
		}
		if at, found := slices.BinarySearch(m.names, n); found {
			m.names = slices.Delete(m.names, at, at+1)
			delete(m.values, n)
		}
	}
}

// entry is one place of a term.
type entry struct {
	bucket      uint16
	fingerprint uint32
	block       uint64
	place       uint16
}

// fill writes blocks of random entries of a few buckets, as the index writes them, and returns the entries.
func (m *memory) fill(r *rand.Rand, t id.Tenant, blocks uint64) (all []entry) {
	for block := range blocks {
		for bucket := range uint16(3) {
			var record []byte
			of := map[uint32][]uint16{}
			for range r.IntN(6) {
				of[r.Uint32()] = append(of[0], uint16(r.IntN(1<<16)))
			}
			if r.IntN(2) == 0 {
				of[0xffffffff] = []uint16{3, 9}
				of[0] = []uint16{1}
			}
			for _, f := range slices.Sorted(maps.Keys(of)) {
				record = appendEntry(record, f, of[f])
				for _, place := range of[f] {
					all = append(all, entry{bucket, f, block, place})
				}
			}
			if record != nil {
				m.put(name(t, kindSingles, recordKey(7, bucket, block)), record)
			}
		}
	}
	return all
}

// find looks up a term at level 0 and in the merged records.
func find(t *testing.T, g merger, tenant id.Tenant, blocks uint64, window [2]uint64, bucket uint16, fingerprint uint32) (found []entry) {
	t.Helper()
	visit := func(block uint64, entries []byte) error {
		e, known, err := findEntry(entries, fingerprint)
		if err != nil || !known {
			return err
		}
		return e.VisitPlaces(func(place uint16) { found = append(found, entry{bucket, fingerprint, block, place}) })
	}
	singles, err := g.Store.Scan(t.Context(), tenant, kindSingles, recordKey(7, bucket, window[0]), recordKey(7, bucket, window[1]), 1<<20)
	for _, r := range singles {
		block, partErr := partOf(r.Key)
		err = errors.Join(err, partErr, visit(block, r.Value))
	}
	err = errors.Join(err, g.Visit(t.Context(), tenant, mergeTerm{Generation: 7, Bucket: bucket, Fingerprint: fingerprint, Blocks: blocks}, window, visit))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(found, func(a, b entry) int { return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.place, b.place)) })
	return found
}

func want(all []entry, window [2]uint64, bucket uint16, fingerprint uint32) (found []entry) {
	for _, e := range all {
		if e.bucket == bucket && e.fingerprint == fingerprint && e.block >= window[0] && e.block < window[1] {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b entry) int { return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.place, b.place)) })
	return found
}

// Each entry is found before, between and after the steps, in each window, even while blocks are added. The other
// organization's records do not change.
func TestMerging(t *testing.T) {
	for _, bits := range []int{1, 2, mergeBits} {
		t.Run(fmt.Sprint("bits=", bits), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(bits)))
			m := newMemory()
			g := merger{Store: m, Bits: bits}
			blocks := uint64(2<<(2*bits)) + 1
			all := m.fill(r, mergeRed, blocks)
			m.fill(r, mergeBlue, blocks)
			others := m.of(mergeBlue)
			check := func() {
				t.Helper()
				e := all[r.IntN(len(all))]
				if r.IntN(4) == 0 {
					e.fingerprint = r.Uint32()
				}
				begin := r.Uint64N(blocks)
				window := [2]uint64{begin, begin + 1 + r.Uint64N(blocks-begin)}
				if got, want := find(t, g, mergeRed, blocks, window, e.bucket, e.fingerprint), want(all, window, e.bucket, e.fingerprint); !slices.Equal(got, want) {
					t.Fatalf("%+v in %v: got %v, want %v", e, window, got, want)
				}
			}
			var s mergeState
			for steps := 0; ; steps++ {
				known := min(blocks, uint64(steps)) // the ledger grows in the meantime
				changes, next, err := g.Step(t.Context(), mergeRed, 7, s, known)
				if err != nil {
					t.Fatal(err)
				}
				if again, _, _ := g.Step(t.Context(), mergeRed, 7, s, known); !reflect.DeepEqual(again, changes) {
					t.Fatalf("step %d: a repetition has other changes", steps)
				}
				if known == blocks && g.DueLevel(s, known) == 0 {
					break
				}
				m.write(mergeRed, changes)
				if s = next; steps%7 == 0 {
					check()
				}
			}
			for range 50 {
				check()
			}
			if got := len(m.scanAll(mergeRed, kindSingles)); got > 3 {
				t.Errorf("%d records of level 0 are left, want those of the last block", got)
			}
			if !reflect.DeepEqual(m.of(mergeBlue), others) {
				t.Error("records of the other organization changed")
			}
		})
	}
}

func (m *memory) of(t id.Tenant) map[string]string {
	found := map[string]string{}
	for n, value := range m.values {
		if strings.HasPrefix(n, fmt.Sprint(int64(t), " ")) {
			found[n] = string(value)
		}
	}
	return found
}

func (m *memory) scanAll(t id.Tenant, kind storage.Kind) []storage.Record {
	found, _ := m.Scan(context.Background(), t, kind, "", "~", 1<<20)
	return found
}

// A reader that started before the last block was complete finds what was merged since.
func TestReaderOfBefore(t *testing.T) {
	const bits, blocks = 2, 1 << 2
	m := newMemory()
	g := merger{Store: m, Bits: bits}
	all := m.fill(rand.New(rand.NewPCG(3, 4)), mergeRed, blocks)
	var s mergeState
	for g.DueLevel(s, blocks) > 0 {
		changes, next, err := g.Step(t.Context(), mergeRed, 7, s, blocks)
		if err != nil {
			t.Fatal(err)
		}
		m.write(mergeRed, changes)
		s = next
	}
	window := [2]uint64{0, blocks}
	for _, e := range all {
		if got, want := find(t, g, mergeRed, blocks-1, window, e.bucket, e.fingerprint), want(all, window, e.bucket, e.fingerprint); !slices.Equal(got, want) {
			t.Fatalf("%+v: got %v, want %v", e, got, want)
		}
	}
}

// A record that cannot be read is an error, and is not merged.
func TestDamagedRecord(t *testing.T) {
	for _, value := range [][]byte{{1}, {0, 0, 0, 9, 4, 1}, {0, 0, 0, 9, 2, 1, 0, 0, 0, 1, 2}, {0x90, 0, 0, 0, 2, 1, 0, 0, 0, 0, 2, 1}} {
		m := newMemory()
		g := merger{Store: m, Bits: 1}
		m.put(name(mergeRed, kindSingles, recordKey(7, 0, 1)), value)
		if _, _, err := g.Step(t.Context(), mergeRed, 7, mergeState{}, 2); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%v: got %v", value, err)
		}
	}
}

// A merged record with any bytes is read to its end or rejected.
func FuzzVisit(f *testing.F) {
	f.Add([]byte{0, 0, 6, 0, 0, 0, 1, 2, 5}, byte(1))
	f.Add([]byte{0, 9, 0}, byte(2))
	f.Fuzz(func(t *testing.T, value []byte, level byte) {
		m := newMemory()
		m.put(name(mergeRed, kindMerged, "00000007/1/00000000/00000000"), value)
		visited := 0
		err := merger{Store: m, Bits: 1 + int(level%4)}.Visit(t.Context(), mergeRed, mergeTerm{Generation: 7, Blocks: 1 << 10}, [2]uint64{0, 1 << 10},
			func(block uint64, entries []byte) error {
				if visited += len(entries) + 3; block >= 1<<10 {
					t.Errorf("block %d is outside of the window", block)
				}
				return nil
			})
		if err == nil && visited > len(value) || err != nil && !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("visited %d of %d bytes, %v", visited, len(value), err)
		}
	})
}
