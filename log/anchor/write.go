package anchor

import "fmt"

// sharedWrite is the notes that several callers put with one sync.
type sharedWrite struct {
	notes [][]byte
	done  chan struct{} // closed when err is set
	err   error
}

// Put makes checkpoints the anchors of their origins; they are durable when it returns nil.
// The caller MUST have made the notes or checked their signatures. Callers that come while
// another write is under way share the next one.
func (f *Folder) Put(notes ...[]byte) error {
	w, first := f.joinWrite(notes)
	if first {
		f.mu.Lock()
		f.waitMu.Lock()
		f.next = nil
		f.waitMu.Unlock()
		w.err = f.writeNotes(w.notes)
		f.mu.Unlock()
		close(w.done)
	}
	<-w.done
	if w.err != nil {
		return fmt.Errorf("write anchors: %w", w.err)
	}
	return nil
}

// joinWrite adds notes to the next write, and reports whether the caller does that write.
func (f *Folder) joinWrite(notes [][]byte) (w *sharedWrite, first bool) {
	f.waitMu.Lock()
	defer f.waitMu.Unlock()
	if first = f.next == nil; first {
		f.next = &sharedWrite{done: make(chan struct{})}
	}
	f.next.notes = append(f.next.notes, notes...)
	return f.next, first
}

// writeNotes appends notes of this process, and gives them to the followers once they are durable.
func (f *Folder) writeNotes(notes [][]byte) error {
	parsed, err := f.appendHeads(notes)
	if err != nil {
		return err
	}
	for _, w := range f.followers {
		for i, p := range parsed {
			w.addHead(p, notes[i])
		}
	}
	return nil
}

// appendHeads appends notes to the journal and remembers their heads.
func (f *Folder) appendHeads(notes [][]byte) ([]originHead, error) {
	if f.readOnly {
		return nil, errReadOnly
	}
	parsed := make([]originHead, len(notes))
	for i, n := range notes {
		var err error
		if parsed[i], err = parseOriginHead(n); err != nil {
			return nil, err
		}
	}
	if err := appendInPlace(f.journal, notes); err != nil {
		return nil, err
	}
	for _, p := range parsed {
		f.rememberHead(p.origin, p.head)
	}
	return parsed, nil
}

// appendInPlace appends to a journal that is still the file in the folder: notes in any
// other file would not be found again.
func appendInPlace(j *journal, notes [][]byte) error {
	there, err := j.isInPlace()
	if err == nil && !there {
		err = errLost
	}
	if err != nil {
		return err
	}
	return j.appendNotes(notes)
}
