package anchor

import (
	"maps"
	"slices"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// Note is a durable note of a folder, for the folders of other processes that share the store.
type Note struct {
	Slug bool   // a slug and its organization, and not a signed checkpoint
	Text []byte // must not be modified
}

// maxFollowed bounds the origins and slugs that wait for a slow follower, about 300 bytes each.
const maxFollowed = 64 << 10

// Follower collects the notes that this process makes durable in a folder, only the latest checkpoint of each origin.
// It never delays a write. Methods may be called concurrently.
type Follower struct {
	folder *Folder
	ready  chan struct{} // contains a token while there are notes to take
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

// Follow starts a follower. The caller must Close it.
func (f *Folder) Follow() *Follower {
	follower := &Follower{folder: f, ready: make(chan struct{}, 1), most: maxFollowed}
	follower.clear()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers = append(f.followers, follower)
	return follower
}

// Close stops the follower.
func (w *Follower) Close() {
	w.folder.mu.Lock()
	defer w.folder.mu.Unlock()
	w.folder.followers = slices.DeleteFunc(w.folder.followers, func(other *Follower) bool { return other == w })
}

// Ready returns a channel that receives a value when there are notes to take.
func (w *Follower) Ready() <-chan struct{} { return w.ready }

// Take returns the notes since the last call, slugs first. missed reports whether notes were dropped because there were
// too many. Folder.Notes returns all of them.
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

// clear removes all collected notes. The caller must hold mu, or be the only user.
func (w *Follower) clear() {
	w.heads, w.slugs, w.missed = make(map[originHash]followedHead), make(map[slugHash][]byte), false
}

// addHead adds a durable checkpoint.
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

// addSlug adds a durable note of a slug.
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
