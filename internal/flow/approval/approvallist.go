package approval

import (
	"context"
	"errors"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// listRecord is the part of an approval that lists filter by, without the payload.
type listRecord struct {
	Status       Status     `json:"status"` // as recorded
	Agent        id.Agent   `json:"agent_id"`
	Tool         id.Tool    `json:"tool_name"`
	PolicyDigest id.Hash    `json:"policy_digest"`
	CreatedAt    id.Instant `json:"created_at"`
	ExpiresAt    id.Instant `json:"expires_at"`
}

func (r *record) toListed() listRecord {
	return listRecord{r.Status, r.Agent, r.Tool, r.PolicyDigest, r.CreatedAt, r.ExpiresAt}
}

// findListed is findStatus for an entry of the list. It reads the approval only if the policy must be evaluated
// again.
func (j *judge) findListed(ctx context.Context, name ID, entry *listRecord) (Status, error) {
	short := record{Status: entry.Status, CreatedAt: entry.CreatedAt, ExpiresAt: entry.ExpiresAt}
	status := short.statusByTime(j.owner.currentTime())
	if !status.Open() || entry.PolicyDigest == j.digest {
		return status, nil
	}
	if obliges, known := j.owner.verdicts.Get(verdictKey{j.tenant, name, j.digest}); known && obliges {
		return status, nil
	} else if known {
		return Invalidated, nil
	}
	r, err := j.owner.readApproval(ctx, j.tenant, name)
	if err != nil {
		return "", err
	}
	return j.findStatus(ctx, name, &r.Value)
}

// listedChange returns the change that marks the list as complete.
func listedChange() storage.Change {
	return storage.Change{Kind: kindNewest, Key: listedKey, Value: []byte("{}"), If: storage.AnyVersion}
}

// ensureListed adds the approvals that an older program wrote to the list. Approvals that change in the meantime add
// their own entry.
func (a *Approvals) ensureListed(ctx context.Context, t id.Tenant) error {
	tally, err := a.stores.open.Tallies.Get(ctx, t, "")
	if err != nil || tally.Version == 0 { // no approval was ever requested
		return err
	}
	complete, err := a.stores.open.List.Get(ctx, t, listedKey)
	if err != nil || complete.Exists() {
		return err
	}
	for r, err := range a.stores.approvals.Scan(ctx, t, records.Range{}, scanPage) {
		if err != nil {
			return err
		}
		change, err := a.stores.open.Entry(r.Key, r.Value.toListed())
		if err == nil {
			change.If = 0 // a newer program may have listed it
			err = a.stores.open.List.Records.Write(ctx, t, []storage.Change{change})
		}
		if err != nil && !errors.Is(err, storage.ErrStale) {
			return errUnreadable("list approvals", err)
		}
	}
	if err := a.stores.open.List.Records.Write(ctx, t, []storage.Change{listedChange()}); err != nil {
		return errUnreadable("list approvals", err)
	}
	return nil
}
