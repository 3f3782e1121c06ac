package anchor

import (
	"maps"
	"time"
)

// Touch records that a source has a newer checkpoint than its anchor.
func (f *Folder) Touch(s Source) {
	f.dirtyMu.Lock()
	if len(f.dirty) == 0 {
		f.since = time.Now()
	}
	f.dirty[s] = struct{}{}
	f.dirtyMu.Unlock()
}

// Lag returns how long the oldest touched source has been waiting for its anchor, or 0.
func (f *Folder) Lag() time.Duration {
	f.dirtyMu.Lock()
	defer f.dirtyMu.Unlock()
	switch {
	case !f.writing.IsZero():
		return time.Since(f.writing)
	case len(f.dirty) > 0:
		return time.Since(f.since)
	}
	return 0
}

// Flush writes the anchors of all touched sources. If it returns nil, the anchors of all sources touched before the
// call are durable, including those of a concurrent flush.
func (f *Folder) Flush() error {
	f.flushMu.Lock()
	defer f.flushMu.Unlock()
	f.dirtyMu.Lock()
	dirty := f.dirty
	if len(dirty) == 0 {
		f.dirtyMu.Unlock()
		return nil
	}
	f.dirty, f.writing = make(map[Source]struct{}), f.since
	f.dirtyMu.Unlock()
	notes := make([][]byte, 0, len(dirty))
	for s := range dirty {
		notes = append(notes, s.Checkpoint())
	}
	err := f.Put(notes...)
	f.finishFlush(dirty, err)
	return err
}

// finishFlush ends a flush. Sources that could not be written stay touched.
func (f *Folder) finishFlush(dirty map[Source]struct{}, err error) {
	f.dirtyMu.Lock()
	defer f.dirtyMu.Unlock()
	if err != nil {
		maps.Copy(f.dirty, dirty)
		f.since = f.writing
	}
	f.writing = time.Time{}
}
