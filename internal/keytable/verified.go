package keytable

import (
	"encoding/binary"
	"sync"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// Verified remembers signatures over digests that were verified in this process of late. Whether a key signed a digest
// follows from the bytes of key, digest and signature alone, and all bytes are compared. So Has gives the answer that
// verifying would give again, in a thirtieth of the time.
//
// Each digest has one place, which the next digest of that place takes. A sender who fills all places costs others
// the time for which they would have been spared, and nothing else. The methods may be called concurrently; those of
// nil remember nothing.
type Verified struct {
	shards [64]struct {
		mu     sync.Mutex
		places []verifiedSignature // nil before the first
	}
}

// verifiedSignature is a triple that was verified. The zero value is none, because no key of zeros is a Public that
// verifies anything.
type verifiedSignature struct {
	key       edkey.Public
	digest    id.Hash
	signature [edkey.SignatureSize]byte
}

// VerifiedPlaces is how many signatures a Verified remembers at most, in 8 MiB.
const VerifiedPlaces = 64 * placesOfShard

const placesOfShard = 1024

// Note remembers a signature that the key's verifier has accepted for the digest.
func (v *Verified) Note(key edkey.Public, digest id.Hash, signature [edkey.SignatureSize]byte) {
	if v == nil {
		return
	}
	s := &v.shards[digest[0]%64]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places == nil {
		s.places = make([]verifiedSignature, placesOfShard)
	}
	s.places[placeOf(&digest)] = verifiedSignature{key, digest, signature}
}

// Has reports whether this very signature of the digest is remembered. After false it may be good or bad.
func (v *Verified) Has(key edkey.Public, digest id.Hash, signature [edkey.SignatureSize]byte) bool {
	if v == nil || key == (edkey.Public{}) {
		return false
	}
	s := &v.shards[digest[0]%64]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places != nil && s.places[placeOf(&digest)] == verifiedSignature{key, digest, signature}
}

// placeOf returns the place of a digest in its shard.
func placeOf(digest *id.Hash) int { return int(binary.LittleEndian.Uint16(digest[1:])) % placesOfShard }
