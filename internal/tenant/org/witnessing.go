package org

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// Witnessing contains an organization's witness settings. The zero value uses the service's settings.
type Witnessing struct {
	Policy     string `json:"policy"`      // C2SP tlog-policy without log lines, witnesses with their URLs
	FailClosed bool   `json:"fail_closed"` // requests for cosigned checkpoints fail while there is no quorum
}

// WitnessRules determine which witnesses an organization may have. witness.Rules implements it.
type WitnessRules interface {
	// CheckOwn returns fault.Invalid for an invalid policy.
	CheckOwn(policy string) error
}

// checkWitnessing returns fault.Invalid for invalid settings.
func (o *Orgs) checkWitnessing(w Witnessing) error {
	if w == (Witnessing{}) {
		return nil
	}
	if o.rules == nil || w.Policy == "" {
		return fault.New(fault.Invalid, "witnesses require a policy, and a service with witnesses")
	}
	return o.rules.CheckOwn(w.Policy)
}

// Witnessing returns an organization's witness settings without reading its ledger. It returns fault.NotFound if
// there is no organization.
func (o *Orgs) Witnessing(ctx context.Context, t id.Tenant) (Witnessing, error) {
	stored, _, err := o.readRecord(ctx, t)
	if isAbsent(err) {
		return Witnessing{}, errNotFound()
	}
	if err != nil {
		return Witnessing{}, errUnreadable("read witnesses", err)
	}
	return stored.Witnessing, nil
}

// WitnessingIn returns the witness settings in an organization's record. found is false if there is no record or the
// handle is void.
func WitnessingIn(value []byte) (w Witnessing, found bool, err error) {
	if value == nil || string(value) == voidValue {
		return w, false, nil
	}
	var stored orgRecord
	err = json.Unmarshal(value, &stored)
	return stored.Witnessing, err == nil, err
}
