package console

import (
	"context"
	"net/url"
	"strconv"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

func describeRun(r *workflow.Run) wire.Run {
	run := wire.Run{
		ID: string(r.ID), Status: string(r.Status), Agent: r.Agent, Trace: r.Trace, IngestKey: r.IngestKeyID,
		Workflow: wire.Workflow{Name: r.Workflow.Name, Version: wire.Text(r.Workflow.Version),
			Tool: wire.Text(r.Workflow.Tool)},
		ExternalID: wire.Text(r.External), InputDigest: r.InputDigest, OutputDigest: r.Ending.OutputDigest,
		Error:     wire.Text(r.Ending.Error),
		StartedAt: r.StartedAt, LastAt: r.LastAt, EndedAt: wire.Time(r.EndedAt),
		Steps: r.Result.Recorded, Planned: r.Result.Planned, Gap: r.Result.Gap, Events: r.Result.Events,
	}
	if r.Result.Root != (id.Hash{}) {
		run.Root = &r.Result.Root
	}
	return run
}

func describeRunEvent(e workflow.Event) wire.RunEvent {
	v := wire.RunEvent{ID: e.Event, Kind: e.Kind, Sequence: e.Index.Sequence(), Hash: e.Hash, ReceivedAt: e.ReceivedAt}
	if s := e.Step; s != nil {
		v.RunStep = &wire.RunStep{Key: s.Key, Attempt: s.Attempt, Status: s.Status, Tool: wire.Text(s.Tool),
			Decision: e.Decision.String()}
	}
	return v
}

func (s *Server) listWorkflowRuns(r *request) (answer, error) {
	return okAnswer(s.ListRuns(r.Context(), r.Caller, r.URL.Query()))
}

// ListRuns returns a page of the runs that the parameters select.
func (s *Server) ListRuns(ctx context.Context, c *Caller, query url.Values) (wire.Runs, error) {
	var body wire.Runs
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return body, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	wanted := workflow.Filter{Status: workflow.Status(query.Get("status")), Agent: id.Agent(query.Get("agent_id"))}
	if wanted.Status != "" && !wanted.Status.Valid() {
		return body, fault.New(fault.Invalid, "status must be running, succeeded, failed, aborted or abandoned")
	}
	found, next, err := s.Workflows.List(ctx, c.Who.Tenant, wanted, workflow.ID(p.After), p.Limit)
	if err != nil {
		return body, err
	}
	body = wire.Runs{Runs: make([]wire.Run, len(found)), Next: wire.Text(next)}
	for i := range found {
		body.Runs[i] = describeRun(&found[i])
	}
	return body, nil
}

func (s *Server) answerRun(r *request) (answer, error) {
	return okAnswer(s.ShowRun(r.Context(), r.Caller, r.PathParameter("run"), r.URL.Query()))
}

// ShowRun returns a run with a page of its events.
func (s *Server) ShowRun(ctx context.Context, c *Caller, name string, query url.Values) (wire.RunDetail, error) {
	var body wire.RunDetail
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return body, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	after := 0
	if p.After != "" {
		if after, err = strconv.Atoi(p.After); err != nil || after < 0 || after > 1<<31-1 {
			return body, fault.New(fault.Invalid, "after must be a whole number from 0 to 2147483647")
		}
	}
	run, events, next, err := s.Workflows.Find(ctx, c.Who.Tenant, workflow.ID(name),
		after, p.Limit)
	if err != nil {
		return body, err
	}
	body = wire.RunDetail{Run: describeRun(&run), Events: make([]wire.RunEvent, len(events)), Next: wire.Number(next)}
	at := make([]id.Index, len(events))
	for i := range events {
		at[i] = events[i].Index
	}
	acts, err := s.Events.Index.ActsOf(ctx, c.Who.Tenant, at)
	if err != nil {
		return wire.RunDetail{}, err
	}
	for i := range events {
		body.Events[i] = describeRunEvent(events[i])
		body.Events[i].Act = eventlist.DescribeLink(acts[events[i].Index])
	}
	return body, nil
}
