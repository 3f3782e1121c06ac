package pebblestore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/storage/pebblestore/walcheck"
)

// storeFileName is the file that contains a store's format and the state of its manifest. Pebble ignores files with
// other names than its own.
const storeFileName = "agentledger.store"

// storeState is the content of the store file.
//
// Invariant: before the state was written, the recorded manifest was the current one, and the recorded number of its
// bytes was synced. So a crash may leave a state that is older than the manifest, but never a newer one. If the store
// has less than the state records, a file was removed or truncated.
type storeState struct {
	format   uint64
	turn     uint64 // number of writes; identifies the newer of the two slots
	manifest uint64 // number of the current manifest; 0 if unknown
	length   int64  // its synced bytes
}

// The store file consists of two slots of a sector each, written alternately, so a crash damages only the slot that is
// being written. A slot is a line of text, padded with spaces. In all formats, the last word is a checksum of the words
// before it.
const slotLen = walcheck.Sector

const storeFileWord = "agentledger-store/"

func (s storeState) slot() []byte {
	line := fmt.Sprintf("%s%d turn %d manifest %d length %d ", storeFileWord, s.format, s.turn, s.manifest, s.length)
	line += fmt.Sprintf("%08x\n", walcheck.Sum([]byte(line)))
	return []byte(line + strings.Repeat(" ", slotLen-1-len(line)) + "\n")
}

// parseSlot reads a slot. In a known format it must be exactly what slot writes at index. A slot of an unknown format
// is read only up to its format.
func parseSlot(b []byte, index int) (s storeState, ok bool) {
	line, _, _ := strings.Cut(string(b), "\n")
	end := strings.LastIndexByte(line, ' ') + 1
	if line[end:] != fmt.Sprintf("%08x", walcheck.Sum([]byte(line[:end]))) {
		return storeState{}, false
	}
	if _, err := fmt.Sscanf(line, storeFileWord+"%d", &s.format); err != nil {
		return storeState{}, false
	}
	if !isKnownFormat(s.format) {
		return s, true
	}
	_, err := fmt.Sscanf(line, storeFileWord+"%d turn %d manifest %d length %d", &s.format, &s.turn, &s.manifest, &s.length)
	return s, err == nil && bytes.Equal(b, s.slot()) && (s.turn == 0 || int(s.turn%2) == index)
}

// readStoreFile returns the latest state of a store. found is false if there is no store file: an older program created
// the store, or a copy has lost the file. A crash can damage one slot, but it never changes the size of the file.
func readStoreFile(fs vfs.FS, dir string) (s storeState, found bool, err error) {
	path := fs.PathJoin(dir, storeFileName)
	f, err := fs.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return storeState{}, false, nil
	}
	if err != nil {
		return storeState{}, false, err
	}
	b, err := io.ReadAll(io.LimitReader(f, 2*slotLen+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return storeState{}, false, err
	}
	for i := range len(b) / slotLen {
		slot, ok := parseSlot(b[i*slotLen:(i+1)*slotLen], i)
		if ok && !isKnownFormat(slot.format) {
			return slot, true, wantFormat(slot.format)
		}
		if ok && (!found || slot.turn > s.turn) {
			s, found = slot, true
		}
	}
	reason := ""
	switch {
	case len(b) < 2*slotLen:
		reason = fmt.Sprintf(" (it has %d bytes instead of %d)", len(b), 2*slotLen)
	case len(b) > 2*slotLen:
		reason = fmt.Sprintf(" (it has more than %d bytes)", 2*slotLen)
	case found:
		return s, true, nil
	}
	return storeState{}, false, corruptValue(path + " is damaged" + reason + ": restore the file from a copy of the " +
		"stopped store. If there is no copy and all other files of the store are intact, move it away: the next start rebuilds it")
}

// storeFile maintains the store file. directoryFS notifies it of syncs of the manifest. The manifest is synced once for
// each flush and compaction, and so is this file.
type storeFile struct {
	fs  vfs.FS
	dir string

	mu    sync.Mutex
	file  vfs.File // nil while the store is closed
	state storeState
	next  storeState // of a manifest that no marker names yet; manifest is 0 if there is none
	named bool       // a marker for next was created, and its name is not synced yet
}

// openFile opens the file. If found is false, it first creates the file completely, with a state that records no
// manifest.
func (s *storeFile) openFile(state storeState, found bool) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
	path := s.fs.PathJoin(s.dir, storeFileName)
	if !found {
		s.state = storeState{format: formatNumber}
		if err := s.makeFile(path); err != nil {
			return fmt.Errorf("create store file: %w", err)
		}
	}
	if s.file, err = s.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified); err != nil {
		return fmt.Errorf("open store file: %w", err)
	}
	return nil
}

func (s *storeFile) makeFile(path string) error {
	f, err := s.fs.Create(path+".tmp", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(s.state.slot(), s.state.slot()...)); err != nil {
		return errors.Join(err, f.Close())
	}
	return durable.Commit(s.fs, f, path+".tmp", path)
}

// noteSynced records that length bytes of a manifest are synced.
func (s *storeFile) noteSynced(manifest uint64, length int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if manifest != s.state.manifest {
		s.next.manifest, s.next.length = manifest, length
		return nil
	}
	s.state.length = length
	return s.writeState()
}

// raiseFormat writes a higher format of the store, unless it already has one.
func (s *storeFile) raiseFormat(n uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.format >= n {
		return nil
	}
	s.state.format = n
	return s.writeState()
}

// noteMarker records that a marker for a manifest was created.
func (s *storeFile) noteMarker(manifest uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named = s.next.manifest == manifest
}

// directorySynced makes the manifest that a marker was created for the current one. Pebble deletes the previous
// manifest only after that.
func (s *storeFile) directorySynced() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.named {
		return nil
	}
	s.state.manifest, s.state.length = s.next.manifest, s.next.length
	s.named = false
	return s.writeState()
}

// writeState writes the state. If Pebble's Open has failed, one of its jobs may still end after the file is closed. The
// bytes that it adds to the manifest are not recorded, which leaves a valid older state.
func (s *storeFile) writeState() error {
	if s.file == nil {
		return nil
	}
	s.state.turn++
	_, err := s.file.WriteAt(s.state.slot(), int64(s.state.turn%2)*slotLen)
	if err == nil {
		err = s.file.SyncData()
	}
	if err != nil {
		return fmt.Errorf("write store file: %w", err)
	}
	return nil
}

func (s *storeFile) closeFile() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
