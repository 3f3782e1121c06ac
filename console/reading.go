package console

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/read/auditlist"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// readingCalls are the calls of readers. All fields are required.
type readingCalls struct {
	Events *eventlist.Reader
	Audit  *auditlist.Reader
}

// AddRoutes adds the routes of the calls.
func (c *readingCalls) AddRoutes(table *routes) {
	reads, none := permit(account.Read), edge.Body{}
	filters := []string{"agent_id", "tool", "action_kind", "decision", "declared", "trace_id", "principal", "signer",
		"from", "to", "format", "after", "limit", "log"}
	table.Add("GET", "/v1/console/events", reads, none, c.listEvents, edge.LongPoll).
		Takes(append([]string{"q", "order", "wait"}, filters...)...)
	table.Add("GET", "/v1/console/events/{event}", reads, none, c.answerEvent).Takes("log")
	table.Add("GET", "/v1/console/traces", reads, none, c.listTraces).Takes(filters...)
	table.Add("GET", "/v1/console/traces/{trace}", reads, none, c.answerTrace).Takes("after", "limit", "log")
	table.Add("GET", "/v1/console/stats", reads, none, c.answerStats).Takes("from", "to", "by", "log")
	table.Add("GET", "/v1/console/audit", permit(account.ReadAudit), none, c.listAudit).
		Takes("actor", "kind", "from", "to", "order", "format", "after", "limit")
}

// parseAsked reads a question about events.
func parseAsked(r *request) (eventlist.Asked, error) {
	p, err := r.ParsePage()
	return eventlist.Asked{Tenant: r.Who.Tenant, Role: r.Who.Role, Values: r.URL.Query(), After: p.After,
		Limit: p.Limit}, err
}

func (c *readingCalls) listEvents(r *request) (answer, error) {
	asked, format, stream, err := asStream(r)
	if stream || err != nil {
		return c.streamEvents(asked, format), err
	}
	asked, err = parseAsked(r)
	if err == nil {
		asked.Wait, err = edge.ParseWait(r.Request)
	}
	if err != nil {
		return answer{}, err
	}
	return okAnswer(c.Events.List(r.Context(), asked))
}

func (c *readingCalls) answerEvent(r *request) (answer, error) {
	asked := eventlist.Asked{Tenant: r.Who.Tenant, Role: r.Who.Role, Values: r.URL.Query()}
	return okAnswer(c.Events.Find(r.Context(), asked, r.PathParameter("event")))
}

func (c *readingCalls) listTraces(r *request) (answer, error) {
	asked, format, stream, err := asStream(r)
	if stream || err != nil {
		return c.streamTraces(asked, format), err
	}
	asked, err = parseAsked(r)
	if err != nil {
		return answer{}, err
	}
	return okAnswer(c.Events.ListTraces(r.Context(), asked))
}

func (c *readingCalls) answerTrace(r *request) (answer, error) {
	asked, err := parseAsked(r)
	if err != nil {
		return answer{}, err
	}
	return okAnswer(c.Events.Trace(r.Context(), asked, id.Trace(r.PathParameter("trace"))))
}

func (c *readingCalls) listAudit(r *request) (answer, error) {
	asked, format, stream, err := asStream(r)
	if stream || err != nil {
		return c.streamAudit(asked, format), err
	}
	asked, err = parseAsked(r)
	if err != nil {
		return answer{}, err
	}
	return okAnswer(c.Audit.List(r.Context(), asked))
}

func (c *readingCalls) answerStats(r *request) (answer, error) {
	asked := eventlist.Asked{Tenant: r.Who.Tenant, Values: r.URL.Query()}
	return okAnswer(c.Events.Count(r.Context(), asked))
}
