package org

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// Witnessing is an organization's wish about witnesses. The zero value leaves it
// to the service.
type Witnessing struct {
	Policy     string `json:"policy"`      // C2SP tlog-policy without log lines, witnesses with their URLs
	FailClosed bool   `json:"fail_closed"` // a request for cosigned answers is refused while there are none
}

// WitnessRules say which witnesses an organization may name (package witness).
type WitnessRules interface {
	// CheckOwn returns fault.Invalid for a policy that can't be in force.
	CheckOwn(policy string) error
}

// checkWitnessing returns fault.Invalid for a wish that can't be met.
func (o *Orgs) checkWitnessing(w Witnessing) error {
	if w == (Witnessing{}) {
		return nil
	}
	if o.rules == nil || w.Policy == "" {
		return fault.New(fault.Invalid, "witnesses need a policy, in a service that asks witnesses")
	}
	return o.rules.CheckOwn(w.Policy)
}

// Witnessing reads an organization's wish about witnesses, without its ledger;
// fault.NotFound when there is none.
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

// WitnessingIn reads the wish in an organization's record; false for no record, and for that of a handle that was
// given up.
func WitnessingIn(value []byte) (w Witnessing, found bool, err error) {
	if value == nil || string(value) == voidValue {
		return w, false, nil
	}
	var stored orgRecord
	err = json.Unmarshal(value, &stored)
	return stored.Witnessing, err == nil, err
}
