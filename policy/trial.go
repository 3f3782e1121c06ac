package policy

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Trial is an input to try a policy on.
type Trial struct {
	Input  Input                      // Now is 0 if the trial does not set it
	Before map[string]decimal.Decimal // amounts in the counters before, by limit_id; 0 if missing
}

// Exceeds is an argument for Evaluation.Settle.
func (t *Trial) Exceeds(c *Claim) bool { return c.Exceeds(t.Before[c.Limit.ID]) }

type trialDocument struct {
	Input  inputDocument             `json:"input"`
	Now    *id.Instant               `json:"now"`
	Limits map[string]jsontext.Value `json:"limits"`
}

type inputDocument struct {
	Tool       id.Tool        `json:"tool_name"`
	Agent      *id.Agent      `json:"agent_id"`
	ActorType  *string        `json:"actor_type"`
	ActionKind *string        `json:"action_kind"`
	OnBehalfOf jsontext.Value `json:"on_behalf_of"`
	Verified   bool           `json:"on_behalf_of_verified"`
	Payload    jsontext.Value `json:"payload"`
}

// Defaults of an input's members.
const (
	defaultActor = "agent"
	defaultKind  = "tool_call"
	testAgent    = "test-agent"
)

// ParseTrial parses a trial of p: an object with the members input, now and limits, as in a test.
func (p *Policy) ParseTrial(doc []byte) (Trial, error) {
	var d trialDocument
	if err := json.Unmarshal(doc, &d, json.RejectUnknownMembers(true)); err != nil {
		return Trial{}, explainDecodeError(err)
	}
	t, err := d.toTrial("")
	if err != nil {
		return Trial{}, err
	}
	return t, t.checkMembers("", p.namedLimits())
}

func (p *Policy) namedLimits() map[string]bool {
	known := make(map[string]bool)
	for i := range p.Rules {
		if l := p.Rules[i].Limit; l != nil {
			known[l.ID] = true
		}
	}
	return known
}

// toTrial fills in the defaults. within is the prefix of member names in errors.
func (d *trialDocument) toTrial(within string) (Trial, error) {
	t := Trial{Input: Input{Tool: d.Input.Tool, Agent: testAgent, ActorType: defaultActor, ActionKind: defaultKind}}
	if d.Input.Agent != nil {
		t.Input.Agent = *d.Input.Agent
	}
	if d.Input.ActorType != nil {
		t.Input.ActorType = *d.Input.ActorType
	}
	if d.Input.ActionKind != nil {
		t.Input.ActionKind = *d.Input.ActionKind
	}
	if d.Now != nil {
		t.Input.Now = *d.Now
	}
	for limit, value := range d.Limits {
		before, ok := parseDecimal(value)
		if !ok {
			return t, invalidMember(within+"limits", "must give each limit_id a number")
		}
		if t.Before == nil {
			t.Before = make(map[string]decimal.Decimal)
		}
		t.Before[limit] = before
	}
	if member := d.Input.OnBehalfOf; isGiven(member) {
		of, err := event.ParseOnBehalfOf(member)
		if err != nil {
			return t, invalidMember(within+"input.on_behalf_of", "is malformed: "+fault.Of(err).Message)
		}
		t.Input.OnBehalfOf, t.Input.Verified = of, d.Input.Verified
	} else if d.Input.Verified {
		return t, invalidMember(within+"input.on_behalf_of_verified", "needs on_behalf_of")
	}
	if payload := d.Input.Payload; isGiven(payload) {
		canonical, err := jcs.Canonicalize(payload, jcs.MaxDepth)
		if err != nil {
			return t, invalidMember(within+"input.payload", "must be a JSON object: "+fault.Of(err).Message)
		}
		if canonical[0] != '{' {
			return t, invalidMember(within+"input.payload", "must be a JSON object")
		}
		t.Input.Payload = slices.Clone(canonical)
	}
	return t, nil
}

func isGiven(value jsontext.Value) bool { return value != nil && string(value) != "null" }

func (t *Trial) checkMembers(within string, limits map[string]bool) error {
	in := &t.Input
	switch {
	case !isValidToolName(string(in.Tool)):
		return invalidMember(within+"input.tool_name", "must be a tool name, segments with dots between them")
	case !isValidAgentID(string(in.Agent)):
		return invalidMember(within+"input.agent_id", "is not an agent id")
	case !isValidToken(in.ActorType):
		return invalidMember(within+"input.actor_type", "must match [a-z][a-z0-9_]{0,63}")
	case !isValidToken(in.ActionKind):
		return invalidMember(within+"input.action_kind", "must match [a-z][a-z0-9_]{0,63}")
	}
	for limit, before := range t.Before {
		if !limits[limit] || before.Sign() < 0 {
			return invalidMember(within+"limits", "must give limits of the policy numbers that are not negative")
		}
	}
	return nil
}
