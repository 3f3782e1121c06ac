// Package objects keeps byte strings under names in an object store: a folder, or a bucket of a server that speaks S3.
//
// Invariants:
//
//   - A write is conditional: Create writes only where there is no object, and Replace only over the version that
//     the caller has read. Two writers never overwrite each other without notice.
//   - A reader sees an object as a whole: before a write, or after it.
//   - A write that returned nil is durable by the promise of the store: synced in a folder, acknowledged by the server
//     in a bucket.
//   - A name reaches nothing outside of the store's own folder or prefix.
//   - No credential is in an error, a log line or a URL.
package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/storage"
)

// Errors of a Store. All other errors wrap storage.ErrUnavailable.
var (
	// ErrNotFound: there is no object of that name.
	ErrNotFound = errors.New("objects: not found")
	// ErrExists: there is an object of that name. Nothing was written.
	ErrExists = errors.New("objects: exists")
	// ErrChanged: the object does not have the expected version, or is gone. Nothing was written.
	ErrChanged = errors.New("objects: changed")
	// ErrTooLarge: the object is larger than the reader's limit.
	ErrTooLarge = errors.New("objects: too large")
	// ErrUnsupported: the server does not honour conditional writes, or keeps replaced versions. No retry helps.
	ErrUnsupported = errors.New("objects: the server can't hold an archive")
)

// Store keeps objects by name. A name is 1 to 512 bytes: segments of ASCII letters, digits, "-", "_" and ".",
// separated by "/". A segment has at most 200 bytes and does not begin with ".". A name MUST NOT be
// another name with "/" and more behind it.
//
// All methods may be called concurrently, and from several processes. An error that is none of this package's
// wraps storage.ErrUnavailable. After such an error of a write the object may be written or not.
type Store interface {
	// Create writes a new object; else ErrExists.
	Create(ctx context.Context, name string, data []byte) error
	// Read returns an object of at most limit bytes and its version; else ErrNotFound or ErrTooLarge. A version
	// is opaque. It may be the same for two equal contents.
	Read(ctx context.Context, name string, limit int64) (data []byte, version string, err error)
	// Replace writes over the version that was read; else ErrChanged.
	Replace(ctx context.Context, name string, data []byte, version string) error
	// Delete removes an object. An absent one is no error.
	Delete(ctx context.Context, name string) error
}

// Bounds of a name and its segments, in bytes. S3 takes keys of 1,024 bytes, file systems names of 255.
const (
	maxName    = 512
	maxSegment = 200
)

// checkName refuses a name that a Store does not take.
func checkName(name string) error {
	if len(name) == 0 || len(name) > maxName {
		return unavailable("check the name", fmt.Errorf("%d bytes, want 1 to %d", len(name), maxName))
	}
	for segment := range strings.SplitSeq(name, "/") {
		if !isSegment(segment) {
			return unavailable("check the name", fmt.Errorf("segment %q", segment))
		}
	}
	return nil
}

func isSegment(s string) bool {
	return 1 <= len(s) && len(s) <= maxSegment && s[0] != '.' && strings.Trim(s, nameBytes) == ""
}

const nameBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

// unavailable wraps the failure of a step, so that errors.Is finds storage.ErrUnavailable.
func unavailable(step string, err error) error {
	return fmt.Errorf("objects: %s: %w: %w", step, storage.ErrUnavailable, err)
}
