package erasure

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/records"
)

// State is the state of an erasure.
type State string

const (
	Waiting State = "waiting" // nothing was erased yet
	Running State = "running"
	Held    State = "held" // by a legal hold, and continues when it ends
	Done    State = "done"
)

// Erasure is one erasure, as members see it.
type Erasure struct {
	ID      ID
	State   State // when it was read
	Reason  Reason
	AskedBy string // account
	AskedAt id.Instant
	EndedAt id.Instant // 0 if it has not ended

	By        string      // event_id, agent_id, trace_id, principal or on_behalf_of
	Event     id.Event    // if By is event_id
	Approval  approval.ID // whose payload is erased if Event is the service's own, otherwise ""
	Agent     id.Agent    // if By is agent_id
	Trace     id.Trace    // if By is trace_id
	Principal string      // if By is principal; "" after the end
	Subject   string      // if By is on_behalf_of; "" after the end
	Issuer    string      // of Subject; "" for all issuers, and after the end
	From, To  index.Bound // the events [From, To), unless By is event_id
	End       id.Index    // size of the log at the request: no later event is erased

	Examined                             id.Index // events of [0, End) that are done
	Matched, Erased, Already             uint64   // events; Already counts those whose envelope was already erased
	ApprovalsErased, DeliveriesCorrected uint64
}

func (r *record) state() State {
	switch {
	case r.Phase == phaseDone:
		return Done
	case r.Held:
		return Held
	case r.Phase == phaseApprovals && r.Before == "":
		return Waiting
	}
	return Running
}

func (r *record) toErasure(name ID) Erasure {
	made := Erasure{
		ID: name, State: r.state(), Reason: r.Reason, AskedBy: r.AskedBy, AskedAt: r.AskedAt, EndedAt: r.EndedAt,
		By: r.By, Event: r.Event, Approval: r.Approval, Agent: r.Agent, Trace: r.Trace, Principal: r.Principal,
		Subject: r.Subject, Issuer: r.Issuer,
		End: r.End, Examined: r.Next, Matched: r.Matched, Erased: r.Erased, Already: r.Already,
		ApprovalsErased: r.Approvals, DeliveriesCorrected: r.Texts,
	}
	if r.Event == "" {
		made.From, made.To = index.Bound(r.From), index.Bound(r.To)
	}
	if r.Phase > phaseEvents {
		made.Examined = r.End
	}
	return made
}

// Find returns an erasure of an organization. It returns fault.NotFound if there is none with that ID.
func (e *Erasures) Find(ctx context.Context, t id.Tenant, name ID) (Erasure, error) {
	r, err := e.erasures.Get(ctx, t, records.ReverseKey(string(name)))
	if err == nil && !r.Exists() {
		err = errNotFound()
	}
	if err != nil {
		return Erasure{}, err
	}
	return r.Value.toErasure(name), nil
}

// List returns at most limit erasures of an organization that were requested before the given one, latest first. It
// starts with the latest if before is "".
func (e *Erasures) List(ctx context.Context, t id.Tenant, before ID, limit int) ([]Erasure, error) {
	rest := records.Range{}
	if before != "" {
		rest = records.After(records.ReverseKey(string(before)))
	}
	found, err := e.erasures.List(ctx, t, rest, limit)
	list := make([]Erasure, len(found))
	for i := range found {
		list[i] = found[i].Value.toErasure(ID(records.ReverseKey(found[i].Key)))
	}
	return list, err
}
