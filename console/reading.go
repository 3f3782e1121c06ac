package console

import (
	"context"
	"net/url"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

// addReadingRoutes adds the routes of the calls that read events.
func (s *Server) addReadingRoutes(table *routes) {
	reads, none := permit(account.Read), edge.Body{}
	filters := []string{"agent_id", "tool", "action_kind", "decision", "declared", "trace_id", "principal", "on_behalf_of", "issuer", "signer",
		"from", "to", "format", "after", "limit", "log"}
	table.Add("GET", "/v1/console/events", reads, none, s.listEvents, edge.LongPoll).
		Takes(append([]string{"q", "order", "wait"}, filters...)...)
	table.Add("GET", "/v1/console/events/{event}", reads, none, s.answerEvent).Takes("log")
	acts := table.Add("GET", "/v1/console/acts", reads, none, s.listActs, edge.LongPoll)
	acts.Takes(append([]string{"q", "order", "wait", "outcome", "approver", "confirmed", "column", "identifiers"}, filters...)...)
	acts.Repeats("column")
	table.Add("GET", "/v1/console/acts/{event}", reads, none, s.answerAct).Takes("log")
	table.Add("GET", "/v1/console/traces", reads, none, s.listTraces).Takes(filters...)
	table.Add("GET", "/v1/console/traces/{trace}", reads, none, s.answerTrace).Takes("after", "limit", "log")
	stats := table.Add("GET", "/v1/console/stats", reads, none, s.answerStats)
	stats.Takes("agent_id", "tool", "action_kind", "decision", "declared",
		"trace_id", "principal", "on_behalf_of", "issuer", "signer", "from", "to", "outcome", "approver", "confirmed", "column", "by", "log")
	stats.Repeats("column")
	table.Add("GET", "/v1/console/audit", permit(account.ReadAudit), none, s.listAudit).
		Takes("actor", "kind", "from", "to", "order", "format", "after", "limit")
}

// ask returns a caller's query of events, including the page.
func ask(c *Caller, query url.Values) (eventlist.Asked, error) {
	p, err := edge.ParsePage(query)
	return eventlist.Asked{Tenant: c.Who.Tenant, Role: c.Who.Role, Values: query, After: p.After, Limit: p.Limit}, err
}

func (s *Server) listEvents(r *request) (answer, error) {
	q, format, stream, err := asStream(r)
	if stream || err != nil {
		return s.streamEvents(q, format), err
	}
	if q, err = s.askToWait(r); err != nil {
		return answer{}, err
	}
	return okAnswer(s.Events.List(r.Context(), q))
}

// askToWait returns a request's query of events, which may wait or search for a while.
func (s *Server) askToWait(r *request) (eventlist.Asked, error) {
	q, err := ask(r.Caller, r.URL.Query())
	if err == nil {
		q.Wait, err = edge.ParseWait(r.Request)
	}
	if q.Wait > 0 { // such requests hold no processor
		q.TakeTurn = func(ctx context.Context) (func(), error) {
			return takeTurn(ctx, s.Control.Processors, admission.TenantOf(q.Tenant))
		}
	}
	return q, err
}

// ListEvents returns a page of the events that the parameters select.
func (s *Server) ListEvents(ctx context.Context, c *Caller, query url.Values) (wire.Events, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.Events{}, err
	}
	q, err := ask(c, query)
	if err != nil {
		return wire.Events{}, err
	}
	return s.Events.List(ctx, q)
}

func (s *Server) answerEvent(r *request) (answer, error) {
	return okAnswer(s.ShowEvent(r.Context(), r.Caller, r.PathParameter("event"), r.URL.Query()))
}

// ShowEvent returns an event with its documents. name is its ID, log index or hash.
func (s *Server) ShowEvent(ctx context.Context, c *Caller, name string, query url.Values) (wire.EventDetail, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.EventDetail{}, err
	}
	q := eventlist.Asked{Tenant: c.Who.Tenant, Role: c.Who.Role, Values: query}
	return s.Events.Find(ctx, q, name)
}

