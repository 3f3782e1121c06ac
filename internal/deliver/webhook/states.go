package webhook

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Plans reports how much of its plan an organization has used. org.Orgs implements it.
type Plans interface {
	// MonthlyEvents returns the number of events of the current month, YYYY-MM, and their limit, which is 0 if there is
	// none.
	MonthlyEvents(ctx context.Context, t id.Tenant) (used, limit uint64, month string, err error)
}

// notifiedRecord contains the notices of plan and ledger that an endpoint has received.
type notifiedRecord struct {
	Month   string    `json:"month,omitzero"`
	Percent uint64    `json:"percent,omitzero"` // of the plan in that month
	Fault   log.Level `json:"fault,omitzero"`
}

// addStates adds the notices of the plan and of the ledger that the endpoint has not received.
func (n *notices) addStates(ctx context.Context) error {
	stored, err := n.notified.Get(ctx, n.batch.Tenant, string(n.endpoint.ID))
	if err != nil {
		return err
	}
	before := stored.Value
	if err := n.addPlan(ctx, &stored.Value); err != nil {
		return err
	}
	if err := n.addFault(&stored.Value); err != nil {
		return err
	}
	if stored.Value == before {
		return nil
	}
	stored.Version = storage.AnyVersion
	change, err := n.notified.Put(stored)
	n.changes = append(n.changes, change)
	return err
}

// addPlan adds a notice for each threshold of the plan that was reached this month.
func (n *notices) addPlan(ctx context.Context, notified *notifiedRecord) error {
	if n.plans == nil || !n.endpoint.matches(&Message{Type: typePlan}) {
		return nil
	}
	used, limit, month, err := n.plans.MonthlyEvents(ctx, n.batch.Tenant)
	if err != nil || limit == 0 {
		return err
	}
	if notified.Month != month {
		notified.Month, notified.Percent = month, 0
	}
	for _, percent := range []uint64{80, 100} {
		if notified.Percent >= percent || used*100 < limit*percent {
			continue
		}
		notified.Percent = percent
		data, err := json.Marshal(map[string]any{"percent": percent, "used": used, "limit": limit, "month": month},
			json.Deterministic(true))
		if err != nil {
			return fmt.Errorf("write notice: %w", err)
		}
		m := Message{Type: typePlan, Data: data,
			Title: fmt.Sprintf("%d %% of the plan's events of %s are used: %d of %d", percent, month, used, limit)}
		place := fmt.Sprintf("plan_%s_%d", month, percent)
		if err := n.addNotice(n.batch.State.Identity().Origin, place, &m); err != nil {
			return err
		}
	}
	return nil
}

// addFault adds a notice of a new or worse fault of the ledger.
func (n *notices) addFault(notified *notifiedRecord) error {
	f := n.batch.State.Fault()
	if f.Level == log.Healthy {
		notified.Fault = "" // so that the next fault is reported, whatever its level
		return nil
	}
	if f.Level == notified.Fault || !n.endpoint.matches(&Message{Type: typeFault}) {
		return nil
	}
	notified.Fault = f.Level
	data, err := json.Marshal(map[string]any{"level": f.Level, "at": f.At, "origin": n.batch.State.Identity().Origin},
		json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("write notice: %w", err)
	}
	m := Message{Type: typeFault, Data: data,
		Title: fmt.Sprintf("The ledger has a fault (%s): ask the operator of the service", f.Level)}
	place := fmt.Sprintf("fault_%s_%d", f.Level, f.At) // the time distinguishes it from an earlier fault
	return n.addNotice(n.batch.State.Identity().Origin, place, &m)
}
