// Package objects stores byte strings by name in an object store: a folder, or a bucket of a server with the S3 protocol.
// Callers choose one by its URL (New) and use it through Store.
//
// Invariants:
//
//   - A write is conditional: Create writes only if there is no object, and Replace only over the version that the caller
//     has read. Two writers never overwrite each other unnoticed.
//   - A reader sees a complete object, from before a write or after it.
//   - A write that returned nil is durable by the promise of the store: synced in a folder, acknowledged by the server of a
//     bucket.
//   - A name refers to nothing outside of the store's own folder or prefix.
//   - No error, log line or URL contains a credential.
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
	// ErrNotFound means that there is no object with the name.
	ErrNotFound = errors.New("objects: not found")
	// ErrExists means that there is an object with the name. Nothing was written.
	ErrExists = errors.New("objects: exists")
	// ErrChanged means that the object does not have the expected version, or no longer exists. Nothing was written.
	ErrChanged = errors.New("objects: changed")
	// ErrTooLarge means that the object is larger than the reader's limit.
	ErrTooLarge = errors.New("objects: too large")
	// ErrUnsupported means that the server ignores the conditions of writes, or keeps replaced versions. Retrying does
	// not help.
	ErrUnsupported = errors.New("objects: the server can't hold an archive")
)

// Store stores objects by name. A name is 1 to 512 bytes: segments of ASCII letters, digits, "-", "_" and ".",
// separated by "/". A segment has at most 200 bytes and does not begin with ".". A name must not be a folder of another
// name: if "a" is a name, "a/b" is not.
//
// All methods may be called concurrently, and from several processes. Errors other than those of this package wrap
// storage.ErrUnavailable. After such an error, a write may or may not have been carried out.
type Store interface {
	// Create writes a new object. It returns ErrExists if the object exists.
	Create(ctx context.Context, name string, data []byte) error
	// Read returns an object of at most limit bytes and its version. It returns ErrNotFound or ErrTooLarge if it
	// cannot. A version is opaque. Two equal contents may have the same version.
	Read(ctx context.Context, name string, limit int64) (data []byte, version string, err error)
	// Replace replaces the version of an object that was read. It returns ErrChanged if the object has another version.
	Replace(ctx context.Context, name string, data []byte, version string) error
	// Delete removes an object. It is no error if the object does not exist.
	Delete(ctx context.Context, name string) error
}

// Bounds of a name and its segments, in bytes. S3 allows keys of 1,024 bytes, and file systems names of 255.
const (
	maxName    = 512
	maxSegment = 200
)

// checkName rejects an invalid name.
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

// unavailable wraps the error of a step in storage.ErrUnavailable.
func unavailable(step string, err error) error {
	return fmt.Errorf("objects: %s: %w: %w", step, storage.ErrUnavailable, err)
}
