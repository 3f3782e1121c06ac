package anchor

import "github.com/agentledger/agentledger/internal/syncs"

// LongestJournal returns how many notes a journal of so many origins has at most.
func LongestJournal(origins int) int { return maxNotes(origins) }

// LimitFollower makes a follower miss what is beyond n origins and slugs.
func LimitFollower(w *Follower, n int) { w.keys = syncs.NewInbox[noteKey](n) }

// HoldWrites makes f look as while a write to its disk does not return, until release is called.
func HoldWrites(f *Folder) (release func()) {
	f.mu.Lock()
	return f.mu.Unlock
}
