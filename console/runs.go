package console

import (
	"net/http"
	"strconv"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/workflow"
)

// runView is a run of an automation tool, as shown to the tool, and its ingest key.
type runView struct {
	RunID          workflow.ID     `json:"run_id"`
	Status         workflow.Status `json:"status"`
	AgentID        id.Agent        `json:"agent_id"`
	TraceID        id.Trace        `json:"trace_id"`
	IngestKeyID    string          `json:"ingest_key_id"`
	Workflow       flowView        `json:"workflow"`
	ExternalRunID  *string         `json:"external_run_id"`
	InputDigest    *id.Hash        `json:"input_digest"`
	OutputDigest   *id.Hash        `json:"output_digest"`
	Error          *string         `json:"error"`
	StartedAt      id.Instant      `json:"started_at"`
	LastAt         id.Instant      `json:"last_at"`
	EndedAt        *id.Instant     `json:"ended_at"`
	StepsRecorded  int             `json:"steps_recorded"`
	StepsPlanned   *int            `json:"steps_planned"`
	Gap            *int            `json:"gap"`
	EventsRecorded int             `json:"events_recorded"`
	RunRoot        *id.Hash        `json:"run_root"`
}

type flowView struct {
	Name    string  `json:"name"`
	Version *string `json:"version"`
	Tool    *string `json:"tool"`
}

func describeRun(r *workflow.Run) runView {
	return runView{
		RunID: r.ID, Status: r.Status, AgentID: r.Agent, TraceID: r.Trace, IngestKeyID: r.IngestKeyID,
		Workflow:      flowView{r.Workflow.Name, orNull(r.Workflow.Version), orNull(r.Workflow.Tool)},
		ExternalRunID: orNull(r.External), InputDigest: r.InputDigest, OutputDigest: r.Ending.OutputDigest,
		Error:     orNull(r.Ending.Error),
		StartedAt: r.StartedAt, LastAt: r.LastAt, EndedAt: orNull(r.EndedAt),
		StepsRecorded: r.Result.Recorded, StepsPlanned: r.Result.Planned, Gap: r.Result.Gap,
		EventsRecorded: r.Result.Events,
		RunRoot:        orNull(r.Result.Root),
	}
}

// runEventView is an event of a run; the members of a step are those of steps alone.
type runEventView struct {
	EventID     id.Event   `json:"event_id"`
	ActionKind  string     `json:"action_kind"`
	SequenceNum uint64     `json:"sequence_num"`
	EventHash   id.Hash    `json:"event_hash"`
	ReceivedAt  id.Instant `json:"received_at"`
	*runStepView
}

type runStepView struct {
	StepKey  string      `json:"step_key"`
	Attempt  int         `json:"attempt"`
	Status   string      `json:"status"`
	ToolName *id.Tool    `json:"tool_name"`
	Decision id.Decision `json:"decision"`
}

func describeRunEvent(e workflow.Event) runEventView {
	v := runEventView{EventID: e.Event, ActionKind: e.Kind, SequenceNum: e.Index.Sequence(), EventHash: e.Hash,
		ReceivedAt: e.ReceivedAt}
	if s := e.Step; s != nil {
		v.runStepView = &runStepView{s.Key, s.Attempt, s.Status, orNull(s.Tool), e.Decision}
	}
	return v
}

func (s *Server) listWorkflowRuns(r *request) (answer, error) {
	p, err := r.ParsePage()
	if err != nil {
		return answer{}, err
	}
	query := r.URL.Query()
	wanted := workflow.Filter{Status: workflow.Status(query.Get("status")), Agent: id.Agent(query.Get("agent_id"))}
	if wanted.Status != "" && !wanted.Status.Valid() {
		return answer{}, fault.New(fault.Invalid, "status must be one of a run's")
	}
	found, next, err := s.Workflows.List(r.Context(), r.Who.Tenant, wanted, workflow.ID(p.After), p.Limit)
	if err != nil {
		return answer{}, err
	}
	body := struct {
		Runs []runView    `json:"runs"`
		Next *workflow.ID `json:"next"`
	}{make([]runView, len(found)), orNull(next)}
	for i := range found {
		body.Runs[i] = describeRun(&found[i])
	}
	return jsonAnswer(http.StatusOK, body), nil
}

func (s *Server) answerRun(r *request) (answer, error) {
	p, err := r.ParsePage()
	if err != nil {
		return answer{}, err
	}
	after := 0
	if p.After != "" {
		if after, err = strconv.Atoi(p.After); err != nil || after < 0 || after > 1<<31-1 {
			return answer{}, fault.New(fault.Invalid, "after must be a whole number from 0 to 2147483647")
		}
	}
	run, events, next, err := s.Workflows.Find(r.Context(), r.Who.Tenant, workflow.ID(r.PathParameter("run")),
		after, p.Limit)
	if err != nil {
		return answer{}, err
	}
	body := struct {
		runView
		Events []runEventView `json:"events"`
		Next   *int           `json:"next"`
	}{describeRun(&run), make([]runEventView, len(events)), orNull(next)}
	for i := range events {
		body.Events[i] = describeRunEvent(events[i])
	}
	return jsonAnswer(http.StatusOK, body), nil
}
