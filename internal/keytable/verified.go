package keytable

import (
	"slices"
	"sync"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// Verified caches recently verified signatures over digests. Whether a signature is valid depends only on the bytes of
// key, digest and signature, and all of them are compared. So Has returns what verifying again would return, in a thirtieth
// of the time.
//
// Each digest belongs to a row of four signatures, in which a new one evicts the oldest. A signature is nearly always
// found until a third of VerifiedPlaces are noted after it. A sender who fills the cache takes away only the time that it
// saves others. The methods may be called concurrently; a nil *Verified caches nothing.
type Verified struct {
	shards [64]struct {
		mu   sync.Mutex
		rows []placesRow // nil until the first signature is noted
	}
}

// placesRow is ordered from newest to oldest.
type placesRow [4]verifiedSignature

// verifiedSignature is a verified combination. The zero value is empty: Has rejects the zero key.
type verifiedSignature struct {
	digest    id.Hash // first, because it usually differs
	key       edkey.Public
	signature [edkey.SignatureSize]byte
}

// VerifiedPlaces is the capacity of a Verified in signatures. A full one uses 8 MiB.
const VerifiedPlaces = 64 * rowsPerShard * len(placesRow{})

const rowsPerShard = 256

// Note caches a signature that was verified for the key and the digest.
func (v *Verified) Note(key edkey.Public, digest id.Hash, signature [edkey.SignatureSize]byte) {
	if v == nil {
		return
	}
	s := &v.shards[digest[0]%64]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == nil {
		s.rows = make([]placesRow, rowsPerShard)
	}
	row := &s.rows[digest[1]]
	copy(row[1:], row[:])
	row[0] = verifiedSignature{digest, key, signature}
}

// Has reports whether this signature of the digest is cached. If it returns false, the signature may still be valid.
func (v *Verified) Has(key edkey.Public, digest id.Hash, signature [edkey.SignatureSize]byte) bool {
	if v == nil || key == (edkey.Public{}) {
		return false
	}
	s := &v.shards[digest[0]%64]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows != nil && slices.Contains(s.rows[digest[1]][:], verifiedSignature{digest, key, signature})
}
