package approval

import (
	"context"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
)

// Find returns an approval of an organization; fault.NotFound when it has none
// of that id. People see what is stored, also where log.State.Trusted is an error.
func (a *Approvals) Find(ctx context.Context, t id.Tenant, name ID) (Approval, error) {
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return Approval{}, err
	}
	return a.findIn(ctx, s, name, allowAnyone)
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
func (a *Approvals) List(
	ctx context.Context, t id.Tenant, status Status, after ID, limit int,
) (found []Approval, next ID, err error) {
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return nil, "", err
	}
	active, err := a.activePolicyDigest(ctx, s)
	if err != nil {
		return nil, "", err
	}
	if status.Open() {
		return a.listOpen(ctx, t, active, status, after, limit)
	}
	size, looked := 0, 0
	for r, err := range a.stores.approvals.Scan(ctx, t, records.After(string(after)), scanPage) {
		if err != nil {
			return nil, "", err
		}
		shown := r.Value.toApproval(ID(r.Key), r.Value.statusAt(a.currentTime(), active))
		if status == "" || shown.Status == status {
			found = append(found, shown)
			size += len(shown.Payload)
		}
		if looked++; len(found) == limit || size > maxPage || looked == listLook {
			return found, ID(r.Key), nil
		}
	}
	return found, "", nil
}

// listOpen reads the records of open approvals, which are few.
func (a *Approvals) listOpen(
	ctx context.Context, t id.Tenant, active id.Hash, status Status, after ID, limit int,
) (found []Approval, next ID, err error) {
	names, err := a.openNames(ctx, t)
	if err != nil {
		return nil, "", err
	}
	size := 0
	for _, name := range names {
		if name <= after {
			continue
		}
		r, err := a.readApproval(ctx, t, name)
		if err != nil {
			return nil, "", err
		}
		if r.Value.statusAt(a.currentTime(), active) == status {
			found = append(found, r.Value.toApproval(name, status))
			size += len(r.Value.Payload)
		}
		if len(found) == limit || size > maxPage {
			return found, name, nil
		}
	}
	return found, "", nil
}

// openNames returns the ids of the approvals that are stored as open, in ascending order.
func (a *Approvals) openNames(ctx context.Context, t id.Tenant) ([]ID, error) {
	found, err := a.stores.open.List(ctx, t, records.Range{}, MaxOpen)
	names := make([]ID, len(found))
	for i := range found {
		names[i] = found[i].Value.Approval
	}
	slices.Sort(names)
	return names, err
}
