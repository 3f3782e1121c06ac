package approval

import (
	"context"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Find returns an approval of an organization; fault.NotFound when it has none
// of that id. People see what is stored, also where log.State.Trusted is an error.
func (a *Approvals) Find(ctx context.Context, t id.Tenant, name ID) (Approval, error) {
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return Approval{}, err
	}
	return a.findIn(ctx, s, name, anybody)
}

// listLook is how many records a page of a list looks at, at the most.
const listLook = 10_000

// scanPage is how many records are read at once, and maxPage how many bytes of
// payloads a page of a list may hold but for its last approval: payloads are as large
// as events may be, and many people look at lists.
const (
	scanPage = 16
	maxPage  = 1 << 20
)

// List returns at most limit approvals after the given id, oldest first; with a
// status those that are worth that now. next is where the following page begins,
// "" at the end: a page may hold less than limit, also none, and not be the last.
func (a *Approvals) List(ctx context.Context, t id.Tenant, status Status, after ID, limit int) (found []Approval, next ID, err error) {
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return nil, "", err
	}
	active, err := a.activeDigest(ctx, s)
	if err != nil {
		return nil, "", err
	}
	if status.Open() {
		return a.listOpen(ctx, t, active, status, after, limit)
	}
	size := 0
	for looked := 0; looked < listLook; looked += scanPage {
		page, err := a.records.Scan(ctx, t, kindApproval, string(after)+"\x00", "", scanPage)
		if err != nil {
			return nil, "", unreadable("list approvals", err)
		}
		for i := range page {
			after = ID(page[i].Key)
			shown, err := a.decode(page[i], active)
			if err != nil {
				return nil, "", err
			}
			if status == "" || shown.Status == status {
				found = append(found, shown)
				size += len(shown.Payload)
			}
			if len(found) == limit || size > maxPage {
				return found, after, nil
			}
		}
		if len(page) < scanPage {
			return found, "", nil
		}
	}
	return found, after, nil
}

// listOpen goes by the records of what is open, which are few.
func (a *Approvals) listOpen(ctx context.Context, t id.Tenant, active id.Hash, status Status, after ID, limit int) (found []Approval, next ID, err error) {
	names, err := a.openNames(ctx, t)
	if err != nil {
		return nil, "", err
	}
	size := 0
	for _, name := range names {
		if name <= after {
			continue
		}
		r, err := a.approval(ctx, t, name)
		if err != nil {
			return nil, "", err
		}
		if r.Value.statusAt(a.now(), active) == status {
			found = append(found, r.Value.shown(name, status))
			size += len(r.Value.Payload)
		}
		if len(found) == limit || size > maxPage {
			return found, name, nil
		}
	}
	return found, "", nil
}

// openNames returns the ids of what is stored as open, in ascending order.
func (a *Approvals) openNames(ctx context.Context, t id.Tenant) ([]ID, error) {
	found, err := a.records.Scan(ctx, t, kindOpen, "", "", MaxOpen)
	if err != nil {
		return nil, unreadable("list open approvals", err)
	}
	names := make([]ID, len(found))
	for i := range found {
		r, err := records.Decode[openRecord](found[i])
		if err != nil {
			return nil, unreadable("list open approvals", err)
		}
		names[i] = r.Value.Approval
	}
	slices.Sort(names)
	return names, nil
}

func (a *Approvals) decode(r storage.Record, active id.Hash) (Approval, error) {
	v, err := records.Decode[record](r)
	if err != nil {
		return Approval{}, unreadable("decode approval", err)
	}
	return v.Value.shown(ID(r.Key), v.Value.statusAt(a.now(), active)), nil
}
