package keytable

import (
	"crypto/sha256"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// A signature is known when key, digest and signature are all the same: any other bit is another signature.
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

// The digest that comes last to a place has it; digests of other places stay. Nil remembers nothing.
func TestVerifiedHasOnePlaceEach(t *testing.T) {
	var v, none *Verified = new(Verified), nil
	key, sig := signer(t, 1).Public(), [64]byte{1}
	first, same, other := id.Hash{5, 6, 7, 8}, id.Hash{5, 6, 7, 9}, id.Hash{5, 7, 7, 8}
	for _, d := range []id.Hash{first, other, same} {
		v.Note(key, d, sig)
		none.Note(key, d, sig)
	}
	got := [4]bool{v.Has(key, first, sig), v.Has(key, other, sig), v.Has(key, same, sig), none.Has(key, same, sig)}
	if want := [4]bool{false, true, true, false}; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Notes that are made at once do not mix: a triple is known whole or not at all.
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
