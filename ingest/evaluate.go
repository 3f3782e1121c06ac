package ingest

import (
	"context"
	"net/http"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
)

// Defaults of optional members of an evaluation.
const (
	defaultActorType  = "agent"
	defaultActionKind = "tool_call"
)

// evaluatePolicy serves POST /v1/ingest/policy/evaluate. It changes nothing, unless the request asks for an approval if
// one is needed.
func (s *Server) evaluatePolicy(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	token := s.openSubjectToken(r.Context(), c, r.Header)
	a, ask, err := s.decideQuestion(r.Context(), c, body, token, w.Header())
	if err != nil {
		return err
	}
	if ask != nil {
		asked, _, err := s.approvals.Ask(r.Context(), c.Tenant, *ask)
		if err != nil {
			return err
		}
		a.body = append(appendAsked(a.body[:len(a.body)-1], &asked), '}')
	}
	s.writeJSON(w, a)
	return nil
}

// decideQuestion evaluates the question in body, which came with a token, or with nil. It states in h what is known about
// on_behalf_of. ask is the approval to request, or nil.
func (s *Server) decideQuestion(ctx context.Context, c caller, body []byte, token *subjectToken, h http.Header) (a answer,
	ask *approval.Question, err error) {
	// This does not call compute, whose closure would be an allocation.
	if err := s.control.Processors.Acquire(ctx, c.share, 1); err != nil {
		return answer{}, nil, err
	}
	defer s.control.Processors.Release(c.share, 1)
	q, err := parseQuestion(body)
	if err != nil {
		return answer{}, nil, err
	}
	q.token = token
	out, in, ask, err := s.decide(ctx, c, &q)
	if err != nil {
		return answer{}, nil, err
	}
	setStanding(h, in.OnBehalfOf, in.Verified)
	return renderDecision(out, policy.InputDigest(in)), ask, nil
}

// decide evaluates a question while the caller holds a processor. It also returns the input, and the approval to
// request, or nil.
func (s *Server) decide(ctx context.Context, c caller, q *question) (out policy.Outcome, in policy.Input,
	ask *approval.Question, err error) {
	if in, err = q.policyInput(c); err != nil {
		return out, in, nil, err
	}
	if ask, err = q.approvalQuestion(c, in); err != nil {
		return out, in, nil, err
	}
	if err := s.ledgers.Timely(c.state); err != nil { // otherwise a wrong time would decide conditions and limits
		return out, in, nil, err
	}
	if err := s.checkAgentActive(ctx, c.state, in.Agent); err != nil {
		return out, in, nil, err
	}
	in.Now = id.InstantOf(s.clock())
	evaluation, err := policystore.Evaluate(ctx, s.policies, c.state, in)
	if err != nil {
		return out, in, nil, err
	}
	s.countShadows(&evaluation)
	if out, err = policystore.DecideNow(ctx, s.ledgers, c.state, &evaluation, in.Now); err != nil {
		return out, in, nil, err
	}
	s.metrics.decisions[out.Decision].Inc()
	if out.Decision != id.AllowWithObligation {
		ask = nil
	}
	return out, in, ask, nil
}

// checkAgentActive rejects an agent that is known to be disabled.
func (s *Server) checkAgentActive(ctx context.Context, state *log.State, a id.Agent) error {
	if err := state.Trusted(); err != nil {
		return err
	}
	return s.agents.CheckActive(ctx, state, a)
}

// question is the body of an evaluation: canonical JSON values, or nil if absent.
type question struct {
	organization, agent, tool, payload, actorType, actionKind, onBehalfOf []byte

	token *subjectToken // of the request; may be nil

	// For a question that requests an approval.
	trace, principal, callback, requestApproval []byte
}

// parseQuestion reads the members that it knows and ignores others.
func parseQuestion(body []byte) (q question, err error) {
	var buffer [16]jcs.Member
	canonical, members, err := jcs.ParseObject(buffer[:0], body, jcs.MaxDepth)
	if err != nil {
		return q, err
	}
	for _, m := range members {
		value := canonical[m.Value:m.End]
		switch string(m.Name(canonical)) {
		case "organization_id":
			q.organization = value
		case "agent_id":
			q.agent = value
		case "tool_name":
			q.tool = value
		case "payload":
			q.payload = value
		case "on_behalf_of":
			q.onBehalfOf = value
		case "actor_type":
			q.actorType = value
		case "action_kind":
			q.actionKind = value
		case "trace_id":
			q.trace = value
		case "actor_principal":
			q.principal = value
		case "callback_url":
			q.callback = value
		case "request_approval":
			q.requestApproval = value
		}
	}
	return q, nil
}

// policyInput checks a question of c, in the order of the API.
func (q *question) policyInput(c caller) (in policy.Input, err error) {
	organization, agent, tool := decodeText(q.organization), decodeText(q.agent), decodeText(q.tool)
	if organization == "" || agent == "" || tool == "" {
		return in, fault.New(fault.Invalid, "Missing organization_id, agent_id, or tool_name")
	}
	if o, err := id.ParseOrganization(organization); err != nil || o != c.Organization {
		return in, fault.New(fault.Forbidden, "Organization mismatch for API key")
	}
	if !event.ValidAgent(agent) {
		return in, fault.New(fault.Invalid, "agent_id must match [A-Za-z0-9._-]{1,128}")
	}
	if err := c.checkAgent(id.Agent(agent)); err != nil {
		return in, err
	}
	if !event.ValidTool(tool) {
		return in, fault.New(fault.Invalid,
			"tool_name must be segments of [A-Za-z0-9_:/-]+ with dots between them, at most 256 characters")
	}
	in = policy.Input{Tool: id.Tool(tool), Agent: id.Agent(agent), Payload: q.payload}
	if q.onBehalfOf != nil {
		if in.OnBehalfOf, err = event.ParseOnBehalfOf(q.onBehalfOf); err != nil {
			return in, err
		}
		in.Verified = q.token.proves(in.OnBehalfOf) == nil
	}
	if q.payload != nil && q.payload[0] != '{' {
		return in, fault.New(fault.Invalid, "payload must be an object")
	}
	if in.ActorType, err = parseKind("actor_type", q.actorType, defaultActorType); err != nil {
		return in, err
	}
	in.ActionKind, err = parseKind("action_kind", q.actionKind, defaultActionKind)
	return in, err
}

// decodeText returns the text of a canonical JSON string, or "" for any other value.
func decodeText(value []byte) string {
	var buffer [256]byte
	b, _ := jcs.AppendDecoded(buffer[:0], value)
	return string(b)
}

// parseKind reads an optional actor_type or action_kind, which must be a token that is not reserved for the service.
func parseKind(name string, value []byte, absent string) (string, error) {
	if value == nil {
		return absent, nil
	}
	s := decodeText(value)
	if !event.ValidKind(s) {
		return "", fault.New(fault.Invalid, name+" must match [a-z][a-z0-9_]{0,63}")
	}
	if name == "action_kind" && strings.HasPrefix(s, "ledger_") {
		return "", fault.New(fault.Invalid, "An action_kind that begins with ledger_ is reserved for the server")
	}
	return s, nil
}
