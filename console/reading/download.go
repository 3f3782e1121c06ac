package reading

import (
	"context"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/console/call"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/auditlist"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/read/rows"
)

// asStream reports whether a request asks for a stream, and reads the question for it.
func asStream(r *call.Request) (asked eventlist.Asked, f rows.Format, stream bool, err error) {
	values := r.URL.Query()
	if f, err = rows.ParseFormat(values); err != nil || f == rows.JSON {
		return asked, f, false, err
	}
	if values.Has("wait") {
		return asked, f, false, fault.New(fault.Invalid, "wait is for format=json")
	}
	asked = eventlist.Asked{Tenant: r.Who.Tenant, Role: r.Who.Role, Values: values, After: values.Get("after")}
	asked.Limit, err = rows.ParseLimit(values)
	return asked, f, err == nil, err
}

// streamOf answers with a list as a stream. name begins the name of the file.
func streamOf[T any](name string, asked eventlist.Asked, f rows.Format, l rows.List[T]) call.Answer {
	l.Format, l.After, l.Limit = f, asked.After, asked.Limit
	return call.Answer{Stream: &call.Stream{Media: f.Media(), FileName: name + "." + string(f),
		Write: func(ctx context.Context, w *call.StreamWriter) error { return l.Write(ctx, w) }}}
}

// pageOf returns a question for one page of a stream.
func pageOf(asked eventlist.Asked, after string, limit int) eventlist.Asked {
	asked.After, asked.Limit = after, limit
	return asked
}

func (c *Calls) streamEvents(asked eventlist.Asked, f rows.Format) call.Answer {
	return streamOf("events", asked, f, rows.List[eventlist.Event]{
		Columns: []string{"log_index", "event_id", "event_hash", "received_at", "agent_id", "tool_name", "action_kind",
			"declared", "effective", "rule_id", "signer", "trace_id", "actor_principal"},
		Cells: func(e eventlist.Event) []rows.Cell {
			return []rows.Cell{rows.Number(e.LogIndex), rows.Text(e.EventID), rows.Text(e.EventHash.String()),
				rows.Text(e.ReceivedAt.String()), rows.Text(e.AgentID), rows.OrEmpty(e.ToolName),
				rows.Text(e.ActionKind), rows.Text(e.Declared.String()), rows.Text(e.Effective.String()),
				rows.OrEmpty(e.RuleID), rows.Text(e.Signer), rows.Text(e.TraceID), rows.OrEmpty(e.Principal)}
		},
		Page: func(ctx context.Context, after string, limit int) ([]eventlist.Event, *string, error) {
			page, err := c.Events.List(ctx, pageOf(asked, after, limit))
			return page.Events, page.Next, err
		},
	})
}

func (c *Calls) streamTraces(asked eventlist.Asked, f rows.Format) call.Answer {
	return streamOf("traces", asked, f, rows.List[eventlist.Trace]{
		Columns: []string{"log_index", "trace_id", "first_at", "last_at", "last_log_index", "events", "at_least",
			"complete", "allow", "deny", "allow_with_obligation", "agents"},
		Cells: func(t eventlist.Trace) []rows.Cell {
			agents := make([]string, len(t.Agents))
			for i := range t.Agents {
				agents[i] = string(t.Agents[i])
			}
			return []rows.Cell{rows.Number(t.LogIndex), rows.Text(t.TraceID), rows.Text(t.FirstAt.String()),
				rows.Text(t.LastAt.String()), rows.Number(t.LastIndex), rows.Number(t.Events),
				rows.Text(strconv.FormatBool(t.AtLeast)), rows.Text(strconv.FormatBool(t.Complete)),
				rows.Number(t.Decisions[id.Allow]), rows.Number(t.Decisions[id.Deny]),
				rows.Number(t.Decisions[id.AllowWithObligation]),
				rows.Text(strings.Join(agents, " "))}
		},
		Page: func(ctx context.Context, after string, limit int) ([]eventlist.Trace, *string, error) {
			page, err := c.Traces.ListTraces(ctx, pageOf(asked, after, limit))
			return page.Traces, page.Next, err
		},
	})
}

func (c *Calls) streamAudit(asked eventlist.Asked, f rows.Format) call.Answer {
	return streamOf("audit", asked, f, rows.List[auditlist.Act]{
		Columns: []string{"log_index", "event_id", "event_hash", "received_at", "kind", "sentence", "actor_type",
			"actor_id", "actor_name", "actor_email", "actor_token", "credential", "credential_id", "address",
			"payload", "proof"},
		Cells: auditCells,
		Page: func(ctx context.Context, after string, limit int) ([]auditlist.Act, *string, error) {
			page, err := c.Audit.List(ctx, pageOf(asked, after, limit))
			return page.Acts, page.Next, err
		},
	})
}

func auditCells(a auditlist.Act) []rows.Cell {
	var credential, name, address string
	if o := a.Source; o != nil {
		credential, name = string(o.Credential), o.ID
		if o.Address.IsValid() {
			address = o.Address.String()
		}
	}
	return []rows.Cell{rows.Number(a.LogIndex), rows.Text(a.EventID), rows.Text(a.EventHash.String()),
		rows.Text(a.ReceivedAt.String()), rows.Text(a.Kind), rows.Text(a.Sentence), rows.Text(a.Actor.Type),
		rows.Text(a.Actor.ID), rows.Text(a.Actor.Name), rows.Text(a.Actor.Email), rows.Text(a.Actor.Token),
		rows.Text(credential), rows.Text(name), rows.Text(address), rows.Text(string(a.Payload)), rows.Text(a.Proof)}
}
