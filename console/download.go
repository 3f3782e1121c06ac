package console

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/wire"
)

// asStream reports whether a request asks for a stream, and parses the query for it.
func asStream(r *request) (query eventlist.Asked, f Format, stream bool, err error) {
	values := r.URL.Query()
	if f, err = ParseFormat(values); err != nil || f == formatJSON {
		return query, f, false, err
	}
	if values.Has("wait") {
		return query, f, false, fault.New(fault.Invalid, "wait is for format=json")
	}
	query = eventlist.Asked{Tenant: r.Who.Tenant, Role: r.Who.Role, Values: values, After: values.Get("after")}
	query.Limit, err = ParseLimit(values)
	return query, f, err == nil, err
}

// streamAnswer answers with a list as a stream. The file name begins with name.
func streamAnswer[T any](name string, query eventlist.Asked, f Format, l List[T]) answer {
	l.Format, l.After, l.Limit = f, query.After, query.Limit
	return answer{Stream: &stream{Media: f.Media(), FileName: name + "." + string(f),
		Write: func(ctx context.Context, w *streamWriter) error { return l.Write(ctx, w) }}}
}

// pageQuery returns the query for one page of a stream.
func pageQuery(query eventlist.Asked, after string, limit int) eventlist.Asked {
	query.After, query.Limit = after, limit
	return query
}

func (s *Server) streamEvents(query eventlist.Asked, f Format) answer {
	query.NoActs = f == FormatCSV
	return streamAnswer("events", query, f, List[wire.ListedEvent]{
		Columns: []string{"log_index", "event_id", "event_hash", "received_at", "agent_id", "tool_name", "action_kind",
			"declared", "effective", "rule_id", "signer", "trace_id", "actor_principal", "on_behalf_of", "on_behalf_of_issuer", "on_behalf_of_verified"},
		Cells: func(e wire.ListedEvent) []Cell {
			return append([]Cell{NumberCell(e.Index), TextCell(e.ID), TextCell(e.Hash.String()),
				TextCell(e.ReceivedAt.String()), TextCell(e.Agent), TextCell(e.Tool), TextCell(e.Kind),
				TextCell(e.Declared), TextCell(e.Effective), TextCell(e.Rule), TextCell(e.Signer), TextCell(e.Trace),
				TextCell(e.Principal)}, subjectCells(e.OnBehalfOf)...)
		},
		Page: func(ctx context.Context, after string, limit int) ([]wire.ListedEvent, wire.Text, error) {
			page, err := s.Events.List(ctx, pageQuery(query, after, limit))
			return page.Events, page.Next, err
		},
	})
}

func (s *Server) streamActs(ctx context.Context, query eventlist.Asked, f Format) (answer, error) {
	if f == FormatCSV && query.Values.Has("identifiers") {
		return answer{}, fault.New(fault.Invalid, "identifiers is not allowed with format=csv")
	}
	columns, err := s.acts.Columns(ctx, query)
	if err != nil {
		return answer{}, err
	}
	names := []string{"log_index", "event_id", "received_at", "agent_id", "agent_name", "tool_name", "actor_principal", "outcome", "decision",
		"policy_id", "rule_id", "approval_id", "approved_by", "denied_by", "result_event_id", "receipt", "confirmed_by", "trace_id",
		"on_behalf_of", "on_behalf_of_issuer", "on_behalf_of_verified"}
	return streamAnswer("acts", query, f, List[wire.Act]{
		Columns: append(names, columnNames(columns)...),
		Cells: func(a wire.Act) []Cell {
			var result wire.ActResult
			if a.Result != nil {
				result = *a.Result
			}
			cells := []Cell{NumberCell(a.Index), TextCell(a.ID), TextCell(a.ReceivedAt.String()), TextCell(a.Agent),
				TextCell(a.AgentName), TextCell(a.Tool), TextCell(a.Principal), TextCell(a.Outcome),
				TextCell(a.Decision.String()), TextCell(a.Policy), TextCell(a.Rule), TextCell(a.Approval),
				TextCell(joinVoters(a.Votes, "approve")), TextCell(joinVoters(a.Votes, "deny")), TextCell(result.ID),
				TextCell(result.Receipt), TextCell(result.ConfirmedBy), TextCell(a.Trace)}
			return append(append(cells, subjectCells(a.OnBehalfOf)...), columnCells(&a, columns)...)
		},
		Page: func(ctx context.Context, after string, limit int) ([]wire.Act, wire.Text, error) {
			page, err := s.acts.List(ctx, pageQuery(query, after, limit))
			return page.Acts, page.Next, err
		},
	}), nil
}

