package console

import (
	"context"
	"net/http"
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
	return accepted(s.Erasures.AskForEvent(r.Context(), r.Who.Tenant, string(r.Who.Account),
		r.PathParameter("event"), body.Reason))
}

func (s *Server) eraseMany(r *request) (answer, error) {
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
	return accepted(s.Erasures.Ask(r.Context(), r.Who.Tenant, string(r.Who.Account), wanted))
}

// accepted answers that an erasure has started.
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
