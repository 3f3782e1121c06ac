// Package id is the vocabulary of agentledger: one type for each kind of
// string, number and hash that crosses a package boundary.
//
// Invariants:
//
//   - A value made by a Parse function is well-formed; the zero value is not.
//   - Textual forms are the ones of the wire: lower-case hex for hashes, lower
//     case 8-4-4-4-12 for UUIDs, tokens as they are.
//   - Nothing here reads a clock, does I/O or keeps state.
//
// All functions and methods may be called concurrently.
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

// ErrMalformed is wrapped by the errors of all Parse functions. Such an error never
// repeats the text.
var ErrMalformed = errors.New("malformed")

// Organization is an organization's UUID (16 bytes, any version), the name by
// which it is known outside.
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
	var room [36]byte
	return string(o.AppendTo(room[:0]))
}

// AppendTo appends the form of String to b, and allocates nothing when b has room for 36 bytes.
func (o Organization) AppendTo(b []byte) []byte {
	b = append(hex.AppendEncode(b, o[:4]), '-')
	b = append(hex.AppendEncode(b, o[4:6]), '-')
	b = append(hex.AppendEncode(b, o[6:8]), '-')
	b = append(hex.AppendEncode(b, o[8:10]), '-')
	return hex.AppendEncode(b, o[10:])
}

// MarshalText is String; UnmarshalText is ParseOrganization.
func (o Organization) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the text of MarshalText.
func (o *Organization) UnmarshalText(b []byte) (err error) {
	*o, err = ParseOrganization(string(b))
	return err
}

// Tenant is the short handle of an organization inside the store: a random
// number in [1, 2^63). It is never shown. 0 is the service's own partition.
type Tenant uint64

// Service is the partition of records that belong to no organization, for example names
// that are unique in the whole service.
const Service Tenant = 0

// NewTenant returns a random handle; the caller claims it before use.
func NewTenant() Tenant {
	var b [8]byte
	for {
		rand.Read(b[:])
		if t := Tenant(binary.BigEndian.Uint64(b[:]) >> 1); t != Service {
			return t
		}
	}
}

// Typed strings of the wire. Their grammars are those of the envelope; the
// packages that accept them from outside check them.
type (
	Event  string // event_id, unique in one organization
	Trace  string // trace_id
	Agent  string // agent_id
	Key    string // key_id of an agent's, system or bridge key
	Slug   string // public name of an organization
	Tool   string // dotted tool name; "" means none
	Origin string // checkpoint origin and log key name
)

// Index is the 0-based position of a leaf in its organization's log, and also
// the type of tree sizes. The sequence number of a leaf is its index + 1.
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

// MarshalText is String; UnmarshalText is ParseHash.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads the text of MarshalText.
func (h *Hash) UnmarshalText(b []byte) (err error) {
	*h, err = ParseHash(string(b))
	return err
}
