package storage

import (
	"crypto/sha256"

	"github.com/agentledger/agentledger/id"
)

// KeyDigest is what is stored of an idempotency key: the first 16 bytes of the
// SHA-256 of its text, so that it is short whatever clients send. The zero value
// is no key.
type KeyDigest [16]byte

// DigestKey returns the digest of an idempotency key, zero for "".
func DigestKey(text string) KeyDigest {
	if text == "" {
		return KeyDigest{}
	}
	sum := sha256.Sum256([]byte(text))
	return KeyDigest(sum[:len(KeyDigest{})])
}

// Key is an idempotency key and the event that it belongs to.
type Key struct {
	Digest KeyDigest
	Index  id.Index
}

// Key returns the digest of the event's idempotency key, zero for none.
func (e *Event) Key() KeyDigest {
	if e.KeyDigest != (KeyDigest{}) {
		return e.KeyDigest
	}
	return DigestKey(e.IdempotencyKey)
}

// Names yields what the event must not share with any other of its ledger.
// Idempotency keys have their digests.
func (e *Event) Names(yield func(Name) bool) {
	if !yield(Name{Text: string(e.ID)}) {
		return
	}
	if digest := e.Key(); digest != (KeyDigest{}) {
		yield(Name{Idempotency: true, Digest: digest})
	}
}

// Key returns the digest of the idempotency key that n is.
func (n Name) Key() KeyDigest {
	if n.Digest != (KeyDigest{}) {
		return n.Digest
	}
	return DigestKey(n.Text)
}
