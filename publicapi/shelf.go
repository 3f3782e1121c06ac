package publicapi

import (
	"sync"

	"github.com/agentledger/agentledger/id"
)

// bundleKey names a full entry bundle, which never changes.
type bundleKey struct {
	tenant id.Tenant
	index  uint64
}

// shelf keeps representations within a bound of bytes. When there is no room, one
// goes that was not asked for since somebody last looked for room.
type shelf struct {
	room int64

	mu    sync.Mutex
	all   map[bundleKey]*shelved
	bytes int64
}

type shelved struct {
	representation
	recent bool
}

const (
	shelvedBytes = 192 // what one takes beside its body
	evictionLook = 16  // how many are looked at to find an old one
)

func newShelf(room int64) *shelf { return &shelf{room: room, all: make(map[bundleKey]*shelved)} }

func (s *shelf) get(k bundleKey) (representation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, ok := s.all[k]
	if !ok {
		return representation{}, false
	}
	kept.recent = true
	return kept.representation, true
}

// put keeps r, unless it is there or larger than all of the room. The body
// belongs to the shelf then.
func (s *shelf) put(k bundleKey, r representation) {
	size := int64(len(r.body)) + shelvedBytes
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.all[k]; there || size > s.room {
		return
	}
	for s.bytes+size > s.room {
		s.evict()
	}
	s.all[k] = &shelved{representation: r}
	s.bytes += size
}

// evict drops the first one found that was not used lately; it looks at a few
// only, in the map's own order, which is another one each time.
func (s *shelf) evict() {
	looked := 0
	for k, kept := range s.all {
		if looked++; looked == evictionLook || looked == len(s.all) || !kept.recent {
			delete(s.all, k)
			s.bytes -= int64(len(kept.body)) + shelvedBytes
			return
		}
		kept.recent = false
	}
}
