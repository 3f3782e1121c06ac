package password

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/crypto/argon2"

	"github.com/agentledger/agentledger/fault"
)

func cheap() *Hasher { return NewHasher(Cost{MemoryKiB: 64, Passes: 1}) }

func TestHashIsWrittenInThePHCForm(t *testing.T) {
	h := cheap()
	stored, err := h.HashPassword(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(stored, "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Errorf("got %s", stored)
	}
	p, err := decodeHash(stored)
	if err != nil {
		t.Fatal(err)
	}
	want := argon2.IDKey([]byte("correct horse"), p.salt, 1, 64, 1, 32)
	if string(p.hash) != string(want) {
		t.Error("the hash is not Argon2id of password and salt")
	}
}

// Hashes with another cost can still be verified.
func TestCostOfAStoredHash(t *testing.T) {
	old, err := NewHasher(Cost{MemoryKiB: 128, Passes: 2}).HashPassword(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horsf": false, "": false} {
		if got, err := cheap().MatchesHash(t.Context(), old, password); got != want || err != nil {
			t.Errorf("%q: got %v, %v", password, got, err)
		}
	}
	if got, err := cheap().MatchesHash(t.Context(), "", "anything"); got || err != nil {
		t.Errorf("no hash: got %v, %v", got, err)
	}
}

// A password matches in every Unicode form. A hash of the text as typed, which older programs made, still matches that
// text.
func TestUnicodeForms(t *testing.T) {
	const composed, decomposed, other = "caf\u00e9 horse", "cafe\u0301 horse", "cafe horse"
	h := cheap()
	normal, err := h.HashPassword(t.Context(), decomposed)
	if err != nil {
		t.Fatal(err)
	}
	salt := []byte("0123456789abcdef")
	old := h.encodeHash(salt, argon2.IDKey([]byte(decomposed), salt, 1, 64, 1, 32))
	for _, tc := range []struct {
		name, stored, password string
		want                   bool
	}{
		{"composed", normal, composed, true}, {"decomposed", normal, decomposed, true}, {"another", normal, other, false},
		{"old, as typed", old, decomposed, true}, {"old, another", old, other, false},
		{"none", "", composed, false}, {"none, decomposed", "", decomposed, false},
	} {
		if got, err := h.MatchesHash(t.Context(), tc.stored, tc.password); got != tc.want || err != nil {
			t.Errorf("%s: got %v, %v", tc.name, got, err)
		}
	}
}

// Checking a password costs the same with and without a stored hash, in every form.
func TestFormsCostTheSame(t *testing.T) {
	computed := 0
	h := cheap()
	h.compute = func(password, salt []byte, passes, memoryKiB uint32, lanes uint8, size uint32) []byte {
		computed++
		return argon2.IDKey(password, salt, passes, memoryKiB, lanes, size)
	}
	stored, err := h.HashPassword(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	for _, password := range []string{"plain text", "cafe\u0301", strings.Repeat("e\u0301", MaxLength)} {
		var counts []int
		for _, against := range []string{stored, ""} {
			computed = 0
			if got, err := h.MatchesHash(t.Context(), against, password); got || err != nil {
				t.Errorf("got %v, %v", got, err)
			}
			counts = append(counts, computed)
		}
		if counts[0] != counts[1] || counts[0] > 2 {
			t.Errorf("%d bytes: got %v computations", len(password), counts)
		}
	}
}

func TestDecodeHashRefuses(t *testing.T) {
	good := cheap().dummy
	if _, err := decodeHash(good); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]string{
		"empty":       "",
		"other form":  strings.Replace(good, "argon2id", "argon2i", 1),
		"version":     strings.Replace(good, "v=19", "v=16", 1),
		"no passes":   strings.Replace(good, "t=1", "t=0", 1),
		"no lanes":    strings.Replace(good, "p=1", "p=0", 1),
		"cut":         good[:len(good)-1],
		"one more":    good + "$",
		"other salt":  strings.Replace(good, "p=1$", "p=1$AAAA", 1),
		"not numbers": strings.Replace(good, "m=64", "m=x", 1),
	} {
		if p, err := decodeHash(s); err == nil {
			t.Errorf("%s: got %+v", name, p)
		}
	}
	if _, err := cheap().MatchesHash(t.Context(), "damaged", "x"); !errors.Is(err, ErrMalformed) {
		t.Errorf("damaged record: got %v", err)
	}
}

func TestCostIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHasher(Cost{MemoryKiB: 64, Passes: 1, AtOnce: 2, Waiting: 1})
		var leave [2]func()
		for i := range leave {
			leave[i], _ = h.acquireSlot(t.Context())
		}
		waiting := make(chan error)
		go func() {
			done, err := h.acquireSlot(t.Context())
			if err == nil {
				done()
			}
			waiting <- err
		}()
		synctest.Wait()
		if _, err := h.acquireSlot(t.Context()); !fault.Is(err, fault.Overloaded) {
			t.Errorf("got %v, want overloaded", err)
		}
		leave[0]()
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		again, err := h.acquireSlot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := h.acquireSlot(gone); err == nil {
			t.Error("a caller that is gone got a turn")
		}
		again()
		leave[1]()
		if got := h.waiting.Load(); got != 0 {
			t.Errorf("%d still counted", got)
		}
	})
}

func FuzzDecodeHash(f *testing.F) {
	f.Add(cheap().dummy)
	f.Add("$argon2id$v=19$m=1,t=1,p=1$$")
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := decodeHash(s); err == nil && (len(p.salt) != saltSize || len(p.hash) != hashSize || p.passes == 0 || p.lanes == 0) {
			t.Errorf("%q: got %+v", s, p)
		}
	})
}

func BenchmarkHash(b *testing.B) {
	h := NewHasher(Cost{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.MatchesHash(b.Context(), "", "correct horse"); err != nil {
			b.Fatal(err)
		}
	}
}

// By default half of the processors hash, but at most two, because each running hash takes 19 MiB.
func TestDefaultSlots(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for processors, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 64: 2} {
		runtime.GOMAXPROCS(processors)
		if h := NewHasher(Cost{}); cap(h.slots) != want || h.MemoryKiB != 19_456 || h.Passes != 2 {
			t.Errorf("%d processors: got %d slots at %+v, want %d", processors, cap(h.slots), h.Cost, want)
		}
	}
}
