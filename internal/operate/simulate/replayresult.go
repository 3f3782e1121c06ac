package simulate

import (
	"fmt"

	"github.com/agentledger/agentledger/event"
)

// Documents are the disclosed documents of an event.
type Documents struct {
	Record   *event.Record
	Envelope *event.Envelope // nil where it is not disclosed or erased
}

// ReplayResult compares the record of a result with that of its intent: a result is not
// judged again, so its decision follows from the intent's. The result's envelope is
// required. Tool and call_id are only compared with the intent's envelope. Nothing is
// returned when all agree.
func ReplayResult(result, intent Documents) []Difference {
	var d differences
	r, i := result.Record, intent.Record
	d.compareEnvelope(r, result.Envelope)
	d.compareValues("policy.intent", string(r.Policy.Intent), string(i.EventID))
	d.compareCall(result.Envelope, intent)
	d.compareValues("origin", string(r.Origin), string(i.Origin))
	d.compareValues("agent_id", string(r.AgentID), string(i.AgentID))
	d.compareValues("sequence_num behind the intent's", "true", fmt.Sprint(r.SequenceNum > i.SequenceNum))
	d.compareValues("an intent that permits", "true", fmt.Sprint(i.Policy.Permits()))
	if len(d.all) == 0 {
		follows := i.Policy.OfResult(i.EventID, r.Policy.Declared)
		d.comparePolicy(&r.Policy, &follows)
	}
	return d.all
}

// compareCall compares the statements of both envelopes about the call.
func (d *differences) compareCall(result *event.Envelope, intent Documents) {
	call, ok := result.SaysResult()
	d.compareValues("payload.phase", event.PhaseResult, call.Phase)
	d.compareValues("parent_event_id", string(call.Parent), string(intent.Record.EventID))
	if e := intent.Envelope; ok && e != nil {
		d.compareValues("event_digest of the intent", intent.Record.EventDigest.String(), e.Digest.String())
		d.compareValues("tool_name", string(result.Tool), string(e.Tool))
		if of := e.Call().ID; of != "" && call.ID != "" {
			d.compareValues("payload.call_id", call.ID, of)
		}
	}
}

// comparePolicy compares the decision in a record with the decision that follows.
func (d *differences) comparePolicy(said, follows *event.Policy) {
	d.compareValues("policy.policy_id", said.PolicyID, follows.PolicyID)
	d.compareValues("policy.policy_version", fmt.Sprint(said.PolicyVersion), fmt.Sprint(follows.PolicyVersion))
	d.compareValues("policy.policy_digest", said.PolicyDigest.String(), follows.PolicyDigest.String())
	d.compareValues("policy.rule_id", said.RuleID, follows.RuleID)
	d.compareValues("policy.engine", said.Engine, follows.Engine)
	d.compareValues("policy.effective", said.Effective.String(), follows.Effective.String())
	if len(d.all) == 0 && !said.Same(follows) {
		d.compareValues("policy", "members of an evaluation", "null, because a result is not judged")
	}
}
