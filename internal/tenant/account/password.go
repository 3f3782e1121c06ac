package account

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

	"github.com/agentledger/agentledger/fault"
)

// Hashing is the cost of Argon2id (RFC 9106) and the number of hashes at once. The zero value means
// the defaults, which take about 20 ms of one core.
type Hashing struct {
	MemoryKiB uint32 // default 19,456 (19 MiB)
	Passes    uint32 // default 2
	AtOnce    int    // hashes computed at one time; default: number of cores
	Waiting   int    // callers that may wait for their turn; default 64
}

const (
	saltSize = 16
	hashSize = 32
	lanes    = 1
)

// hasher computes password hashes, a bounded number at a time.
type hasher struct {
	Hashing
	slots   chan struct{}
	waiting atomic.Int64
	dummy   string // of no password, to be compared with when there is none
}

func newHasher(h Hashing) *hasher {
	if h.MemoryKiB == 0 {
		h.MemoryKiB = 19_456
	}
	if h.Passes == 0 {
		h.Passes = 2
	}
	if h.AtOnce == 0 {
		h.AtOnce = runtime.GOMAXPROCS(0)
	}
	if h.Waiting == 0 {
		h.Waiting = 64
	}
	var random [saltSize + hashSize]byte
	rand.Read(random[:]) // never fails since Go 1.24
	made := &hasher{Hashing: h, slots: make(chan struct{}, h.AtOnce)}
	made.dummy = made.encodeHash(random[:saltSize], random[saltSize:])
	return made
}

// acquireSlot waits for a turn; fault.Overloaded when too many wait.
func (h *hasher) acquireSlot(ctx context.Context) (leave func(), err error) {
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
		return func() { <-h.slots; h.waiting.Add(-1) }, nil
	case <-ctx.Done():
		h.waiting.Add(-1)
		return nil, fmt.Errorf("hash password: %w", ctx.Err())
	}
}

// hashPassword returns the PHC string of a new password, which CheckPassword has accepted.
func (h *hasher) hashPassword(ctx context.Context, password string) (string, error) {
	leave, err := h.acquireSlot(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	var salt [saltSize]byte
	rand.Read(salt[:]) // never fails since Go 1.24
	return h.encodeHash(salt[:], argon2.IDKey([]byte(password), salt[:], h.Passes, h.MemoryKiB, lanes, hashSize)), nil
}

// matchesHash reports whether stored is the hash of password. With no stored hash
// the answer is no, after the same work.
func (h *hasher) matchesHash(ctx context.Context, stored, password string) (bool, error) {
	known := stored != ""
	if !known {
		stored = h.dummy
	}
	p, err := decodeHash(stored)
	if err != nil {
		return false, errUnreadable("check password", err)
	}
	if len(password) > maxPassword {
		password, known = password[:maxPassword], false
	}
	leave, err := h.acquireSlot(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	got := argon2.IDKey([]byte(password), p.salt, p.passes, p.memory, p.lanes, hashSize)
	return subtle.ConstantTimeCompare(got, p.hash) == 1 && known, nil
}

// encodeHash writes the PHC string format.
func (h *hasher) encodeHash(salt, hash []byte) string {
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

var errHash = errors.New("stored password hash is malformed")

// decodeHash reads an encoded hash, with any cost.
func decodeHash(s string) (p phc, err error) {
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, errHash
	}
	_, err = fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.passes, &p.lanes)
	if err != nil || p.passes == 0 || p.lanes == 0 {
		return p, errHash
	}
	b64 := base64.RawStdEncoding.Strict()
	if p.salt, err = b64.DecodeString(parts[4]); err != nil || len(p.salt) != saltSize {
		return p, errHash
	}
	if p.hash, err = b64.DecodeString(parts[5]); err != nil || len(p.hash) != hashSize {
		return p, errHash
	}
	return p, nil
}
