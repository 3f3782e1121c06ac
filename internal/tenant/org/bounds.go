package org

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/storage"
)

// ingestKeyResource counts an organization's ingest keys. The records of revoked keys remain, so both numbers are
// limited.
func ingestKeyResource() quota.Resource {
	return quota.Resource{
		Kind: kindIngestKey,
		Ended: func(r storage.Record) (bool, error) {
			_, stored, err := decodeIngestKey(r)
			return err == nil && stored.RevokedAt != 0, err
		},
		Most: func(l quota.Limits) uint64 { return l.IngestKeys },
		Full: func(most uint64) string {
			return fmt.Sprintf("The organization has %s, as many as its plan allows: revoke one first",
				textcheck.Count(most, "ingest key"))
		},
		Spent: func(made uint64) string {
			return fmt.Sprintf("The organization has created %s, ten times as many as its plan allows at once",
				textcheck.Count(made, "ingest key"))
		},
	}
}

// countIngestKey returns the changes that count one more ingest key.
func (o *Orgs) countIngestKey(ctx context.Context, t id.Tenant) ([]storage.Change, error) {
	counted, err := o.quota.Make(ctx, t, ingestKeyResource())
	if err != nil {
		return nil, err
	}
	paced, err := o.quota.CountStatement(ctx, t)
	return append(paced, counted), err
}

// countStatement returns the changes that count one more change by members of an organization. It returns none for
// the operator.
func (o *Orgs) countStatement(ctx context.Context, t id.Tenant, principal string) ([]storage.Change, error) {
	if principal == sysevent.Operator {
		return nil, nil
	}
	return o.quota.CountStatement(ctx, t)
}

// checkAgentsExist returns fault.Invalid for agents that the organization does not have. The error is the same if
// another organization has the agent.
func (o *Orgs) checkAgentsExist(ctx context.Context, t id.Tenant, agents []id.Agent) error {
	for i, a := range agents {
		exists := false
		if o.agents != nil {
			var err error
			if exists, err = o.agents.Exists(ctx, t, a); err != nil {
				return err
			}
		}
		if !exists {
			return fault.New(fault.Invalid, fmt.Sprintf("agents[%d] is not an agent of the organization", i))
		}
	}
	return nil
}
