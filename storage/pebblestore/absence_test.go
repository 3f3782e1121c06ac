package pebblestore

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// Whatever was noted, lost or rotated away: a name that was applied is never
// taken for absent, and a name noted just now mostly is.
func TestAbsences(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	recent := new(recentNames)
	a := newAbsences(recent)
	truth := map[nameKey]bool{}
	name := func() (key nameKey) {
		n := rng.Uint64N(400_000)
		binary.BigEndian.PutUint64(key[:], n)
		key[len(key)-1] = byte(n)
		return key
	}
	var held []nameKey // looked up, to be appended later
	skipped := 0
	for range 600_000 {
		if rng.IntN(20_000) == 0 { // the next log; an older one is done with
			log := recent.log.Add(1)
			recent.drop(log - rng.Uint64N(3))
		}
		key := name()
		switch rng.IntN(3) {
		case 0: // a lookup
			if applies := recent.applies.Load(); !truth[key] {
				a.noteAbsence(&key, applies)
				held = append(held, key)
			}
		case 1: // an append of a name looked up some time ago
			if len(held) == 0 {
				continue
			}
			i := rng.IntN(len(held))
			key = held[i]
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
			fallthrough
		default: // an append that nobody announced
			absent := a.isKnownAbsent(&key)
			if absent && truth[key] {
				t.Fatalf("name %x was applied and is taken for absent", key)
			}
			if absent {
				skipped++
			}
			if !truth[key] {
				truth[key] = true
				recent.addName([]claim{{key: key}})
			}
		}
	}
	if skipped < len(truth)/10 {
		t.Errorf("applied %d names, %d without a search: the test does not test", len(truth), skipped)
	}
}

func TestAbsenceIsOfItsMoment(t *testing.T) {
	recent := new(recentNames)
	a := newAbsences(recent)
	var key nameKey
	before := recent.applies.Load()
	recent.addName([]claim{{key: key}})
	a.noteAbsence(&key, before) // a lookup that began before the append, and did not see it
	if a.isKnownAbsent(&key) {
		t.Error("a name that came after the lookup is taken for absent")
	}
}
