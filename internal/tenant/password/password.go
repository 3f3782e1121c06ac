// Package password decides which passwords are allowed, and computes and verifies their Argon2id hashes. It hides the
// cost of hashes and the list of common passwords.
//
// Invariants:
//
//   - Checking a password without a stored hash causes the same work as any other check, and never matches.
//   - At most two hashes are computed concurrently, and a bounded number of callers waits. Each hash allocates its
//     own memory, so this also bounds the memory.
//   - A hash with another cost can still be verified, because it contains its cost.
//   - A password is hashed in Unicode normal form C, so that it can be typed on every keyboard and system. A hash of
//     the text as typed, which older programs stored, still matches.
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"github.com/agentledger/agentledger/fault"
)

// Cost is the cost of Argon2id (RFC 9106) and the number of concurrent hashes. The zero value means the defaults,
// which take about 20 ms of one core.
type Cost struct {
	MemoryKiB uint32 // default: 19,456 (19 MiB)
	Passes    uint32 // default: 2
	AtOnce    int    // concurrent hashes; default: half of the cores, at least 1 and at most 2, so that agents can use the others
	Waiting   int    // callers that may wait for a slot; default: 64
}

// MaxLength is the maximum length of a password in bytes. A longer one never matches.
const MaxLength = 1024

const (
	saltSize = 16
	hashSize = 32
	lanes    = 1
)

// Hasher computes password hashes, with bounded concurrency.
type Hasher struct {
	Cost
	slots   chan struct{}
	waiting atomic.Int64
	dummy   string // matches no password; compared with if there is no hash

	// compute is argon2.IDKey, which tests replace to count the calls.
	compute func(password, salt []byte, passes, memoryKiB uint32, lanes uint8, size uint32) []byte
}

// NewHasher returns a hasher with a cost.
func NewHasher(h Cost) *Hasher {
	if h.MemoryKiB == 0 {
		h.MemoryKiB = 19_456
	}
	if h.Passes == 0 {
		h.Passes = 2
	}
	if h.AtOnce == 0 {
		h.AtOnce = min(max(1, runtime.GOMAXPROCS(0)/2), 2)
	}
	if h.Waiting == 0 {
		h.Waiting = 64
	}
	var random [saltSize + hashSize]byte
	rand.Read(random[:]) // never fails since Go 1.24
	made := &Hasher{Cost: h, slots: make(chan struct{}, h.AtOnce), compute: argon2.IDKey}
	made.dummy = made.encodeHash(random[:saltSize], random[saltSize:])
	return made
}

// acquireSlot waits for a slot. It returns fault.Overloaded if too many callers wait. While others wait, a slot
// pauses for three times as long as it was used, so that floods of sign-ins leave the cores to agents.
func (h *Hasher) acquireSlot(ctx context.Context) (leave func(), err error) {
	if h.waiting.Add(1) > int64(h.Waiting+h.AtOnce) {
		h.waiting.Add(-1)
		return nil, &fault.Error{
			Kind:       fault.Overloaded,
			Code:       "overloaded",
			Message:    "Too many sign-ins at once",
			RetryAfter: time.Second,
		}
	}
	select {
	case h.slots <- struct{}{}:
		began := time.Now()
		return func() {
			if h.waiting.Add(-1) < int64(h.AtOnce) {
				<-h.slots
				return
			}
			time.AfterFunc(3*time.Since(began), func() { <-h.slots })
		}, nil
	case <-ctx.Done():
		h.waiting.Add(-1)
		return nil, fmt.Errorf("hash password: %w", ctx.Err())
	}
}

// Normalize returns a password in Unicode normal form C.
func Normalize(password string) string { return norm.NFC.String(password) }

// HashPassword returns the PHC string of a new password.
func (h *Hasher) HashPassword(ctx context.Context, password string) (string, error) {
	leave, err := h.acquireSlot(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	var salt [saltSize]byte
	rand.Read(salt[:]) // never fails since Go 1.24
	key := h.computeKey(Normalize(password), phc{salt: salt[:], passes: h.Passes, memory: h.MemoryKiB, lanes: lanes})
	return h.encodeHash(salt[:], key), nil
}

// MatchesHash reports whether stored is the hash of password. If stored is "", it returns false after the same work.
func (h *Hasher) MatchesHash(ctx context.Context, stored, password string) (bool, error) {
	known := stored != ""
	if !known {
		stored = h.dummy
	}
	p, err := decodeHash(stored)
	if err != nil {
		return false, fmt.Errorf("check password: %w", err)
	}
	if len(password) > MaxLength {
		password, known = password[:MaxLength], false
	}
	leave, err := h.acquireSlot(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	normal := Normalize(password)
	matches := h.matchesKey(normal, p)
	if !matches && normal != password {
		matches = h.matchesKey(password, p)
	}
	return matches && known, nil
}

func (h *Hasher) matchesKey(password string, p phc) bool {
	return subtle.ConstantTimeCompare(h.computeKey(password, p), p.hash) == 1
}

func (h *Hasher) computeKey(password string, p phc) []byte {
	return h.compute([]byte(password), p.salt, p.passes, p.memory, p.lanes, hashSize)
}

// encodeHash returns a hash in the PHC string format.
func (h *Hasher) encodeHash(salt, hash []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.MemoryKiB, h.Passes, lanes,
		b64.EncodeToString(salt), b64.EncodeToString(hash))
}

// phc is a decoded PHC string.
type phc struct {
	memory, passes uint32
	lanes          uint8
	salt, hash     []byte
}

// ErrMalformed means that a stored hash cannot be decoded.
var ErrMalformed = errors.New("stored password hash is malformed")

// decodeHash decodes a hash with any cost.
func decodeHash(s string) (p phc, err error) {
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, ErrMalformed
	}
	_, err = fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.passes, &p.lanes)
	if err != nil || p.passes == 0 || p.lanes == 0 {
		return p, ErrMalformed
	}
	b64 := base64.RawStdEncoding.Strict()
	if p.salt, err = b64.DecodeString(parts[4]); err != nil || len(p.salt) != saltSize {
		return p, ErrMalformed
	}
	if p.hash, err = b64.DecodeString(parts[5]); err != nil || len(p.hash) != hashSize {
		return p, ErrMalformed
	}
	return p, nil
}
