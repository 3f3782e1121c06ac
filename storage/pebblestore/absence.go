package pebblestore

import (
	"sync"
	"sync/atomic"
)

// absences saves the second search for a name. Nearly every event id is looked
// up just before its append, and not found; searching for it again under the
// write lock costs as much as writing it. So it is noted when a name was not
// there, and which names came since: a name that was absent is taken only if it
// is among those.
//
// What always holds: recent has every name of the applies numbered above from,
// and a note (name, n) says that the name was not there when n applies were done.
// A note that is lost, or older than from, costs a search and nothing else.
type absences struct {
	applies atomic.Uint64 // done, each visible before it is counted
	notes   [noteShards]noteShard

	// Guarded by the engine's write lock.
	young, old      map[nameKey]struct{} // recent names
	youngFrom, from uint64               // applies done when young, and old, were begun
}

const (
	noteShards   = 16
	notesPerHalf = 2048    // of a shard: 64 Ki names in all, about 4 MiB
	recentNames  = 1 << 16 // in a generation: about 5 MiB for both
)

// noteShard is a bounded set of notes in two generations; a full one drops the
// older half.
type noteShard struct {
	mu         sync.Mutex
	young, old map[nameKey]uint64
}

func newAbsences() *absences {
	a := &absences{young: make(map[nameKey]struct{})}
	for i := range a.notes {
		a.notes[i].young = make(map[nameKey]uint64)
	}
	return a
}

// now returns what a note is to say of a name that a read begun after this call
// does not find.
func (a *absences) now() uint64 { return a.applies.Load() }

func (a *absences) shard(key *nameKey) *noteShard { return &a.notes[key[len(key)-1]%noteShards] }

// note keeps that a name was absent when so many applies were done.
func (a *absences) note(key *nameKey, applies uint64) {
	s := a.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.young) >= notesPerHalf {
		s.young, s.old = make(map[nameKey]uint64, notesPerHalf), s.young
	}
	s.young[*key] = applies
}

// absent reports whether it is certain that no applied append has the name. The
// caller holds the write lock.
func (a *absences) absent(key *nameKey) bool {
	s := a.shard(key)
	s.mu.Lock()
	noted, ok := s.young[*key]
	if !ok {
		noted, ok = s.old[*key]
	}
	s.mu.Unlock()
	if !ok || noted < a.from {
		return false
	}
	_, young := a.young[*key]
	_, old := a.old[*key]
	return !young && !old
}

// applied tells the names of an append that is visible now, and maybe some that
// were refused: those cost a search. The caller holds the write lock.
func (a *absences) applied(names []claim) {
	if len(a.young) >= recentNames {
		a.young, a.old = make(map[nameKey]struct{}, recentNames), a.young
		a.from, a.youngFrom = a.youngFrom, a.applies.Load()
	}
	for i := range names {
		a.young[names[i].key] = struct{}{}
	}
	a.applies.Add(1)
}
