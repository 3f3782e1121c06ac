package schedule

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Places of filed entries are of the form t/<organization>/<lane>/<time>/<name>. They
// lie behind all waiting entries, whose keys begin with a hex digit.
const (
	placesBegin = "t/"
	placesEnd   = "t0" // '0' is the byte after '/'
)

// page is how many entries are read at once.
const page = 64

const (
	// filedAtOnce is how many waiting entries are read at once.
	filedAtOnce = 1024
	// maxFilers bounds the organizations whose entries are counted; more than so many
	// have no bound each.
	maxFilers = 65_536
	// Of one organization so many entries are filed before others have a turn: at first,
	// then twice as many each time, and so many in the end.
	filedFirst = 256
	filedMost  = 8192
)

// placeKey returns the key of a filed entry's record.
func (e Entry) placeKey() string {
	return fmt.Sprintf("%s%016x/%s/%016x/%s", placesBegin, uint64(e.Tenant), e.Lane, uint64(e.At), e.encodeTail())
}

// parsePlaceKey reads the key of place; storage.ErrCorrupt (wrapped) for anything else.
func parsePlaceKey(key string) (e Entry, err error) {
	parts := strings.SplitN(key, "/", 5)
	if len(parts) != 5 {
		return e, fmt.Errorf("due entry: %w", storage.ErrCorrupt)
	}
	e, err = ParseEntry(parts[3] + "/" + parts[1] + "/" + parts[4])
	if e.Lane = parts[2]; err != nil || e.placeKey() != key {
		return Entry{}, fmt.Errorf("due entry: %w", storage.ErrCorrupt)
	}
	return e, nil
}

// organizationPlaces returns the range of an organization's places.
func organizationPlaces(t id.Tenant) (begin, end string) {
	return fmt.Sprintf("%s%016x/", placesBegin, uint64(t)), fmt.Sprintf("%s%016x0", placesBegin, uint64(t))
}

// lanePlacesOf returns the range of the places of a lane.
func lanePlacesOf(t id.Tenant, lane string) (begin, end string) {
	begin, _ = organizationPlaces(t)
	return begin + lane + "/", begin + lane + "0"
}

// filing is one walk through the waiting entries that are due.
type filing struct {
	x       *Index
	most    int // entries of one organization
	filed   map[id.Tenant]int
	left    bool // some were left, because their organization had enough places
	changes []storage.Change
	failed  error  // by entries that can't be read; they stay
	first   string // the first entry that stays
}

// fileEntries files the waiting entries that are due at now, at most so many of each
// organization, so an organization with many does not delay the others. It reports
// whether some are left.
func (x *Index) fileEntries(ctx context.Context, now id.Instant, most int) (left bool, err error) {
	f := &filing{x: x, most: most, filed: make(map[id.Tenant]int)}
	waiting := records.Range{Begin: x.gaps.filed, End: Entry{At: now + 1}.Key()}
	f.first = waiting.End
	for entry, err := range records.Scan(ctx, x.Records, id.Service, x.Kind, waiting, filedAtOnce) {
		if err != nil {
			return false, wrapReadError(err)
		}
		f.addEntry(ctx, entry.Key)
		if len(f.changes) < 2*filedAtOnce { // two of each entry
			continue
		}
		if err := f.writeEntries(ctx); err != nil {
			return false, err
		}
	}
	if err := f.writeEntries(ctx); err != nil {
		return false, err
	}
	x.gaps.noteFiled(f.first, now)
	return f.left, f.failed
}

// addEntry files one entry.
func (f *filing) addEntry(ctx context.Context, key string) {
	e, err := ParseEntry(key)
	if err != nil {
		f.failed, f.first = err, min(f.first, key)
		return
	}
	if !f.x.owns(e.Tenant) {
		f.first = min(f.first, key)
		return
	}
	n, known := f.filed[e.Tenant]
	if n >= f.most {
		f.left, f.first = true, min(f.first, key)
		return
	}
	if known || len(f.filed) < maxFilers {
		f.filed[e.Tenant] = n + 1
	}
	if f.x.Lane != nil {
		e.Lane = f.x.Lane(ctx, e)
	}
	f.changes = append(f.changes, putChange(f.x.Kind, e.placeKey()), removeChange(f.x.Kind, key))
}

// writeEntries writes the changes of the entries that were filed.
func (f *filing) writeEntries(ctx context.Context) error {
	if len(f.changes) == 0 {
		return nil
	}
	err := f.x.Records.Write(ctx, id.Service, f.changes)
	f.x.gaps.notePlaced(f.changes) // also after an error, whose outcome may be unknown
	f.changes = f.changes[:0]
	if err != nil {
		return fmt.Errorf("file what is due: %w", err)
	}
	return nil
}
