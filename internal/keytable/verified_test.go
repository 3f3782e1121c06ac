package keytable

import (
	"crypto/sha256"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// A signature is found only if key, digest and signature are all the same: any other bit is another signature.
func TestVerifiedComparesAllBytes(t *testing.T) {
	var v Verified
	red, blue := signer(t, 1), signer(t, 2)
	digest := id.Hash(sha256.Sum256([]byte("event")))
	sig := red.Sign(digest[:])
	if v.Has(red.Public(), digest, sig) || v.Has(edkey.Public{}, id.Hash{}, [64]byte{}) {
		t.Error("known before it was noted")
	}
	v.Note(red.Public(), digest, sig)
	if !v.Has(red.Public(), digest, sig) {
		t.Error("not known")
	}
	if v.Has(blue.Public(), digest, sig) {
		t.Error("known for the neighbour's key")
	}
	if v.Has(edkey.Public{}, id.Hash{}, [64]byte{}) {
		t.Error("zeros are known")
	}
	for bit := range 8 * len(digest) {
		other := digest
		other[bit/8] ^= 1 << (bit % 8)
		if v.Has(red.Public(), other, sig) {
			t.Errorf("known with bit %d of the digest turned", bit)
		}
	}
	for bit := range 8 * len(sig) {
		other := sig
		other[bit/8] ^= 1 << (bit % 8)
		if v.Has(red.Public(), digest, other) {
			t.Errorf("known with bit %d of the signature turned", bit)
		}
	}
}

// A row keeps its four latest digests; digests of other rows stay. A nil Verified caches nothing.
func TestVerifiedKeepsTheNewest(t *testing.T) {
	var v, none *Verified = new(Verified), nil
	key, sig := signer(t, 1).Public(), [64]byte{1}
	inRow := func(n int) id.Hash { return id.Hash{5, 6, byte(n)} }
	others := []id.Hash{{5, 7}, {6, 6}, {5, 255}, {255, 6}}
	for _, d := range others {
		v.Note(key, d, sig)
	}
	for n := range 9 {
		v.Note(key, inRow(n), sig)
		none.Note(key, inRow(n), sig)
		for k := range 9 {
			if got, want := v.Has(key, inRow(k), sig), k <= n && k > n-4; got != want {
				t.Errorf("%d after %d: got %v, want %v", k, n, got, want)
			}
		}
	}
	for _, d := range others {
		if !v.Has(key, d, sig) || none.Has(key, d, sig) {
			t.Errorf("other row %x: got %v, nil has it: %v", d[:2], v.Has(key, d, sig), none.Has(key, d, sig))
		}
	}
}

// Until a third of the capacity is noted after it, nearly every signature is found.
func TestVerifiedRoom(t *testing.T) {
	var v Verified
	key, sig := signer(t, 1).Public(), [64]byte{1}
	digest := func(n int) id.Hash { return sha256.Sum256([]byte{byte(n), byte(n >> 8), byte(n >> 16)}) }
	known := 0
	for n := range VerifiedPlaces {
		v.Note(key, digest(n), sig)
		if before := n - VerifiedPlaces/3; before >= 0 && v.Has(key, digest(before), sig) {
			known++
		}
	}
	if share := float64(known) / float64(VerifiedPlaces-VerifiedPlaces/3); share < 0.94 {
		t.Errorf("got %.3f known, want 0.94 or more", share)
	}
}

// Concurrent notes do not mix: a combination is found completely or not at all.
func TestVerifiedAtOnce(t *testing.T) {
	var v Verified
	var senders sync.WaitGroup
	keys := [2]edkey.Public{signer(t, 1).Public(), signer(t, 2).Public()}
	digest := id.Hash{1, 2, 3}
	for n, key := range keys {
		senders.Go(func() {
			for range 1000 {
				v.Note(key, digest, [64]byte{byte(n)})
				if v.Has(key, digest, [64]byte{byte(1 - n)}) {
					t.Error("the neighbour's signature is known")
				}
			}
		})
	}
	senders.Wait()
}

func BenchmarkVerified(b *testing.B) {
	var v Verified
	key, sig, digest := signer(b, 1).Public(), [64]byte{1}, id.Hash{1}
	v.Note(key, digest, sig)
	for b.Loop() {
		if !v.Has(key, digest, sig) {
			b.Fatal("not known")
		}
	}
}
