package pebblestore

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// A family is a group of keys with one form. A key is tenant (8 bytes, big-endian), family (1 byte) and the family's suffix.
// Numbers are big-endian, so that keys sort by number.
//
// family       suffix                            value
// head                                           see appendHead
// entry        index (8)                         prev, record hash (64 bytes)
// record       index (8)                         see appendEvent, usually with the envelope or its erasure
// envelope     index (8)                         the envelope, if it is not with the record
// tile         level (1) index (8)               hashes (8192 bytes)
// tile root    level (1) index (8)               hash (32 bytes)
// event id     SHA-256 of the id, 16 bytes       index (8)
// idempotency  SHA-256 of the key, 16 bytes      index (8)
// counter      name                              value (8), unless it is in the head
// stored       kind 0x00 key                     see appendStored
// format       –, in the service's partition     see formatNumber (8)
// erasures     –, in the service's partition     see erasedCounter
//
// Entries are separate from records and envelopes, so that chain checks and entry bundles read no payloads. Each key of an
// append costs a search in the memtable, so values that can share a key do. The family numbers are stored and must never
// change.
type family byte

const (
	familyHead family = iota + 1 // must be first: Tenants seeks it
	familyEntry
	familyRecord
	familyEnvelope
	familyTile
	familyTileRoot
	familyEventID
	familyIdempotency
	familyCounter
	familyStored
	familyFormat
	familyErasures
)

const (
	prefixLen = 8 + 1
	indexLen  = 8
	nameLen   = 16
	tileLen   = 1 + 8
)

func appendPrefix(dst []byte, t id.Tenant, f family) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(t)), byte(f))
}

func headKey(t id.Tenant) []byte { return appendPrefix(make([]byte, 0, prefixLen), t, familyHead) }

func appendIndexKey(dst []byte, t id.Tenant, f family, i id.Index) []byte {
	return binary.BigEndian.AppendUint64(appendPrefix(dst, t, f), uint64(i))
}

func appendTileKey(dst []byte, t id.Tenant, f family, level uint8, index uint64) []byte {
	return binary.BigEndian.AppendUint64(append(appendPrefix(dst, t, f), level), index)
}

// appendNameKey hashes the name, so that keys are short and have one length for every text that a client sends.
func appendNameKey(dst []byte, t id.Tenant, n storage.DedupKey) []byte {
	if n.Idempotency {
		digest := n.IdempotencyDigest()
		return append(appendPrefix(dst, t, familyIdempotency), digest[:]...)
	}
	sum := sha256.Sum256([]byte(n.Text))
	return append(appendPrefix(dst, t, familyEventID), sum[:nameLen]...)
}

func appendCounterKey(dst []byte, t id.Tenant, name string) []byte {
	return append(appendPrefix(dst, t, familyCounter), name...)
}

func appendStoredKey(dst []byte, t id.Tenant, kind storage.Kind, key string) []byte {
	dst = append(appendPrefix(dst, t, familyStored), kind...)
	return append(append(dst, 0), key...)
}

// storedBounds returns the key range [lower, upper) of the records of a kind with keys in [begin, end), or from begin
// on if end is empty.
func storedBounds(t id.Tenant, kind storage.Kind, begin, end string) (lower, upper []byte) {
	lower = appendStoredKey(nil, t, kind, begin)
	upper = appendStoredKey(nil, t, kind, end)
	if end == "" {
		upper[len(upper)-1]++ // the byte after the kind: 0x00 becomes 0x01
	}
	return lower, upper
}

// keyTenant returns the tenant and family of any key of the store.
func keyTenant(key []byte) (t id.Tenant, f family, err error) {
	if len(key) < prefixLen {
		return 0, 0, corruptValue("key")
	}
	return id.Tenant(binary.BigEndian.Uint64(key)), family(key[8]), nil
}
