package storage

import (
	"crypto/sha256"

	"github.com/agentledger/agentledger/id"
)

// KeyDigest is the stored form of an idempotency key: the first 16 bytes of the SHA-256 of its text, because clients
// may send long keys. The zero value means that there is no key.
type KeyDigest [16]byte

// DigestIdempotencyKey returns the digest of an idempotency key, or zero if text is empty.
func DigestIdempotencyKey(text string) KeyDigest {
	if text == "" {
		return KeyDigest{}
	}
	sum := sha256.Sum256([]byte(text))
	return KeyDigest(sum[:len(KeyDigest{})])
}

// IndexedKey is an idempotency key and the index of its event.
type IndexedKey struct {
	Digest KeyDigest
	Index  id.Index
}

// IdempotencyDigest returns the digest of the event's idempotency key, or zero if it has none.
func (e *Event) IdempotencyDigest() KeyDigest {
	if e.KeyDigest != (KeyDigest{}) {
		return e.KeyDigest
	}
	return DigestIdempotencyKey(e.IdempotencyKey)
}

// DedupKeys yields the keys that must be unique in the ledger: the event ID and, if there is one, the idempotency key
// as a digest.
func (e *Event) DedupKeys(yield func(DedupKey) bool) {
	if !yield(DedupKey{Text: string(e.ID)}) {
		return
	}
	if digest := e.IdempotencyDigest(); digest != (KeyDigest{}) {
		yield(DedupKey{Idempotency: true, Digest: digest})
	}
}

// IdempotencyDigest returns the digest of an idempotency key.
func (n DedupKey) IdempotencyDigest() KeyDigest {
	if n.Digest != (KeyDigest{}) {
		return n.Digest
	}
	return DigestIdempotencyKey(n.Text)
}
