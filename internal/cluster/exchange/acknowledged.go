package exchange

import (
	"crypto/sha256"
	"io"
)

// maxAcknowledged is how many notes are remembered for one node, at about 40 bytes each. Those beyond it are sent again
// after a failure.
const maxAcknowledged = 1 << 18

// noteHash stands for one note of one journal.
type noteHash [16]byte

func hashOf(journal string, note []byte) (hash noteHash) {
	h := sha256.New()
	_, _ = io.WriteString(h, journal+"\x00") // never fails
	_, _ = h.Write(note)
	copy(hash[:], h.Sum(nil))
	return hash
}

// acknowledged is the notes that a node has taken while it gets all. Its methods are called by one goroutine at a time.
type acknowledged struct{ notes map[noteHash]struct{} }

func (a *acknowledged) contains(h noteHash) bool {
	_, found := a.notes[h]
	return found
}

func (a *acknowledged) addTaken(hashes []noteHash) {
	if a.notes == nil {
		a.notes = make(map[noteHash]struct{}, len(hashes))
	}
	for _, h := range hashes {
		if len(a.notes) < maxAcknowledged {
			a.notes[h] = struct{}{}
		}
	}
}
