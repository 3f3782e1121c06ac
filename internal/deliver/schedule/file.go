package schedule

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// The keys of filed entries have the form t/<organization>/<lane>/<time>/<name>. They sort after the keys of waiting
// entries, which begin with a hex digit.
const (
	placesBegin = "t/"
	placesEnd   = "t0" // '0' is the byte after '/'
)

// page is the number of entries per read.
const page = 64

const (
	// filedAtOnce is the number of waiting entries per read.
	filedAtOnce = 1024
	// maxFilers bounds the organizations whose entries are counted. The entries of further organizations are not bounded.
	maxFilers = 65_536
	// A pass files at most this many entries of an organization: filedFirst in the first pass of a sweep, and twice as
	// many in each further pass, up to filedMost.
	filedFirst = 256
	filedMost  = 8192
)

// placeKey returns the key of a filed entry's record.
func (e Entry) placeKey() string {
	return fmt.Sprintf("%s%016x/%s/%016x/%s", placesBegin, uint64(e.Tenant), e.Lane, uint64(e.At), e.encodeTail())
}

// parsePlaceKey parses the key of a filed entry. It returns storage.ErrCorrupt (wrapped) for any other key.
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

// organizationPlaces returns the range of the keys of an organization's filed entries.
func organizationPlaces(t id.Tenant) (begin, end string) {
	return fmt.Sprintf("%s%016x/", placesBegin, uint64(t)), fmt.Sprintf("%s%016x0", placesBegin, uint64(t))
}

// lanePlaces returns the range of the keys of a lane's filed entries.
func lanePlaces(t id.Tenant, lane string) (begin, end string) {
	begin, _ = organizationPlaces(t)
	return begin + lane + "/", begin + lane + "0"
}

// filing is one pass through the waiting entries that are due.
type filing struct {
	x       *Index
	most    int // entries of one organization
	filed   map[id.Tenant]int
	backlog bool // entries were skipped because the pass had filed enough of their organization
	changes []storage.Change
	failed  error  // the latest malformed entry, which is skipped
	first   string // the first entry that was skipped
}

// fileEntries files the waiting entries that are due at now, but at most most of each organization, so that an organization
// with many entries does not delay the others. backlog reports whether it skipped entries for that reason.
func (x *Index) fileEntries(ctx context.Context, now id.Instant, most int) (backlog bool, err error) {
	f := &filing{x: x, most: most, filed: make(map[id.Tenant]int)}
	waiting := records.Range{Begin: x.gaps.filed, End: Entry{At: now + 1}.Key()}
	f.first = waiting.End
	for entry, err := range records.Scan(ctx, x.Records, id.Service, x.Kind, waiting, filedAtOnce) {
		if err != nil {
			return false, wrapReadError(err)
		}
		f.addEntry(ctx, entry.Key)
		if len(f.changes) < 2*filedAtOnce { // two for each entry
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
	return f.backlog, f.failed
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
		f.backlog, f.first = true, min(f.first, key)
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

// writeEntries writes the changes that file entries.
func (f *filing) writeEntries(ctx context.Context) error {
	if len(f.changes) == 0 {
		return nil
	}
	err := f.x.Records.Write(ctx, id.Service, f.changes)
	f.x.gaps.notePlaced(f.changes) // even after an error, because the write may have succeeded
	f.changes = f.changes[:0]
	if err != nil {
		return fmt.Errorf("file due entries: %w", err)
	}
	return nil
}
