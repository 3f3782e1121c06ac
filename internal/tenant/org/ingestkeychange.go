package org

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// KeyPatch is a change of an ingest key. Nil members remain unchanged.
type KeyPatch struct {
	Name *string
	Asks *bool // IngestKey.Asks
	// Subjects is the new IngestKey.Subjects. The zero value removes it.
	Subjects *SubjectIssuer
}

// applyTo changes a key's record and returns the payload of the statement about the change.
func (p KeyPatch) applyTo(keyID string, r *ingestKeyRecord) map[string]any {
	payload := map[string]any{"key_id": keyID}
	if p.Name != nil && *p.Name != r.Name {
		r.Name, payload["name"] = *p.Name, *p.Name
	}
	if p.Asks != nil && *p.Asks != r.Asks {
		r.Asks, payload["asks"] = *p.Asks, *p.Asks
	}
	if p.Subjects != nil {
		wanted := p.Subjects
		if *wanted == (SubjectIssuer{}) {
			wanted = nil
		}
		if (wanted == nil) != (r.Subjects == nil) || wanted != nil && *wanted != *r.Subjects {
			r.Subjects, payload["subject_issuer"] = wanted, wanted
		}
	}
	return payload
}

func checkAsks(asks bool, s Scopes) error {
	if asks && (!s.Has(ScopeEvaluate) || !s.Has(ScopeApprovals)) {
		return fault.New(fault.Invalid, "asks requires the scopes evaluate and approvals")
	}
	return nil
}

// ChangeIngestKey changes an ingest key and states the change (ledger_ingest_key_changed). It does not state a member
// that already has the requested value. It returns fault.Invalid for an invalid value, fault.NotFound if the
// organization has no such key, fault.Conflict if the key is revoked, and fault.RateLimited if changes come too fast.
func (o *Orgs) ChangeIngestKey(
	ctx context.Context, t id.Tenant, principal, keyID string, p KeyPatch,
) (changed IngestKey, err error) {
	if p.Name != nil {
		if err := checkName(*p.Name); err != nil {
			return IngestKey{}, err
		}
	}
	if p.Subjects != nil && *p.Subjects != (SubjectIssuer{}) {
		if err := p.Subjects.check(); err != nil {
			return IngestKey{}, err
		}
	}
	var hash id.Hash
	_, err = o.events.Append(ctx, t, principal, func(ctx context.Context, _ *log.State) (sysevent.Change, error) {
		var act sysevent.Change
		act, changed, hash, err = o.prepareKeyChange(ctx, t, keyID, p)
		if err != nil || len(act.Statements) == 0 {
			return act, err
		}
		paced, err := o.countStatement(ctx, t, principal)
		act.Changes = append(act.Changes, paced...)
		return act, err
	})
	o.callers.Drop(hash)
	if err != nil {
		return IngestKey{}, fmt.Errorf("change ingest key: %w", err)
	}
	return o.addLastUse(ctx, t, changed)
}

// prepareKeyChange returns the changes and the statement for a patch. They are empty if nothing changes.
func (o *Orgs) prepareKeyChange(
	ctx context.Context, t id.Tenant, keyID string, p KeyPatch,
) (act sysevent.Change, changed IngestKey, hash id.Hash, err error) {
	r, err := o.records.Get(ctx, t, kindIngestKey, keyID)
	if isAbsent(err) {
		return act, changed, hash, errNotFound()
	}
	if err != nil {
		return act, changed, hash, errUnreadable("change ingest key", err)
	}
	changed, stored, err := decodeIngestKey(r)
	if err != nil {
		return act, changed, hash, err
	}
	if stored.RevokedAt != 0 {
		return act, changed, hash, fault.New(fault.Conflict, "The ingest key is revoked")
	}
	payload := p.applyTo(keyID, stored)
	if err := checkAsks(stored.Asks, changed.Scopes); err != nil || len(payload) == 1 {
		return act, changed, hash, err
	}
	changed.Name, changed.Asks, changed.Subjects = stored.Name, stored.Asks, stored.Subjects
	value, err := json.Marshal(stored)
	return sysevent.Change{
		Statements: []sysevent.Statement{{Kind: sysevent.IngestKeyChanged, Payload: payload}},
		Changes:    []storage.Change{{Kind: kindIngestKey, Key: keyID, Value: value, If: r.Version}},
	}, changed, stored.Hash, err
}
