package password

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestContains(t *testing.T) {
	for password, want := range map[string]bool{
		"1234567890": true, "1q2w3e4r5t": true, "password123": true, "PassWord123": true, "qwertyuiop": true, "iloveyou123": true,
		"password": false, // too short to be in the list
		"":         false, "correct horse battery": false, "a password for tests": false, "1q2w3e4r5u7i9o": false,
	} {
		if got := IsCommon(password); got != want {
			t.Errorf("%q: got %v", password, got)
		}
	}
}

func TestDataIsOrderedAndWhole(t *testing.T) {
	if len(passwords) != CommonSize*CommonDigestSize {
		t.Fatalf("got %d bytes, want %d", len(passwords), CommonSize*CommonDigestSize)
	}
	for i := CommonDigestSize; i < len(passwords); i += CommonDigestSize {
		if passwords[i-CommonDigestSize:i] >= passwords[i:i+CommonDigestSize] {
			t.Fatalf("digest %d is not greater than the one before it", i/CommonDigestSize)
		}
	}
}

// The chance of one wrong answer among these is 1 in 100.
func TestOtherPasswordsAreNotFound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		if p := fmt.Sprintf("%016x", random.Uint64()); IsCommon(p) {
			t.Errorf("%s is taken for a common password", p)
		}
	}
}

func BenchmarkContains(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		IsCommon("correct horse battery")
	}
}
