// Package id is the vocabulary of agentledger: one type for each kind of string, number and hash
// that crosses a package boundary.
//
// Invariants:
//
//   - A value returned by a Parse function is well-formed; the zero value is not.
//   - Text forms are the wire forms: lower-case hex for hashes, lower-case 8-4-4-4-12 for UUIDs,
//     tokens unchanged.
//   - The package reads no clock, does no I/O and keeps no state.
//
// All functions and methods are safe for concurrent use.
//
// The package is stable in the sense of README, section Stability.
package id

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrMalformed is wrapped by the errors of all Parse functions. Such an error never contains the
// rejected text.
var ErrMalformed = errors.New("malformed")

// Organization is the UUID of an organization (16 bytes, any version), its public identifier.
type Organization [16]byte

// ParseOrganization reads the 8-4-4-4-12 form in either case.
func ParseOrganization(s string) (Organization, error) {
	var o Organization
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return Organization{}, fmt.Errorf("organization id: %w", ErrMalformed)
	}
	var digits [32]byte
	n := copy(digits[:], s[:8])
	n += copy(digits[n:], s[9:13])
	n += copy(digits[n:], s[14:18])
	n += copy(digits[n:], s[19:23])
	copy(digits[n:], s[24:])
	if _, err := hex.Decode(o[:], digits[:]); err != nil {
		return Organization{}, fmt.Errorf("organization id: %w", ErrMalformed)
	}
	return o, nil
}

// NewOrganization returns a random version 4 UUID.
func NewOrganization() Organization {
	var o Organization
	rand.Read(o[:]) // never fails since Go 1.24
	o[6] = o[6]&0x0f | 0x40
	o[8] = o[8]&0x3f | 0x80
	return o
}

// String returns the lower-case 8-4-4-4-12 form.
func (o Organization) String() string {
	var buf [36]byte
	return string(o.AppendTo(buf[:0]))
}

// AppendTo appends the text of String to b. It does not allocate if b has capacity for 36 more
// bytes.
func (o Organization) AppendTo(b []byte) []byte {
	b = append(hex.AppendEncode(b, o[:4]), '-')
	b = append(hex.AppendEncode(b, o[4:6]), '-')
	b = append(hex.AppendEncode(b, o[6:8]), '-')
	b = append(hex.AppendEncode(b, o[8:10]), '-')
	return hex.AppendEncode(b, o[10:])
}

// MarshalText returns the text of String.
func (o Organization) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText parses the text with ParseOrganization.
func (o *Organization) UnmarshalText(b []byte) (err error) {
	*o, err = ParseOrganization(string(b))
	return err
}

// Tenant is the short handle of an organization in the store: a random number in [1, 2^63). It is
// never shown to clients. 0 is the service's own partition.
type Tenant uint64

// Service is the partition of records that belong to no organization, for example names that are
// unique in the whole service.
const Service Tenant = 0

// NewTenant returns a random handle. The caller must claim it before use.
func NewTenant() Tenant {
	var b [8]byte
	for {
		rand.Read(b[:])
		if t := Tenant(binary.BigEndian.Uint64(b[:]) >> 1); t != Service {
			return t
		}
	}
}

// Strings of the wire. Their grammars are those of the envelope; the package that accepts one from
// a client must check it.
type (
	Event  string // event_id, unique in one organization
	Trace  string // trace_id
	Agent  string // agent_id
	Key    string // key_id of an agent key, a system key or a bridge key
	Slug   string // public name of an organization
	Tool   string // dotted tool name; "" if there is none
	Origin string // checkpoint origin and log key name
)

// Index is the 0-based position of a leaf in the log of its organization, and also the type of tree
// sizes. The sequence number of a leaf is its index + 1.
type Index uint64

// Sequence returns the sequence number of the leaf at i.
func (i Index) Sequence() uint64 { return uint64(i) + 1 }

// Hash is a SHA-256 value.
type Hash [32]byte

// ParseHash reads exactly 64 lower-case hex digits.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != 64 {
		return Hash{}, fmt.Errorf("hash: %w", ErrMalformed)
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return Hash{}, fmt.Errorf("hash: %w", ErrMalformed)
		}
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return Hash{}, fmt.Errorf("hash: %w", ErrMalformed)
	}
	return h, nil
}

// String returns 64 lower-case hex digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns the text of String.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText parses the text with ParseHash.
func (h *Hash) UnmarshalText(b []byte) (err error) {
	*h, err = ParseHash(string(b))
	return err
}
