package log

import (
	"maps"
	"time"
)

// touch says that a ledger has a newer state than its anchor.
func (a *Anchors) touch(led *ledger) {
	a.dirtyMu.Lock()
	if len(a.dirty) == 0 {
		a.since = time.Now()
	}
	a.dirty[led] = struct{}{}
	a.dirtyMu.Unlock()
}

// lag returns for how long the oldest newer state has been waiting for its anchor.
func (a *Anchors) lag() time.Duration {
	a.dirtyMu.Lock()
	defer a.dirtyMu.Unlock()
	switch {
	case !a.writing.IsZero():
		return time.Since(a.writing)
	case len(a.dirty) > 0:
		return time.Since(a.since)
	}
	return 0
}

// flush writes the anchors of all touched ledgers.
func (a *Anchors) flush() error {
	a.dirtyMu.Lock()
	dirty := a.dirty
	if len(dirty) == 0 {
		a.dirtyMu.Unlock()
		return nil
	}
	a.dirty, a.writing = make(map[*ledger]struct{}), a.since
	a.dirtyMu.Unlock()
	notes := make([][]byte, 0, len(dirty))
	for led := range dirty {
		notes = append(notes, led.published.Load().Checkpoint())
	}
	err := a.put(notes...)
	a.written(dirty, err)
	return err
}

// written ends a flush. What could not be written is as old as it was.
func (a *Anchors) written(dirty map[*ledger]struct{}, err error) {
	a.dirtyMu.Lock()
	defer a.dirtyMu.Unlock()
	if err != nil {
		maps.Copy(a.dirty, dirty)
		a.since = a.writing
	}
	a.writing = time.Time{}
}
