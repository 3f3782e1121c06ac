// Package reading answers the calls of people who read the log: events, traces, counts and the audit
// list.
//
// Invariants:
//
//   - Each call reads the log of the organization of the caller's session, and no other.
//   - Payloads are in the answers to roles that may read them, and in no other.
//   - A list has pages, or is a stream of bounded length. It is of events that are durable.
package reading

import (
	"context"

	"github.com/agentledger/agentledger/console/call"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/read/auditlist"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// Events answers questions about events (package eventlist).
type Events interface {
	List(ctx context.Context, a eventlist.Asked) (eventlist.Events, error)
	Find(ctx context.Context, a eventlist.Asked, name string) (eventlist.Detail, error)
}

// Traces answers questions about many events together (package eventlist).
type Traces interface {
	ListTraces(ctx context.Context, a eventlist.Asked) (eventlist.Traces, error)
	Trace(ctx context.Context, a eventlist.Asked, trace id.Trace) (eventlist.Tree, error)
	Count(ctx context.Context, a eventlist.Asked) (eventlist.Stats, error)
}

// Audit answers questions about the server's own events (package auditlist).
type Audit interface {
	List(ctx context.Context, a eventlist.Asked) (auditlist.Acts, error)
}

// Calls are the calls of readers. All fields are required.
type Calls struct {
	Events Events
	Traces Traces
	Audit  Audit
}

// AddRoutes adds the routes of the calls.
func (c *Calls) AddRoutes(table *call.Table) {
	reads, none := call.Permit(account.Read), edge.Body{}
	filters := []string{"agent_id", "tool", "action_kind", "decision", "declared", "trace_id", "principal", "signer",
		"from", "to", "format", "after", "limit", "log"}
	table.Add("GET", "/v1/console/events", reads, none, c.listEvents, edge.LongPoll).
		Takes(append([]string{"q", "order", "wait"}, filters...)...)
	table.Add("GET", "/v1/console/events/{event}", reads, none, c.answerEvent).Takes("log")
	table.Add("GET", "/v1/console/traces", reads, none, c.listTraces).Takes(filters...)
	table.Add("GET", "/v1/console/traces/{trace}", reads, none, c.answerTrace).Takes("after", "limit", "log")
	table.Add("GET", "/v1/console/stats", reads, none, c.answerStats).Takes("from", "to", "by", "log")
	table.Add("GET", "/v1/console/audit", call.Permit(account.ReadAudit), none, c.listAudit).
		Takes("actor", "kind", "from", "to", "order", "format", "after", "limit")
}

// parseAsked reads a question about events.
func parseAsked(r *call.Request) (eventlist.Asked, error) {
	p, err := r.ParsePage()
	return eventlist.Asked{Tenant: r.Who.Tenant, Role: r.Who.Role, Values: r.URL.Query(), After: p.After,
		Limit: p.Limit}, err
}

func (c *Calls) listEvents(r *call.Request) (call.Answer, error) {
	asked, format, stream, err := asStream(r)
	if stream || err != nil {
		return c.streamEvents(asked, format), err
	}
	asked, err = parseAsked(r)
	if err == nil {
		asked.Wait, err = edge.ParseWait(r.Request)
	}
	if err != nil {
		return call.Answer{}, err
	}
	return call.OK(c.Events.List(r.Context(), asked))
}

func (c *Calls) answerEvent(r *call.Request) (call.Answer, error) {
	asked := eventlist.Asked{Tenant: r.Who.Tenant, Role: r.Who.Role, Values: r.URL.Query()}
	return call.OK(c.Events.Find(r.Context(), asked, r.PathParameter("event")))
}

func (c *Calls) listTraces(r *call.Request) (call.Answer, error) {
	asked, format, stream, err := asStream(r)
	if stream || err != nil {
		return c.streamTraces(asked, format), err
	}
	asked, err = parseAsked(r)
	if err != nil {
		return call.Answer{}, err
	}
	return call.OK(c.Traces.ListTraces(r.Context(), asked))
}

func (c *Calls) answerTrace(r *call.Request) (call.Answer, error) {
	asked, err := parseAsked(r)
	if err != nil {
		return call.Answer{}, err
	}
	return call.OK(c.Traces.Trace(r.Context(), asked, id.Trace(r.PathParameter("trace"))))
}

func (c *Calls) listAudit(r *call.Request) (call.Answer, error) {
	asked, format, stream, err := asStream(r)
	if stream || err != nil {
		return c.streamAudit(asked, format), err
	}
	asked, err = parseAsked(r)
	if err != nil {
		return call.Answer{}, err
	}
	return call.OK(c.Audit.List(r.Context(), asked))
}

func (c *Calls) answerStats(r *call.Request) (call.Answer, error) {
	asked := eventlist.Asked{Tenant: r.Who.Tenant, Values: r.URL.Query()}
	return call.OK(c.Traces.Count(r.Context(), asked))
}
