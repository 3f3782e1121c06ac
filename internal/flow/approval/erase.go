package approval

import (
	"context"
	"iter"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Behind yields the stored approvals after the given one, oldest first. For "" it yields all.
func (a *Approvals) Behind(ctx context.Context, t id.Tenant, after ID) iter.Seq2[Approval, error] {
	return func(yield func(Approval, error) bool) {
		for r, err := range a.stores.approvals.Scan(ctx, t, records.After(string(after)), scanPage) {
			if !yield(r.Value.toApproval(ID(r.Key), r.Value.Status), err) || err != nil {
				return
			}
		}
	}
}

// Erase returns the changes that remove the payload, the subject, the principal and, if the approval has ended, the callback
// address of an approval. It returns none if the approval was erased before. The changes must be written in the
// append of the event that states the erasure. The approval continues with its status and votes: a salted hash of
// the principal still keeps that account from voting.
func (a *Approvals) Erase(ctx context.Context, t id.Tenant, name ID, at id.Instant) ([]storage.Change, error) {
	r, err := a.readApproval(ctx, t, name)
	if err != nil || r.Value.ErasedAt != 0 {
		return nil, err
	}
	r.Value.eraseTexts(at)
	change, err := a.stores.approvals.Put(r)
	change.Forget = true
	return []storage.Change{change, unindexAction(r.Value.ActionDigest, r.Key)}, err
}