func (s *Server) listActs(r *request) (answer, error) {
	q, format, stream, err := asStream(r)
	if stream || err != nil {
		if err != nil {
			return answer{}, err
		}
		return s.streamActs(r.Context(), q, format)
	}
	if q, err = s.askToWait(r); err != nil {
		return answer{}, err
	}
	return okAnswer(s.acts.List(r.Context(), q))
}

// ListActs returns a page of the acts that the parameters select.
func (s *Server) ListActs(ctx context.Context, c *Caller, query url.Values) (wire.Acts, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.Acts{}, err
	}
	q, err := ask(c, query)
	if err != nil {
		return wire.Acts{}, err
	}
	return s.acts.List(ctx, q)
}

func (s *Server) answerAct(r *request) (answer, error) {
	return okAnswer(s.ShowAct(r.Context(), r.Caller, r.PathParameter("event"), r.URL.Query()))
}

// ShowAct returns an act. name is the ID, log index or hash of its event.
func (s *Server) ShowAct(ctx context.Context, c *Caller, name string, query url.Values) (wire.Act, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.Act{}, err
	}
	return s.acts.Find(ctx, eventlist.Asked{Tenant: c.Who.Tenant, Role: c.Who.Role, Values: query}, name)
}

func (s *Server) listTraces(r *request) (answer, error) {
	q, format, stream, err := asStream(r)
	if stream || err != nil {
		return s.streamTraces(q, format), err
	}
	return okAnswer(s.ListTraces(r.Context(), r.Caller, r.URL.Query()))
}

// ListTraces returns a page of the traces of the events that the parameters select.
func (s *Server) ListTraces(ctx context.Context, c *Caller, query url.Values) (wire.Traces, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.Traces{}, err
	}
	q, err := ask(c, query)
	if err != nil {
		return wire.Traces{}, err
	}
	return s.Events.ListTraces(ctx, q)
}

func (s *Server) answerTrace(r *request) (answer, error) {
	return okAnswer(s.ShowTrace(r.Context(), r.Caller, r.PathParameter("trace"), r.URL.Query()))
}

// ShowTrace returns a page of the events of a trace.
func (s *Server) ShowTrace(ctx context.Context, c *Caller, trace string, query url.Values) (wire.Tree, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.Tree{}, err
	}
	q, err := ask(c, query)
	if err != nil {
		return wire.Tree{}, err
	}
	return s.Events.Trace(ctx, q, id.Trace(trace))
}

func (s *Server) listAudit(r *request) (answer, error) {
	q, format, stream, err := asStream(r)
	if stream || err != nil {
		return s.streamAudit(q, format), err
	}
	return okAnswer(s.ListAudit(r.Context(), r.Caller, r.URL.Query()))
}

// ListAudit returns a page of the audit list.
func (s *Server) ListAudit(ctx context.Context, c *Caller, query url.Values) (wire.AuditEntries, error) {
	if err := s.surface.check(ctx, c, account.ReadAudit); err != nil {
		return wire.AuditEntries{}, err
	}
	q, err := ask(c, query)
	if err != nil {
		return wire.AuditEntries{}, err
	}
	return s.audit.List(ctx, q)
}

func (s *Server) answerStats(r *request) (answer, error) {
	return okAnswer(s.CountActs(r.Context(), r.Caller, r.URL.Query()))
}

// CountActs returns counts of the acts that the parameters select.
func (s *Server) CountActs(ctx context.Context, c *Caller, query url.Values) (wire.Stats, error) {
	found, err := s.CountActsBy(ctx, c, query, query.Get("by"))
	if err != nil {
		return wire.Stats{}, err
	}
	return found[0], nil
}

// CountActsBy is CountActs for several values of the parameter by, of which it returns one result each. The acts are read once.
func (s *Server) CountActsBy(ctx context.Context, c *Caller, query url.Values, by ...string) ([]wire.Stats, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return nil, err
	}
	return s.acts.CountEach(ctx, eventlist.Asked{Tenant: c.Who.Tenant, Role: c.Who.Role, Values: query}, by...)
}
