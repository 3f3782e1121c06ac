package simulate

import (
	"fmt"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/policy"
)

// Difference is a member of a record that differs from the value that follows from the documents.
type Difference struct {
	Member    string `json:"member"` // of the record, such as policy.rule_id
	Record    string `json:"record"`
	Documents string `json:"documents"`
}

// Replayed is the result of a replay.
type Replayed struct {
	Differences []Difference // empty if record and documents agree

	// Formerly means that the record agrees only with the former rules, by which limits did not apply to events of
	// every kind: policy.Compiled.EvaluateLegacy.
	Formerly bool
}

// Replay decides an event again. Record, envelope and policy agree if the same input leads to the same decision.
// Differences of inputs come first; decisions are compared only if there are none. p may be nil for a record without
// an active policy.
//
// Replay relies on the record for the time and for the amounts that limits had before the event. For a record with an
// intent, use ReplayResult.
func Replay(p *policy.Policy, record *event.Record, e *event.Envelope) (Replayed, error) {
	found, err := replayEvent(p, record, e, (*policy.Compiled).Evaluate)
	if err != nil || len(found) == 0 || p == nil || e.ActionKind == policy.LegacyLimitKind {
		return Replayed{Differences: found}, err
	}
	formerly, err := replayEvent(p, record, e, (*policy.Compiled).EvaluateLegacy)
	if err == nil && len(formerly) == 0 {
		return Replayed{Formerly: true}, nil
	}
	return Replayed{Differences: found}, nil
}

func replayEvent(
	p *policy.Policy, record *event.Record, e *event.Envelope,
	evaluate func(*policy.Compiled, policy.Input) policy.Evaluation,
) ([]Difference, error) {
	d := differences{evaluate: evaluate}
	recorded := &record.Policy
	d.compareEnvelope(record, e)
	d.compareValues("policy.intent", string(recorded.Intent), "")
	d.compareValues("policy.evaluated", fmt.Sprint(recorded.Evaluated), fmt.Sprint(e.Tool != ""))
	if !recorded.Evaluated {
		d.compareValues("policy.effective", recorded.Effective.String(), recorded.Declared.String())
		return d.all, nil
	}
	in := inputOfEvent(record, e)
	d.compareInput(p, recorded, in)
	evaluation, err := d.compareEvaluation(p, recorded, in)
	if err != nil || len(d.all) > 0 {
		return d.all, err
	}
	before, err := d.compareLimits(recorded, evaluation.Claims)
	if err != nil || len(d.all) > 0 {
		return d.all, err
	}
	o := evaluation.Settle(func(c *policy.Claim) bool { return c.Exceeds(before[c.Limit.ID]) })
	d.compareValues("policy.engine", recorded.Engine, o.Engine)
	d.compareValues("policy.rule_id", recorded.RuleID, o.RuleID)
	d.compareValues("policy.effective", recorded.Effective.String(), o.Effective(e.Decision).String())
	return d.all, nil
}

type differences struct {
	all      []Difference
	evaluate func(*policy.Compiled, policy.Input) policy.Evaluation
}

// compareEnvelope compares what a record states about its envelope with the envelope.
func (d *differences) compareEnvelope(record *event.Record, e *event.Envelope) {
	d.compareValues("event_digest", record.EventDigest.String(), e.Digest.String())
	d.compareValues("agent_id", string(record.AgentID), string(e.AgentID))
	d.compareValues("policy.declared", record.Policy.Declared.String(), e.Decision.String())
}

// compareInput compares the input_digest. Records from before policies could match on_behalf_of have a digest without it, which is
// accepted unless the policy uses it.
func (d *differences) compareInput(p *policy.Policy, recorded *event.Policy, in policy.Input) {
	if before := in; p == nil || !p.Subjects {
		before.OnBehalfOf, before.Verified = nil, false
		if recorded.InputDigest == policy.InputDigest(before) {
			return
		}
	}
	d.compareValues("policy.input_digest", recorded.InputDigest.String(), policy.InputDigest(in).String())
}

func (d *differences) compareValues(member, record, documents string) {
	if record != documents {
		d.all = append(d.all, Difference{member, record, documents})
	}
}

// compareEvaluation evaluates the policy that the record refers to, or records a difference if p is another policy.
func (d *differences) compareEvaluation(
	p *policy.Policy, recorded *event.Policy, in policy.Input,
) (policy.Evaluation, error) {
	if p == nil {
		d.compareValues("policy.policy_id", recorded.PolicyID, policy.None)
		return policy.NoPolicy(), nil
	}
	named := *p
	if named.ID == "" && recorded.PolicyID != policy.None {
		named.ID = recorded.PolicyID // a policy document may omit ID and version
	}
	if named.Version == 0 {
		named.Version = recorded.PolicyVersion
	}
	d.compareValues("policy.policy_id", recorded.PolicyID, named.ID)
	d.compareValues("policy.policy_version", fmt.Sprint(recorded.PolicyVersion), fmt.Sprint(named.Version))
	d.compareValues("policy.policy_digest", recorded.PolicyDigest.String(), named.Digest().String())
	if len(d.all) > 0 {
		return policy.Evaluation{}, nil
	}
	compiled, err := policy.Compile(named)
	if err != nil {
		return policy.Evaluation{}, err
	}
	return d.evaluate(compiled, in), nil
}

// compareLimits compares the limits in the record with the claims of the event, and returns the amounts of the limits
// before the event.
func (d *differences) compareLimits(recorded *event.Policy, claims []policy.Claim) (map[string]decimal.Decimal, error) {
	tallies, err := policy.ParseTallies(recorded.Limits)
	if err != nil {
		return nil, err
	}
	before, added := make(map[string]decimal.Decimal), make(map[string]string)
	for _, t := range tallies {
		before[t.LimitID], added[t.LimitID] = t.Before, t.Added.String()
	}
	for i := range claims {
		name := claims[i].Limit.ID
		d.compareValues("policy.limits "+name, added[name], claims[i].Added.String())
		delete(added, name)
	}
	for name, amount := range added {
		d.compareValues("policy.limits "+name, amount, "")
	}
	return before, nil
}
