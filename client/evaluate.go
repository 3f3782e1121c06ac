package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Question asks for the policy's decision on an action before it happens.
type Question struct {
	Organization id.Organization `json:"organization_id"`
	Agent        id.Agent        `json:"agent_id"`
	Tool         id.Tool         `json:"tool_name"`
	Payload      any             `json:"payload,omitzero"`     // must become a JSON object, whose numbers keep their digits; nil is {}
	ActorType    string          `json:"actor_type,omitzero"`  // "" is agent
	ActionKind   string          `json:"action_kind,omitzero"` // "" is tool_call

	// OnBehalfOf is for whom the agent would act; nil if the event would not state it. Config.SubjectToken proves it.
	OnBehalfOf *event.OnBehalfOf `json:"on_behalf_of,omitzero"`
}

// Decision is the policy's decision. If no policy is active, PolicyID and RuleID are "none", and
// PolicyVersion and PolicyDigest are zero.
type Decision struct {
	Decision      id.Decision    `json:"decision"`
	PolicyID      string         `json:"policy_id"`
	RuleID        string         `json:"rule_id"`
	Reason        string         `json:"reason"`
	Engine        string         `json:"engine"`
	PolicyVersion uint64         `json:"policy_version,omitzero"`
	PolicyDigest  id.Hash        `json:"policy_digest,omitzero"`
	InputDigest   id.Hash        `json:"input_digest,omitzero"`
	Obligations   []Obligation   `json:"obligations,omitempty"`
	Approval      jsontext.Value `json:"approval,omitempty"` // as the service sent it
}

// Obligation must be fulfilled before an action with the decision allow_with_obligation.
type Obligation struct {
	Type       string `json:"type"`
	Approvals  int    `json:"approvals,omitzero"`
	Signed     bool   `json:"signed,omitzero"` // approvers sign with a passkey
	TTLSeconds int    `json:"ttl_seconds,omitzero"`
}

// Evaluate asks for a decision and stores nothing. After an error there is no decision, and the
// caller MUST NOT act.
func (c *Client) Evaluate(ctx context.Context, q Question) (Decision, error) {
	var d Decision
	var err error
	if q.Payload, err = recordPayload(q.Payload); err != nil {
		return d, fmt.Errorf("evaluate: %w", err)
	}
	body, err := jcs.Marshal(q)
	if err != nil {
		return d, fmt.Errorf("evaluate: encode: %w", err)
	}
	answer, err := c.sendWithRetries(ctx, call{method: http.MethodPost, path: "/v1/ingest/policy/evaluate", body: body, ingest: true,
		proves: q.OnBehalfOf != nil})
	if err == nil {
		err = decodeAnswer(answer, &d)
	}
	if err == nil && d.Decision == 0 {
		err = malformedAnswer(errors.New("no decision"))
	}
	if err != nil {
		return Decision{}, fmt.Errorf("evaluate: %w", err)
	}
	return d, nil
}

// recordPayload returns a payload with its numbers in recorded form, so that the policy compares those that a double
// cannot hold exactly.
func recordPayload(payload any) (any, error) {
	if payload == nil {
		return nil, nil
	}
	exact, err := jcs.MarshalExact(payload)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(exact, &members); err != nil || members == nil {
		return nil, errors.New("payload: must be a JSON object")
	}
	if members[jcs.TaggedMember] != nil {
		return nil, fmt.Errorf("payload: must not have the member %s", jcs.TaggedMember)
	}
	jcs.TagMembers(members)
	return members, nil
}

// DeniedError is returned by packages guard and runs for an action that is not allowed.
type DeniedError struct {
	Reason   string
	Decision Decision // of the policy, as far as it is known
	Approval Approval // zero if no approval was requested
	Event    id.Event // the event that states the action, or ""
}

// Error returns the reason.
func (e *DeniedError) Error() string { return "the action is not allowed: " + e.Reason }
