package exchange

import (
	"crypto/sha256"
	"io"
)

// maxAcknowledged bounds the number of notes that are remembered for one node, about 40 bytes each. Further notes are
// sent again after a failure.
const maxAcknowledged = 1 << 18

// noteHash identifies a note of a journal.
type noteHash [16]byte

func hashNote(journal string, note []byte) (hash noteHash) {
	h := sha256.New()
	_, _ = io.WriteString(h, journal+"\x00") // never fails
	_, _ = h.Write(note)
	copy(hash[:], h.Sum(nil))
	return hash
}

// acknowledged contains the notes that a node has acknowledged while it is being sent all notes. It must not be used
// concurrently.
type acknowledged struct{ notes map[noteHash]struct{} }

func (a *acknowledged) contains(h noteHash) bool {
	_, found := a.notes[h]
	return found
}

func (a *acknowledged) add(hashes []noteHash) {
	if a.notes == nil {
		a.notes = make(map[noteHash]struct{}, len(hashes))
	}
	for _, h := range hashes {
		if len(a.notes) < maxAcknowledged {
			a.notes[h] = struct{}{}
		}
	}
}
