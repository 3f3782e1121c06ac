package pebblestore

import "sync"

// absences saves the second search for a name. Nearly every event id is looked up just before its append, and is not
// found. A second search under the write lock costs as much as writing the name. So Lookup notes that a name was
// absent. After that, the name is taken only if it is among the recent names that came since.
//
// Invariant: a note (name, n) says that the name was absent when n applies were done. A note that is
// lost, or older than the recent names, costs a search and nothing else.
type absences struct {
	recent *recentNames
	shards [noteShards]noteShard
}

const (
	noteShards   = 16
	notesPerHalf = 2048 // of a shard: 64 Ki names in all, about 4 MiB
)

// noteShard is a bounded set of notes in two generations; a full one drops the older half.
type noteShard struct {
	mu         sync.Mutex
	young, old map[nameKey]uint64
}

func newAbsences(recent *recentNames) *absences {
	a := &absences{recent: recent}
	for i := range a.shards {
		a.shards[i].young = make(map[nameKey]uint64)
	}
	return a
}

func (a *absences) shardOfName(key *nameKey) *noteShard {
	return &a.shards[key[len(key)-1]%noteShards]
}

// noteAbsence keeps that a search that began when so many applies were done did not find a name.
func (a *absences) noteAbsence(key *nameKey, applies uint64) {
	s := a.shardOfName(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.young) >= notesPerHalf {
		s.young, s.old = make(map[nameKey]uint64, notesPerHalf), s.young
	}
	s.young[*key] = applies
}

// isKnownAbsent reports whether it is certain that no applied append has the name. The caller holds the write lock.
func (a *absences) isKnownAbsent(key *nameKey) bool {
	s := a.shardOfName(key)
	s.mu.Lock()
	noted, ok := s.young[*key]
	if !ok {
		noted, ok = s.old[*key]
	}
	s.mu.Unlock()
	return ok && a.recent.none(key, noted)
}
