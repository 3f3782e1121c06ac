package workflow

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
)

// Step is a tool's report of one step of a run, or of one attempt at it.
type Step struct {
	Key       string         `json:"step_key"`
	Attempt   int            `json:"attempt"` // from 1
	Kind      string         `json:"kind"`    // action_kind; "" means tool_call
	Tool      id.Tool        `json:"tool_name,omitzero"`
	Payload   jsontext.Value `json:"payload"` // canonical JSON object; nil means {}
	Status    string         `json:"status"`
	StartedAt string         `json:"started_at,omitzero"`
	EndedAt   string         `json:"ended_at,omitzero"`
	Approval  approval.ID    `json:"approval_id,omitzero"` // consumed by the step

	OnBehalfOf *event.OnBehalfOf `json:"on_behalf_of,omitzero"` // nil if the tool does not state it

	// Traceparent is that of the request, and no part of the step: a repeated request may have another one.
	Traceparent event.Traceparent `json:"-"`

	// Standing is whether the token of the request proves OnBehalfOf, and no part of the step either.
	Standing event.Standing `json:"-"`
}

// actorType is the actor type of all steps.
const actorType = "system"

// defaultKind is the action_kind of a step without one.
const defaultKind = "tool_call"

// fillDefaults sets the defaults.
func (s *Step) fillDefaults() {
	if s.Kind == "" {
		s.Kind = defaultKind
	}
	if s.Payload == nil {
		s.Payload = jsontext.Value("{}")
	}
}

// maxAttempt is the largest number of an attempt.
const maxAttempt = 1_000_000

// checkMembers checks a complete step. where is the prefix of the names of members in errors.
func (s *Step) checkMembers(where string) error {
	switch {
	case !textcheck.Plain(s.Key, 1, 256):
		return errInvalid(where + "step_key must have 1 to 256 characters, none of them a control character")
	case s.Attempt < 1 || s.Attempt > maxAttempt:
		return errInvalid(where + "attempt must be a whole number from 1 to 1000000")
	case !event.ValidKind(s.Kind):
		return errInvalid(where + "kind must match [a-z][a-z0-9_]{0,63}")
	case strings.HasPrefix(s.Kind, "ledger_"):
		return errInvalid(where + "kind must not begin with ledger_, which is reserved for the server")
	case s.Tool != "" && !event.ValidTool(string(s.Tool)):
		return errInvalid(where +
			"tool_name must be segments of [A-Za-z0-9_:/-]+ with dots between them, at most 256 characters")
	case s.Payload[0] != '{':
		return errInvalid(where + "payload must be an object")
	case !event.ValidKind(s.Status):
		return errInvalid(where + "status must match [a-z][a-z0-9_]{0,63}")
	}
	return s.checkTimes(where)
}

func (s *Step) checkTimes(where string) error {
	began, ok := event.ParseTime(s.StartedAt)
	if s.StartedAt != "" && !ok {
		return errInvalid(where + "started_at must be a UTC time like 2026-01-31T12:00:00.000Z")
	}
	ended, ok := event.ParseTime(s.EndedAt)
	if s.EndedAt != "" && !ok {
		return errInvalid(where + "ended_at must be a UTC time like 2026-01-31T12:00:00.000Z")
	}
	if s.StartedAt != "" && s.EndedAt != "" && ended.Before(began) {
		return errInvalid(where + "ended_at must not be before started_at")
	}
	return nil
}

// checkSteps completes and checks the steps of one request. In a list, errors name the index of a step.
func checkSteps(steps []Step) error {
	type attempt struct {
		key string
		n   int
	}
	seen, named := make(map[attempt]bool, len(steps)), make(map[approval.ID]bool)
	for i := range steps {
		s, where := &steps[i], ""
		if len(steps) > 1 {
			where = fmt.Sprintf("[%d].", i)
		}
		s.fillDefaults()
		if err := s.checkMembers(where); err != nil {
			return err
		}
		if err := checkApproval(s, where, named); err != nil {
			return err
		}
		if seen[attempt{s.Key, s.Attempt}] {
			return errInvalid(where + "step_key and attempt are already used by an earlier step in the list")
		}
		seen[attempt{s.Key, s.Attempt}] = true
	}
	return nil
}

// digestStep returns the digest that distinguishes a repeated step from another one.
func (s *Step) digestStep() (id.Hash, error) {
	canonical, err := jcs.Marshal(s)
	if err != nil {
		return id.Hash{}, fmt.Errorf("digest of a step: %w", err)
	}
	return sha256.Sum256(canonical), nil
}

// unsignedStep is the envelope of a step. Members that the envelope format does not define come last.
type unsignedStep struct {
	SchemaVersion  int             `json:"schema_version"`
	EventID        id.Event        `json:"event_id"`
	OrganizationID id.Organization `json:"organization_id"`
	TraceID        id.Trace        `json:"trace_id"`
	AgentID        id.Agent        `json:"agent_id"`
	KeyID          id.Key          `json:"key_id"`
	EmittedAt      id.Instant      `json:"emitted_at"`
	ActorType      string          `json:"actor_type"`
	ActorPrincipal string          `json:"actor_principal"`
	ActionKind     string          `json:"action_kind"`
	PolicyDecision id.Decision     `json:"policy_decision"`
	ToolName       id.Tool         `json:"tool_name,omitzero"`
	Payload        jsontext.Value  `json:"payload"`

	RunID     ID     `json:"run_id"`
	StepKey   string `json:"step_key"`
	Attempt   int    `json:"attempt"`
	Status    string `json:"step_status"`
	StartedAt string `json:"started_at,omitzero"`
	EndedAt   string `json:"ended_at,omitzero"`

	OnBehalfOf *event.OnBehalfOf `json:"on_behalf_of,omitzero"`

	Approval approval.ID `json:"approval_id,omitzero"` // as the tool names it
	Salt     string      `json:"salt"`                 // random, so that the digest does not reveal the payload
}

// signStep returns the signed envelope of a step of the run r.
func (s *Step) signStep(
	identity *log.Identity, name ID, r *record, b *agent.Bridge, now id.Instant, maxBytes int,
) (*event.Envelope, error) {
	var salt [16]byte
	rand.Read(salt[:])
	unsigned, err := json.Marshal(unsignedStep{
		SchemaVersion: 1, EventID: r.stepEvent(s.Key, s.Attempt), OrganizationID: identity.Organization,
		TraceID: r.Trace, AgentID: r.Agent, KeyID: b.Key.ID, EmittedAt: now,
		ActorType: actorType, ActorPrincipal: r.Workflow.Name, ActionKind: s.Kind,
		PolicyDecision: id.Allow, ToolName: s.Tool, Payload: s.Payload,
		RunID: name, StepKey: s.Key, Attempt: s.Attempt, Status: s.Status, StartedAt: s.StartedAt, EndedAt: s.EndedAt,
		OnBehalfOf: s.OnBehalfOf, Approval: s.Approval,
		Salt: base64.RawURLEncoding.EncodeToString(salt[:]),
	})
	if err != nil {
		return nil, fmt.Errorf("envelope of a step: %w", err)
	}
	e, err := event.SignEnvelope(unsigned, b.Private)
	if err != nil {
		return nil, err
	}
	if len(e.Canonical) > maxBytes {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("The envelope is larger than %d bytes", maxBytes))
	}
	return e, nil
}
