package workflow

import (
	"context"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// newestRecord is what a list of runs is filtered by.
type newestRecord struct {
	Status Status   `json:"status"` // as it is stated
	Agent  id.Agent `json:"agent_id"`
}

// newest writes a run into the list of runs, in place of what stood there of it.
func (r *record) newest(name ID) (storage.Change, error) {
	v := records.Value[newestRecord]{Value: newestRecord{r.Status, r.Agent}, At: storage.AnyVersion}
	return v.Change(kindNewest, newestName(name))
}

// digits are those of an id, in their order.
const digits = "0123456789abcdefghijklmnopqrstuv"

// newestName is the key of a run in the list: names of runs that rise make keys that
// fall. It is its own inverse.
func newestName(name ID) string {
	prefix, rest, _ := strings.Cut(string(name), "_")
	return prefix + "_" + strings.Map(func(d rune) rune {
		if at := strings.IndexRune(digits, d); at >= 0 {
			return rune(digits[len(digits)-1-at])
		}
		return d
	}, rest)
}

// Filter says which runs are wanted.
type Filter struct {
	Status Status   // "" for all
	Agent  id.Agent // "" for all
}

// mayMatch is for who has not seen the run itself: a running one may be abandoned by
// the clock.
func (f Filter) mayMatch(r newestRecord) bool {
	status := f.Status == "" || f.Status == r.Status || f.Status == Abandoned && r.Status == Running
	return status && (f.Agent == "" || f.Agent == r.Agent)
}

// listLook is how many runs a page of a list looks at, at the most.
const listLook = 10_000

// List returns at most limit runs of an organization that began before the given one,
// "" for none, the newest first. next is where the following page begins, "" at the end:
// a page may hold less than limit, also none, and not be the last.
func (w *Workflows) List(ctx context.Context, t id.Tenant, f Filter, before ID, limit int) (found []Run, next ID, err error) {
	begin := ""
	if before != "" {
		begin = newestName(before) + "\x00"
	}
	for looked := 0; looked < listLook; {
		chunk := 1000
		if f == (Filter{}) {
			chunk = limit - len(found) + 1
		}
		page, err := w.records.Scan(ctx, t, kindNewest, begin, "", chunk)
		if err != nil {
			return nil, "", unreadable("list runs", err)
		}
		for i := range page {
			if len(found) == limit {
				return found, next, nil
			}
			next = ID(newestName(ID(page[i].Key)))
			if found, err = w.listed(ctx, t, f, found, page[i]); err != nil {
				return nil, "", err
			}
		}
		if len(page) < chunk {
			return found, "", nil
		}
		looked += len(page)
		begin = page[len(page)-1].Key + "\x00"
	}
	return found, next, nil
}

// listed adds the run of an entry of the list, if it is wanted.
func (w *Workflows) listed(ctx context.Context, t id.Tenant, f Filter, found []Run, entry storage.Record) ([]Run, error) {
	e, err := records.Decode[newestRecord](entry)
	if err != nil {
		return nil, unreadable("list runs", err)
	}
	if !f.mayMatch(e.Value) {
		return found, nil
	}
	name := ID(newestName(ID(entry.Key)))
	r, err := w.run(ctx, t, name)
	if err != nil {
		return nil, unreadable("list runs", err)
	}
	if run := r.Value.shown(name, w.now()); f.Status == "" || run.Status == f.Status {
		found = append(found, run)
	}
	return found, nil
}
