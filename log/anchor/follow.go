package anchor

import (
	"slices"
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
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

	mu    sync.Mutex // makes changes of keys and notes atomic
	keys  *syncs.Inbox[noteKey]
	notes map[noteKey]followedNote // for each key in keys
}

// noteKey identifies an origin or a slug.
type noteKey struct {
	slug bool
	hash [16]byte
}

type followedNote struct {
	size id.Index // of the checkpoint; 0 for a slug
	text []byte
}

// Follow starts a follower. The caller must Close it.
func (f *Folder) Follow() *Follower {
	follower := &Follower{
		folder: f, keys: syncs.NewInbox[noteKey](maxFollowed), notes: make(map[noteKey]followedNote),
	}
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
func (w *Follower) Ready() <-chan struct{} { return w.keys.Ready() }

// Take returns the notes since the last call, slugs first. missed reports whether notes were dropped because there were
// too many. Folder.Notes returns all of them.
func (w *Follower) Take() (notes []Note, missed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys, missed := w.keys.Take()
	notes = make([]Note, 0, len(keys))
	for _, slugs := range []bool{true, false} {
		for _, key := range keys {
			if key.slug == slugs {
				notes = append(notes, Note{Slug: slugs, Text: w.notes[key].text})
			}
		}
	}
	w.notes = make(map[noteKey]followedNote)
	return notes, missed
}

// addHead adds a durable checkpoint.
func (w *Follower) addHead(shown originHead, note []byte) {
	w.add(noteKey{hash: shown.origin}, followedNote{size: shown.size, text: note})
}

// addSlug adds a durable note of a slug.
func (w *Follower) addSlug(slug slugHash, note []byte) {
	w.add(noteKey{slug: true, hash: slug}, followedNote{text: note})
}

func (w *Follower) add(key noteKey, note followedNote) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if waiting, found := w.notes[key]; found && waiting.size > note.size {
		return
	}
	if w.keys.Add(key) {
		w.notes[key] = note
	}
}
