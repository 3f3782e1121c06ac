package workflow

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
)

// newestRecord is the part of a run that lists filter by.
type newestRecord struct {
	Status Status   `json:"status"` // as recorded
	Agent  id.Agent `json:"agent_id"`
}

func (r *record) toListed() newestRecord { return newestRecord{r.Status, r.Agent} }

// newestName returns the key of a run in the list. It is its own inverse.
func newestName(name ID) string { return records.ReverseKey(string(name)) }

// Filter selects runs.
type Filter struct {
	Status Status   // "" for all
	Agent  id.Agent // "" for all
}

// mayMatch reports whether a run may match, judging by its list entry: a running one may be abandoned by now.
func (f Filter) mayMatch(r newestRecord) bool {
	status := f.Status == "" || f.Status == r.Status || f.Status == Abandoned && r.Status == Running
	return status && (f.Agent == "" || f.Agent == r.Agent)
}

// listLook bounds the runs that a page examines.
const listLook = 10_000

// List returns at most limit runs of an organization that started before the given one, or all if it is "", latest
// first. next is the start of the following page, or "" at the end. A page may contain fewer than limit runs, even
// none, without being the last one.
func (w *Workflows) List(
	ctx context.Context, t id.Tenant, f Filter, before ID, limit int,
) (found []Run, next ID, err error) {
	begin := ""
	if before != "" {
		begin = newestName(before)
	}
	page, looked := 1000, 0
	if f == (Filter{}) {
		page = limit + 1
	}
	for entry, err := range w.stores.running.List.Scan(ctx, t, records.After(begin), page) {
		if err != nil {
			return nil, "", err
		}
		if len(found) == limit {
			return found, next, nil
		}
		next = ID(newestName(ID(entry.Key)))
		if found, err = w.readListed(ctx, t, f, found, next, entry.Value); err != nil {
			return nil, "", err
		}
		if looked++; looked == listLook {
			return found, next, nil
		}
	}
	return found, "", nil
}

// readListed adds the run of a list entry if it matches.
func (w *Workflows) readListed(
	ctx context.Context, t id.Tenant, f Filter, found []Run, name ID, entry newestRecord,
) ([]Run, error) {
	if !f.mayMatch(entry) {
		return found, nil
	}
	r, err := w.readRun(ctx, t, name)
	if err != nil {
		return nil, errUnreadable("list runs", err)
	}
	if run := r.Value.toRun(name, w.currentTime()); f.Status == "" || run.Status == f.Status {
		found = append(found, run)
	}
	return found, nil
}