// subjectCells returns the subject, its issuer, and whether the service verified them; empty cells if of is nil.
func subjectCells(of *wire.OnBehalfOf) []Cell {
	if of == nil {
		return []Cell{"", "", ""}
	}
	return []Cell{TextCell(of.Subject), TextCell(of.Issuer), TextCell(strconv.FormatBool(of.Verified))}
}

// columnNames returns the heads of columns of payloads.
func columnNames(paths []string) []string {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = "payload." + path
	}
	return names
}

// columnCells returns the values of an act's columns of payloads.
func columnCells(a *wire.Act, paths []string) []Cell {
	cells := make([]Cell, len(paths))
	for i, path := range paths {
		cells[i] = columnCell(a.Columns[path], a.Absent[path])
	}
	return cells
}

// columnCell returns the cell of a value of a column. A missing value is empty, and another reason why there is none is in brackets.
func columnCell(value jsontext.Value, reason string) Cell {
	switch reason {
	case "":
	case index.Missing:
		return ""
	default:
		return Cell("(" + strings.ReplaceAll(reason, "_", " ") + ")")
	}
	var text string
	if value.Kind() == '"' && json.Unmarshal(value, &text) == nil {
		return TextCell(text)
	}
	return Cell(value) // a number
}

// joinVoters returns the email addresses of those who voted so, or the IDs of accounts that no longer exist, or the names if a
// view hides both.
func joinVoters(votes []wire.ActVote, vote string) string {
	var names []string
	for _, v := range votes {
		if v.Vote == vote {
			name := cmp.Or(string(v.Email), v.Account, string(v.Name))
			if v.DeputyFor != "" {
				name += " (for " + cmp.Or(v.DeputyForName, v.DeputyFor) + ")"
			}
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func (s *Server) streamTraces(query eventlist.Asked, f Format) answer {
	return streamAnswer("traces", query, f, List[wire.Trace]{
		Columns: []string{"log_index", "trace_id", "first_at", "last_at", "last_log_index", "events", "at_least",
			"complete", "allow", "deny", "allow_with_obligation", "agents"},
		Cells: func(t wire.Trace) []Cell {
			agents := make([]string, len(t.Agents))
			for i := range t.Agents {
				agents[i] = string(t.Agents[i])
			}
			return []Cell{NumberCell(t.Index), TextCell(t.ID), TextCell(t.FirstAt.String()),
				TextCell(t.LastAt.String()), NumberCell(t.LastIndex), NumberCell(t.Events),
				TextCell(strconv.FormatBool(t.AtLeast)), TextCell(strconv.FormatBool(t.Complete)),
				NumberCell(t.Decisions[id.Allow.String()]), NumberCell(t.Decisions[id.Deny.String()]),
				NumberCell(t.Decisions[id.AllowWithObligation.String()]),
				TextCell(strings.Join(agents, " "))}
		},
		Page: func(ctx context.Context, after string, limit int) ([]wire.Trace, wire.Text, error) {
			page, err := s.Events.ListTraces(ctx, pageQuery(query, after, limit))
			return page.Traces, page.Next, err
		},
	})
}

func (s *Server) streamAudit(query eventlist.Asked, f Format) answer {
	return streamAnswer("audit", query, f, List[wire.AuditEntry]{
		Columns: []string{"log_index", "event_id", "event_hash", "received_at", "kind", "sentence", "actor_type",
			"actor_id", "actor_name", "actor_email", "actor_token", "credential", "credential_id", "address",
			"payload", "proof"},
		Cells: auditCells,
		Page: func(ctx context.Context, after string, limit int) ([]wire.AuditEntry, wire.Text, error) {
			page, err := s.audit.List(ctx, pageQuery(query, after, limit))
			return page.Entries, page.Next, err
		},
	})
}

func auditCells(a wire.AuditEntry) []Cell {
	var credential, name, address string
	if o := a.Source; o != nil {
		credential, name, address = o.Credential, o.ID, o.Address
	}
	return []Cell{NumberCell(a.Index), TextCell(a.ID), TextCell(a.Hash.String()),
		TextCell(a.ReceivedAt.String()), TextCell(a.Kind), TextCell(a.Sentence), TextCell(a.Actor.Type),
		TextCell(a.Actor.ID), TextCell(a.Actor.Name), TextCell(a.Actor.Email), TextCell(a.Actor.Token),
		TextCell(credential), TextCell(name), TextCell(address), TextCell(string(a.Payload)), TextCell(a.Proof)}
}
