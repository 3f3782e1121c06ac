package console

import (
	"net/http"
	"strconv"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

// erasureCalls are the calls about erasures. The field is required.
type erasureCalls struct{ Erasures *erasure.Erasures }

// AddRoutes adds the routes of the calls.
func (c *erasureCalls) AddRoutes(table *routes) {
	owns, reads := permit(account.Own), permit(account.ReadAudit)
	none, some := edge.Body{}, edge.JSONBody(maxBody)
	table.Add("POST", "/v1/console/events/{event}/erase", owns, some, c.eraseEvent)
	table.Add("POST", "/v1/console/erasures", owns, some, c.eraseMany)
	table.Add("GET", "/v1/console/erasures", reads, none, c.listErasures).TakesPage()
	table.Add("GET", "/v1/console/erasures/{erasure}", reads, none, c.answerErasure)
}

func (c *erasureCalls) eraseEvent(r *request) (answer, error) {
	var body struct {
		Reason erasure.Reason `json:"reason"`
	}
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	return accepted(c.Erasures.AskForEvent(r.Context(), r.Who.Tenant, string(r.Who.Account),
		r.PathParameter("event"), body.Reason))
}

func (c *erasureCalls) eraseMany(r *request) (answer, error) {
	var body struct {
		Agent     id.Agent       `json:"agent_id"`
		Trace     id.Trace       `json:"trace_id"`
		Principal string         `json:"principal"`
		From      string         `json:"from"`
		To        string         `json:"to"`
		Reason    erasure.Reason `json:"reason"`
	}
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	wanted := erasure.Wanted{Agent: body.Agent, Trace: body.Trace, Principal: body.Principal, Reason: body.Reason}
	var err error
	if wanted.From, err = eventlist.ParseBound("from", body.From); err != nil {
		return answer{}, err
	}
	if wanted.To, err = eventlist.ParseBound("to", body.To); err != nil {
		return answer{}, err
	}
	return accepted(c.Erasures.Ask(r.Context(), r.Who.Tenant, string(r.Who.Account), wanted))
}

// accepted answers that an erasure has begun.
func accepted(made erasure.Erasure, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusAccepted, wire.StartedErasure{ID: string(made.ID)}), nil
}

func describeRemains() []wire.Remainder {
	all := erasure.Remains()
	views := make([]wire.Remainder, len(all))
	for i, r := range all {
		views[i] = wire.Remainder(r)
	}
	return views
}

func describe(e erasure.Erasure) wire.Erasure {
	return wire.Erasure{
		ID: string(e.ID), State: string(e.State), Reason: string(e.Reason), AskedBy: e.AskedBy, AskedAt: e.AskedAt,
		EndedAt: wire.Time(e.EndedAt), By: e.By, Event: wire.Text(e.Event), Approval: wire.Text(e.Approval),
		Agent: wire.Text(e.Agent), Trace: wire.Text(e.Trace), Principal: wire.Text(e.Principal),
		From: describeBound(e.From), To: describeBound(e.To), TreeSize: e.End,
		Counts: wire.ErasureCounts{Matched: e.Matched, Erased: e.Erased, Already: e.Already,
			Unexamined: e.End - e.Examined, Approvals: e.ApprovalsErased, Deliveries: e.DeliveriesCorrected},
	}
}

// describeBound returns a bound as a caller writes it, "" if there is none.
func describeBound(b index.Bound) wire.Text {
	switch {
	case !b.Given:
		return ""
	case b.At != 0:
		return wire.Text(b.At.String())
	}
	return wire.Text(strconv.FormatUint(uint64(b.Index), 10))
}

func (c *erasureCalls) listErasures(r *request) (answer, error) {
	p, err := r.ParsePage()
	if err != nil {
		return answer{}, err
	}
	found, err := c.Erasures.List(r.Context(), r.Who.Tenant, erasure.ID(p.After), p.Limit+1)
	if err != nil {
		return answer{}, err
	}
	var body wire.Erasures
	body.Erasures, body.Next = edge.CutPage(p, found, func(e erasure.Erasure) string { return string(e.ID) }, describe)
	return jsonAnswer(http.StatusOK, body), nil
}

func (c *erasureCalls) answerErasure(r *request) (answer, error) {
	found, err := c.Erasures.Find(r.Context(), r.Who.Tenant, erasure.ID(r.PathParameter("erasure")))
	one := describe(found)
	one.Remains = describeRemains()
	return okAnswer(one, err)
}
