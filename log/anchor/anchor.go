// Package anchor stores the latest checkpoint that was shown of each ledger, separately from the ledgers. This detects a
// store that was rolled back, because its heads do not extend their anchors. It hides the journals: how notes are written
// together, compacted, recovered after damage, and exchanged between processes.
//
// Invariants:
//
//   - A checkpoint is durable when Put returns nil, and no crash removes it.
//   - The anchor of an origin is the largest checkpoint that was put, in whatever order.
//   - A note that a crash cut off at the end of a journal is removed. Any other damage stays in the journal, and the notes
//     before and after it are used. An origin whose latest note may have been in the damaged bytes is doubtful until
//     another checkpoint of it is put.
//   - Only one process uses a folder at a time: two would overwrite each other's notes, and could write to one database
//     without noticing each other.
//   - A slug is never given to another organization, even if the store was rolled back to before its organization was
//     created.
package anchor

import (
	"crypto/sha256"
	"errors"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Folder is a folder of anchors, in production on another volume than the store. It contains two append-only journals
// with a checksum on each note: one of checkpoints, one of slugs. Methods may be called concurrently.
//
// Notes are written together with one sync, at most once per second and at the end. Only the latest size and root of
// each origin are kept in memory. Run compacts a journal that has many more notes than origins.
type Folder struct {
	dir      string
	readOnly bool

	mu         sync.Mutex
	lock       *os.File // nil if read-only and the lock file can't be opened
	journal    *journal
	heads      map[originHash]head
	round      uint32 // number of the latest compaction
	slugs      *journal
	slugOwners map[slugHash]originHash
	doubts     doubts
	closed     bool // all files are closed
	followers  []*Follower

	waitMu sync.Mutex
	next   *sharedWrite // the write after the current one, nil if no caller waits

	flushMu sync.Mutex // held during a flush
	dirtyMu sync.Mutex
	dirty   map[Source]struct{}
	since   time.Time // when the first of dirty was touched
	writing time.Time // since of the current flush, or zero

	lost      atomic.Uint64
	lastBytes atomic.Int64 // latest size that JournalBytes has read
}

// Source is a ledger whose latest checkpoint becomes its anchor. Its dynamic type must be comparable, for example a
// pointer.
type Source interface {
	// Checkpoint returns the latest signed checkpoint that readers may have seen.
	Checkpoint() []byte
}

type (
	originHash [16]byte // first bytes of SHA-256(origin)
	head       struct {
		size   id.Index
		root   id.Hash
		copied uint32 // the compaction that has copied the note, or 0
	}
	originHead struct {
		origin originHash
		head
	}
)

func hashOrigin(o id.Origin) originHash { return hashOriginText([]byte(o)) }

func hashOriginText(origin []byte) originHash {
	h := sha256.Sum256(origin)
	return originHash(h[:16])
}

// rememberHead keeps the largest checkpoint of each origin. Notes of a ledger that was loaded again may come in either
// order.
func (f *Folder) rememberHead(origin originHash, shown head) {
	if old, ok := f.heads[origin]; !ok || old.size <= shown.size {
		f.heads[origin] = shown
	}
}

// Find returns the anchor of an origin, if there is one.
func (f *Folder) Find(o id.Origin) (shown tlog.Checkpoint, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found, ok := f.heads[hashOrigin(o)]
	return tlog.Checkpoint{Origin: o, Size: found.size, Root: found.root}, ok
}

// Size returns the size of the anchor of an origin, if there is one.
func (f *Folder) Size(o id.Origin) (size id.Index, ok bool) {
	shown, ok := f.Find(o)
	return shown.Size, ok
}

// HasAny reports whether any origin has an anchor.
func (f *Folder) HasAny() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.heads) > 0
}

// ReadOnly reports whether the folder was opened by OpenReadOnly.
func (f *Folder) ReadOnly() bool { return f.readOnly }

// JournalBytes returns the size of the journal of checkpoints. While the journal is being written it returns an earlier
// size, so that metrics can be collected while the disk hangs.
func (f *Folder) JournalBytes() int64 {
	if f.mu.TryLock() {
		f.lastBytes.Store(f.journal.size)
		f.mu.Unlock()
	}
	return f.lastBytes.Load()
}

// TimesLost returns how often the folder or a journal was found removed or replaced.
func (f *Folder) TimesLost() uint64 { return f.lost.Load() }

var (
	errReadOnly = errors.New("the anchors are open for reading only")
	errLost     = errors.New("the folder or its journal was removed or replaced")
)

// Comparison compares the anchors with the ledgers of a store. It must be used by one goroutine at a time.
type Comparison struct {
	folder  *Folder
	missing map[originHash]struct{}
}

// CompareOrigins begins a comparison of all origins that have an anchor now. Later origins are not reported as missing.
func (f *Folder) CompareOrigins() *Comparison {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &Comparison{folder: f, missing: make(map[originHash]struct{}, len(f.heads))}
	for origin := range f.heads {
		c.missing[origin] = struct{}{}
	}
	return c
}

// MarkPresent records that the store has a ledger of an origin.
func (c *Comparison) MarkPresent(o id.Origin) { delete(c.missing, hashOrigin(o)) }

// CountMissing returns the number of origins that are not marked.
func (c *Comparison) CountMissing() int { return len(c.missing) }

// Missing returns the origins that are not marked, in the order of their first notes, and the slugs of those that are
// the first origin of their organization.
func (c *Comparison) Missing() (origins []id.Origin, slugs map[id.Origin]id.Slug, err error) {
	if len(c.missing) == 0 {
		return nil, nil, nil
	}
	if origins, err = c.folder.listOrigins(c.missing); err != nil {
		return nil, nil, err
	}
	slugs, err = c.folder.listSlugs(origins)
	return origins, slugs, err
}

// listOrigins returns the origins with the given hashes, in the order of their first notes.
func (f *Folder) listOrigins(hashes map[originHash]struct{}) (origins []id.Origin, err error) {
	left := maps.Clone(hashes)
	f.mu.Lock()
	defer f.mu.Unlock()
	err = f.journal.readAllNotes(func(note []byte) error {
		origin, _, err := parseCheckpoint(note)
		if err != nil {
			return nil // a damaged note
		}
		hash := hashOriginText(origin)
		if _, is := left[hash]; is {
			delete(left, hash)
			origins = append(origins, id.Origin(origin))
		}
		return nil
	})
	return origins, err
}
