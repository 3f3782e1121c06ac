package anchor

import "fmt"

// sharedWrite contains the notes that several callers write with one sync.
type sharedWrite struct {
	notes [][]byte
	done  chan struct{} // closed after err is set
	err   error
}

// Put durably makes checkpoints the anchors of their origins. The caller must have created the notes or verified their
// signatures. Concurrent callers share a write.
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

// joinWrite adds notes to the next write and reports whether the caller must do that write.
func (f *Folder) joinWrite(notes [][]byte) (w *sharedWrite, first bool) {
	f.waitMu.Lock()
	defer f.waitMu.Unlock()
	if first = f.next == nil; first {
		f.next = &sharedWrite{done: make(chan struct{})}
	}
	f.next.notes = append(f.next.notes, notes...)
	return f.next, first
}

// writeNotes appends notes of this process and passes them to the followers once they are durable.
func (f *Folder) writeNotes(notes [][]byte) error {
	written, parsed, err := f.appendHeads(notes)
	if err != nil {
		return err
	}
	for _, w := range f.followers {
		for i, p := range parsed {
			w.addHead(p, written[i])
		}
	}
	return nil
}

// appendHeads appends notes to the journal, remembers their heads and returns both. It leaves out notes that are older
// than the anchor of their origin. So the notes of an origin are ordered by size, and a note after damaged bytes is
// newer than any note in them.
func (f *Folder) appendHeads(notes [][]byte) (written [][]byte, parsed []originHead, err error) {
	if f.readOnly {
		return nil, nil, errReadOnly
	}
	for _, n := range notes {
		p, err := parseOriginHead(n)
		if err != nil {
			return nil, nil, err
		}
		if known, ok := f.heads[p.origin]; !ok || known.size <= p.size {
			written, parsed = append(written, n), append(parsed, p)
		}
	}
	if len(written) == 0 {
		return nil, nil, nil
	}
	if err := appendInPlace(f.journal, written); err != nil {
		return nil, nil, err
	}
	for _, p := range parsed {
		f.rememberHead(p.origin, p.head)
		f.doubts.settle(p.origin)
	}
	return written, parsed, nil
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
