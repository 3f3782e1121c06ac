package keytable

import (
	"slices"
	"sync"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// Verified remembers signatures over digests that were verified in this process of late. Whether a key signed a digest
// follows from the bytes of key, digest and signature alone, and all bytes are compared. So Has gives the answer that
// verifying would give again, in a thirtieth of the time.
//
// Each digest has a row of four places, in which the newest pushes out the oldest. So a signature is nearly always
// known while a third of VerifiedPlaces are noted after it. A sender who fills all places costs others the time for
// which they would have been spared, and nothing else. The methods may be called concurrently; those of nil remember
// nothing.
type Verified struct {
	shards [64]struct {
		mu   sync.Mutex
		rows []placesRow // nil before the first
	}
}

// placesRow is the newest first.
type placesRow [4]verifiedSignature

// verifiedSignature is a triple that was verified. The zero value is none, because no key of zeros is a Public that
// verifies anything.
type verifiedSignature struct {
	digest    id.Hash // first, because it is the part that differs
	key       edkey.Public
	signature [edkey.SignatureSize]byte
}

// VerifiedPlaces is how many signatures a Verified remembers at most, in 8 MiB.
const VerifiedPlaces = 64 * rowsOfShard * len(placesRow{})

const rowsOfShard = 256

// Note remembers a signature that the key's verifier has accepted for the digest.
func (v *Verified) Note(key edkey.Public, digest id.Hash, signature [edkey.SignatureSize]byte) {
	if v == nil {
		return
	}
	s := &v.shards[digest[0]%64]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == nil {
		s.rows = make([]placesRow, rowsOfShard)
	}
	row := &s.rows[digest[1]]
	copy(row[1:], row[:])
	row[0] = verifiedSignature{digest, key, signature}
}

// Has reports whether this very signature of the digest is remembered. After false it may be good or bad.
func (v *Verified) Has(key edkey.Public, digest id.Hash, signature [edkey.SignatureSize]byte) bool {
	if v == nil || key == (edkey.Public{}) {
		return false
	}
	s := &v.shards[digest[0]%64]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows != nil && slices.Contains(s.rows[digest[1]][:], verifiedSignature{digest, key, signature})
}
