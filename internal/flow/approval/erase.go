package approval

import (
	"context"
	"iter"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/actionindex"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Behind yields the approvals behind the given one as they are stored, the oldest first; all for "".
func (a *Approvals) Behind(ctx context.Context, t id.Tenant, after ID) iter.Seq2[Approval, error] {
	return func(yield func(Approval, error) bool) {
		for r, err := range a.stores.approvals.Scan(ctx, t, records.After(string(after)), scanPage) {
			if !yield(r.Value.toApproval(ID(r.Key), r.Value.Status), err) || err != nil {
				return
			}
		}
	}
}

// Erase returns the changes that take the payload of an approval away, none when it is gone. They MUST be
// written in the append of the statement that says so. Status and votes go on. While the approval is open
// its principal stays, because that person may not vote.
func (a *Approvals) Erase(ctx context.Context, t id.Tenant, name ID, at id.Instant) ([]storage.Change, error) {
	r, err := a.readApproval(ctx, t, name)
	if err != nil || r.Value.ErasedAt != 0 {
		return nil, err
	}
	if r.Value.Payload, r.Value.ErasedAt = nil, at; !r.Value.Status.Open() {
		r.Value.Principal = ""
	}
	change, err := a.stores.approvals.Put(r)
	return []storage.Change{change, actionindex.Remove(r.Value.ActionDigest, r.Key)}, err
}
