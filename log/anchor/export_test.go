package anchor

import "github.com/agentledger/agentledger/internal/syncs"

// LongestJournal returns the maximum number of notes in a journal of the given number of origins.
func LongestJournal(origins int) int { return maxNotes(origins) }

// LimitFollower bounds a follower to n origins and slugs.
func LimitFollower(w *Follower, n int) { w.keys = syncs.NewInbox[noteKey](n) }

// HoldWrites makes f behave as if a write to its disk does not return, until release is called.
func HoldWrites(f *Folder) (release func()) {
	f.mu.Lock()
	return f.mu.Unlock
}
