package ingest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// maxRun bounds the bodies of a run's start and end, in bytes.
const maxRun = 64 << 10

func runOfPath(r *http.Request) workflow.ID { return workflow.ID(chi.URLParam(r, "run")) }

// postRun serves POST …/workflows/runs.
func (s *Server) postRun(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	var request struct {
		Workflow    workflow.Flow `json:"workflow"`
		External    string        `json:"external_run_id"`
		Agent       id.Agent      `json:"agent_id"`
		Trace       id.Trace      `json:"trace_id"`
		Planned     *int          `json:"planned_steps"`
		InputDigest *id.Hash      `json:"input_digest"`
	}
	if err := edge.DecodeStrict(body, &request); err != nil {
		return err
	}
	if err := c.checkAgent(request.Agent); err != nil { // a key that is restricted to agents must name one
		return err
	}
	if request.Trace == "" {
		request.Trace = traceparent(r.Header).TraceID()
	}
	run, started, made, err := s.workflows.Start(r.Context(), c.Tenant, workflow.Beginning{
		Workflow: request.Workflow, External: request.External, Agent: request.Agent, Trace: request.Trace,
		Planned: request.Planned, InputDigest: request.InputDigest, IngestKeyID: c.KeyID,
	})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if made {
		status = http.StatusCreated
	}
	return s.writeDocument(w, status, newStartedRun(&run, &started))
}

// postSteps serves POST …/workflows/runs/:runId/steps: one step or a list.
func (s *Server) postSteps(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	steps, list, err := parseSteps(body)
	if err != nil {
		return err
	}
	if err := c.checkApprovals(steps); err != nil {
		return err
	}
	if t := traceparent(r.Header); t != (event.Traceparent{}) {
		for i := range steps {
			steps[i].Traceparent = t
		}
	}
	s.verifySteps(r.Context(), c, r.Header, steps)
	recorded, err := s.workflows.Record(r.Context(), c.Tenant, c.KeyID, runOfPath(r), steps)
	if err != nil {
		return err
	}
	status := http.StatusOK
	for i := range recorded {
		if !recorded[i].Replayed {
			status = http.StatusCreated
		}
	}
	all := newRecordedSteps(recorded)
	if !list {
		return s.writeDocument(w, status, all[0])
	}
	return s.writeDocument(w, status, all)
}

// verifySteps sets the standings of the steps that state a subject. The ingest key never requires that a token proves it.
func (s *Server) verifySteps(ctx context.Context, c caller, h http.Header, steps []workflow.Step) {
	if !slices.ContainsFunc(steps, func(s workflow.Step) bool { return s.OnBehalfOf != nil }) {
		return
	}
	token := s.openSubjectToken(ctx, c, h)
	for i := range steps {
		if of := steps[i].OnBehalfOf; of != nil && token.proves(of) == nil {
			steps[i].Standing = event.Verified
		}
	}
}

// checkApprovals rejects steps that consume approvals if the key does not have that scope.
func (c *caller) checkApprovals(steps []workflow.Step) error {
	for i := range steps {
		if steps[i].Approval != "" && !c.Scopes.Has(org.ScopeApprovals) {
			return errScope(org.ScopeApprovals)
		}
	}
	return nil
}

func errScope(needed org.Scope) error {
	return fault.New(fault.Forbidden, "The ingest key does not have the scope "+needed.String())
}

// stepBody is a step on the wire.
type stepBody struct {
	Key       string         `json:"step_key"`
	Attempt   *int           `json:"attempt"`
	Kind      string         `json:"kind"`
	Tool      id.Tool        `json:"tool_name"`
	Payload   jsontext.Value `json:"payload"`
	Status    string         `json:"status"`
	StartedAt string         `json:"started_at"`
	EndedAt   string         `json:"ended_at"`
	Approval  approval.ID    `json:"approval_id"`

	OnBehalfOf jsontext.Value `json:"on_behalf_of"`
}

func (b *stepBody) workflowStep() (step workflow.Step, err error) {
	step = workflow.Step{
		Key: b.Key, Attempt: 1, Kind: b.Kind, Tool: b.Tool, Payload: b.Payload, Status: b.Status,
		StartedAt: b.StartedAt, EndedAt: b.EndedAt, Approval: b.Approval,
	}
	if b.Attempt != nil {
		step.Attempt = *b.Attempt
	}
	if b.OnBehalfOf != nil {
		step.OnBehalfOf, err = event.ParseOnBehalfOf(b.OnBehalfOf)
	}
	return step, err
}

// parseSteps parses one step or a list of steps.
func parseSteps(body []byte) (steps []workflow.Step, list bool, err error) {
	var bodies []stepBody
	if list = bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")); list {
		err = edge.DecodeStrict(body, &bodies)
	} else {
		bodies = make([]stepBody, 1)
		err = edge.DecodeStrict(body, &bodies[0])
	}
	if err != nil {
		return nil, list, err
	}
	if len(bodies) == 0 || len(bodies) > workflow.MaxAtOnce {
		return nil, list, fault.New(fault.Invalid, "A list has 1 to 50 steps")
	}
	steps = make([]workflow.Step, len(bodies))
	for i := range bodies {
		if steps[i], err = bodies[i].workflowStep(); err != nil && list {
			err = fault.Wrap(fault.Invalid, fmt.Sprintf("[%d]: %s", i, fault.Of(err).Message), err)
		}
		if err != nil {
			return nil, list, err
		}
	}
	return steps, list, nil
}

// completeRun serves POST …/workflows/runs/:runId/complete.
func (s *Server) completeRun(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	var ending struct {
		Status       workflow.Status `json:"status"`
		OutputDigest *id.Hash        `json:"output_digest"`
		Error        string          `json:"error"`
	}
	if err := edge.DecodeStrict(body, &ending); err != nil {
		return err
	}
	run, err := s.workflows.Complete(r.Context(), c.Tenant, c.KeyID, runOfPath(r), workflow.Ending{
		Status: ending.Status, OutputDigest: ending.OutputDigest, Error: ending.Error,
	})
	if err != nil {
		return err
	}
	return s.writeDocument(w, http.StatusOK, newEndedRun(&run))
}

// answerRun serves GET …/workflows/runs/:runId.
func (s *Server) answerRun(w http.ResponseWriter, r *http.Request, c caller, _ []byte) error {
	after, err := parseQueryNumber(r, "after", 0, 0, 1<<31-1)
	if err != nil {
		return err
	}
	limit, err := parseQueryNumber(r, "limit", 100, 1, 1000)
	if err != nil {
		return err
	}
	settings, err := s.activeSettings(r.Context(), c.state)
	if err != nil {
		return err
	}
	run, events, next, err := s.workflows.Get(r.Context(), c.Tenant, c.KeyID, runOfPath(r), after, limit)
	if err != nil {
		return err
	}
	return s.writeDocument(w, http.StatusOK, newShownRun(&run, events, next, settings.Slug))
}

// parseQueryNumber parses an integer parameter of the query.
func parseQueryNumber(r *http.Request, name string, absent, least, most int) (int, error) {
	query := r.URL.Query()
	if !query.Has(name) {
		return absent, nil
	}
	n, err := strconv.Atoi(query.Get(name))
	if err != nil || n < least || n > most {
		return 0, fault.New(fault.Invalid,
			name+" must be a whole number from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
	}
	return n, nil
}
