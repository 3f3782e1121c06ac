package anchor

import (
	"maps"
	"slices"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// Note is one durable note of a folder, for the folders of other processes that share the store.
type Note struct {
	Slug bool   // a slug and its organization; else a signed checkpoint
	Text []byte // callers don't write to it
}

// maxFollowed bounds the origins and slugs that wait for a slow follower, at about 300 bytes each.
const maxFollowed = 64 << 10

// Follower collects the notes that this process makes durable in a folder. It never delays a write. Of each origin
// only the newest checkpoint waits. Its methods may be called concurrently.
type Follower struct {
	folder *Folder
	ready  chan struct{} // holds a token while there is something to take
	most   int

	mu     sync.Mutex
	heads  map[originHash]followedHead
	slugs  map[slugHash][]byte
	missed bool
}

type followedHead struct {
	size id.Index
	note []byte
}

// Follow begins to collect. The caller calls Close when it follows no longer.
func (f *Folder) Follow() *Follower {
	follower := &Follower{folder: f, ready: make(chan struct{}, 1), most: maxFollowed}
	follower.clear()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers = append(f.followers, follower)
	return follower
}

// Close ends the collecting.
func (w *Follower) Close() {
	w.folder.mu.Lock()
	defer w.folder.mu.Unlock()
	w.folder.followers = slices.DeleteFunc(w.folder.followers, func(other *Follower) bool { return other == w })
}

// Ready receives when there is something to take.
func (w *Follower) Ready() <-chan struct{} { return w.ready }

// Take returns the notes since the last call, slugs first. missed says that there were too many, and some were left
// out: Folder.Notes has them.
func (w *Follower) Take() (notes []Note, missed bool) {
	w.mu.Lock()
	heads, slugs, missed := w.heads, w.slugs, w.missed
	w.clear()
	w.mu.Unlock()
	notes = make([]Note, 0, len(heads)+len(slugs))
	for note := range maps.Values(slugs) {
		notes = append(notes, Note{Slug: true, Text: note})
	}
	for h := range maps.Values(heads) {
		notes = append(notes, Note{Text: h.note})
	}
	return notes, missed
}

// clear begins anew. The caller holds mu, or is the only one that knows the follower.
func (w *Follower) clear() {
	w.heads, w.slugs, w.missed = make(map[originHash]followedHead), make(map[slugHash][]byte), false
}

// addHead collects a checkpoint that is durable.
func (w *Follower) addHead(shown originHead, note []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waits, found := w.heads[shown.origin]
	switch {
	case !found && w.isFull():
		w.missed = true
	case !found || waits.size <= shown.size:
		w.heads[shown.origin] = followedHead{size: shown.size, note: note}
	}
	w.signal()
}

// addSlug collects a note of a slug that is durable.
func (w *Follower) addSlug(slug slugHash, note []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, found := w.slugs[slug]; !found && w.isFull() {
		w.missed = true
	} else {
		w.slugs[slug] = note
	}
	w.signal()
}

func (w *Follower) isFull() bool { return len(w.heads)+len(w.slugs) >= w.most }

func (w *Follower) signal() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}
