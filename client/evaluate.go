package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Question asks what the organization's policy says of an action that has not
// happened yet.
type Question struct {
	Organization id.Organization `json:"organization_id"`
	Agent        id.Agent        `json:"agent_id"`
	Tool         id.Tool         `json:"tool_name"`
	Payload      any             `json:"payload,omitzero"`     // must become a JSON object; nil is {}
	ActorType    string          `json:"actor_type,omitzero"`  // "" is agent
	ActionKind   string          `json:"action_kind,omitzero"` // "" is tool_call
}

// Decision is the policy's answer. PolicyID and RuleID are "none" when no policy
// is active; then PolicyVersion and PolicyDigest are zero.
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
	Approval      jsontext.Value `json:"approval,omitempty"` // as the service gave it
}

// Obligation is what has to be fulfilled before an action with the decision
// allow_with_obligation.
type Obligation struct {
	Type       string `json:"type"`
	Approvals  int    `json:"approvals,omitzero"`
	TTLSeconds int    `json:"ttl_seconds,omitzero"`
}

// Evaluate asks for a decision. It changes nothing, so it is tried again like
// any other request. An error is no decision: the caller does not act on it.
func (c *Client) Evaluate(ctx context.Context, q Question) (Decision, error) {
	body, err := jcs.Marshal(q)
	if err != nil {
		return Decision{}, fmt.Errorf("evaluate: encode question: %w", err)
	}
	answer, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/ingest/policy/evaluate", body: body, ingest: true})
	if err != nil {
		return Decision{}, fmt.Errorf("evaluate: %w", err)
	}
	var d Decision
	if err := decode(answer, &d); err != nil {
		return Decision{}, fmt.Errorf("evaluate: %w", err)
	}
	if d.Decision == 0 {
		return Decision{}, fmt.Errorf("evaluate: %w", badAnswer(errors.New("no decision")))
	}
	return d, nil
}
