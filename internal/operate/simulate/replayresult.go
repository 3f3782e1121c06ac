package simulate

import (
	"fmt"

	"github.com/agentledger/agentledger/event"
)

// Documents are what is disclosed of an event.
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
	d.envelope(r, result.Envelope)
	d.compare("policy.intent", string(r.Policy.Intent), string(i.EventID))
	d.call(result.Envelope, intent)
	d.compare("origin", string(r.Origin), string(i.Origin))
	d.compare("agent_id", string(r.AgentID), string(i.AgentID))
	d.compare("sequence_num behind the intent's", "true", fmt.Sprint(r.SequenceNum > i.SequenceNum))
	d.compare("an intent that permits", "true", fmt.Sprint(i.Policy.Permits()))
	if len(d.all) == 0 {
		follows := i.Policy.OfResult(i.EventID, r.Policy.Declared)
		d.policy(&r.Policy, &follows)
	}
	return d.all
}

// call compares what the envelopes say of the call.
func (d *differences) call(result *event.Envelope, intent Documents) {
	call, ok := result.SaysResult()
	d.compare("payload.phase", event.PhaseResult, call.Phase)
	d.compare("parent_event_id", string(call.Parent), string(intent.Record.EventID))
	if e := intent.Envelope; ok && e != nil {
		d.compare("event_digest of the intent", intent.Record.EventDigest.String(), e.Digest.String())
		d.compare("tool_name", string(result.Tool), string(e.Tool))
		if of := e.Call().ID; of != "" && call.ID != "" {
			d.compare("payload.call_id", call.ID, of)
		}
	}
}

// policy compares what a record says of its decision with what follows.
func (d *differences) policy(said, follows *event.Policy) {
	d.compare("policy.policy_id", said.PolicyID, follows.PolicyID)
	d.compare("policy.policy_version", fmt.Sprint(said.PolicyVersion), fmt.Sprint(follows.PolicyVersion))
	d.compare("policy.policy_digest", said.PolicyDigest.String(), follows.PolicyDigest.String())
	d.compare("policy.rule_id", said.RuleID, follows.RuleID)
	d.compare("policy.engine", said.Engine, follows.Engine)
	d.compare("policy.effective", said.Effective.String(), follows.Effective.String())
	if len(d.all) == 0 && !said.Same(follows) {
		d.compare("policy", "members of an evaluation", "null, because a result is not judged")
	}
}
