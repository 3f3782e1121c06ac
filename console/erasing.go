package console

import (
	"context"
	"net/url"
	"strconv"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

// addErasureRoutes adds the routes of the calls about erasures.
func (s *Server) addErasureRoutes(table *routes) {
	owns, reads := permit(account.Own), permit(account.ReadAudit)
	none, some := edge.Body{}, edge.JSONBody(maxBody)
	table.Add("POST", "/v1/console/events/{event}/erase", owns, some, s.eraseEvent)
	table.Add("POST", "/v1/console/erasures", owns, some, s.eraseMany)
	table.Add("GET", "/v1/console/erasures", reads, none, s.listErasures).TakesPage()
	table.Add("GET", "/v1/console/erasures/{erasure}", reads, none, s.answerErasure)
}

func (s *Server) eraseEvent(r *request) (answer, error) {
	var body struct {
		Reason erasure.Reason `json:"reason"`
	}
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	return acceptedAnswer(s.EraseEvent(r.Context(), r.Caller, r.PathParameter("event"), body.Reason))
}

// EraseEvent starts the erasure of the payload of an event.
func (s *Server) EraseEvent(
	ctx context.Context, c *Caller, event string, reason erasure.Reason,
) (wire.StartedErasure, error) {
	if err := s.surface.check(ctx, c, account.Own); err != nil {
		return wire.StartedErasure{}, err
	}
	made, err := s.Erasures.AskForEvent(ctx, c.Who.Tenant, string(c.Who.Account), event, reason)
	return wire.StartedErasure{ID: string(made.ID)}, err
}

// NewErasure selects the events whose payloads are erased: those of an agent, a trace, a principal or a subject. From and To are
// times or log indices; "" means no bound.
type NewErasure struct {
	Agent     id.Agent       `json:"agent_id"`
	Trace     id.Trace       `json:"trace_id"`
	Principal string         `json:"principal"`
	Subject   string         `json:"on_behalf_of"`
	Issuer    string         `json:"issuer"` // of Subject
	From      string         `json:"from"`
	To        string         `json:"to"`
	Reason    erasure.Reason `json:"reason"`
}

func (s *Server) eraseMany(r *request) (answer, error) {
	var wanted NewErasure
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	return acceptedAnswer(s.EraseMany(r.Context(), r.Caller, wanted))
}

// EraseMany starts an erasure.
func (s *Server) EraseMany(ctx context.Context, c *Caller, wanted NewErasure) (wire.StartedErasure, error) {
	if err := s.surface.check(ctx, c, account.Own); err != nil {
		return wire.StartedErasure{}, err
	}
	from, err := eventlist.ParseBound("from", wanted.From)
	if err != nil {
		return wire.StartedErasure{}, err
	}
	to, err := eventlist.ParseBound("to", wanted.To)
	if err != nil {
		return wire.StartedErasure{}, err
	}
	made, err := s.Erasures.Ask(ctx, c.Who.Tenant, string(c.Who.Account), erasure.Wanted{Agent: wanted.Agent,
		Trace: wanted.Trace, Principal: wanted.Principal, Subject: wanted.Subject, Issuer: wanted.Issuer, From: from, To: to, Reason: wanted.Reason})
	return wire.StartedErasure{ID: string(made.ID)}, err
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
		Subject: wire.Text(e.Subject), Issuer: wire.Text(e.Issuer),
		From: describeBound(e.From), To: describeBound(e.To), TreeSize: e.End,
		Counts: wire.ErasureCounts{Matched: e.Matched, Erased: e.Erased, Already: e.Already,
			Unexamined: e.End - e.Examined, Approvals: e.ApprovalsErased, Deliveries: e.DeliveriesCorrected},
	}
}

// describeBound returns a bound as callers write it, or "" if there is none.
func describeBound(b index.Bound) wire.Text {
	switch {
	case !b.Given:
		return ""
	case b.At != 0:
		return wire.Text(b.At.String())
	}
	return wire.Text(strconv.FormatUint(uint64(b.Index), 10))
}

func (s *Server) listErasures(r *request) (answer, error) {
	return okAnswer(s.ListErasures(r.Context(), r.Caller, r.URL.Query()))
}

// ListErasures returns a page of the erasures.
func (s *Server) ListErasures(ctx context.Context, c *Caller, query url.Values) (wire.Erasures, error) {
	var body wire.Erasures
	if err := s.surface.check(ctx, c, account.ReadAudit); err != nil {
		return body, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	found, err := s.Erasures.List(ctx, c.Who.Tenant, erasure.ID(p.After), p.Limit+1)
	if err != nil {
		return body, err
	}
	body.Erasures, body.Next = edge.CutPage(p, found, func(e erasure.Erasure) string { return string(e.ID) }, describe)
	return body, nil
}

func (s *Server) answerErasure(r *request) (answer, error) {
	return okAnswer(s.ShowErasure(r.Context(), r.Caller, r.PathParameter("erasure")))
}

// ShowErasure returns an erasure, including what it does not remove.
func (s *Server) ShowErasure(ctx context.Context, c *Caller, name string) (wire.Erasure, error) {
	if err := s.surface.check(ctx, c, account.ReadAudit); err != nil {
		return wire.Erasure{}, err
	}
	found, err := s.Erasures.Find(ctx, c.Who.Tenant, erasure.ID(name))
	shown := describe(found)
	shown.Remains = describeRemains()
	return shown, err
}
