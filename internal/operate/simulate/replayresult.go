package simulate

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/agentledger/agentledger/event"
)

// Documents are the disclosed documents of an event.
type Documents struct {
	Record   *event.Record
	Envelope *event.Envelope // nil if it is not disclosed or was erased
}

// ReplayResult compares the record of a result with the record of its intent: a result is not evaluated again, so its
// decision follows from the intent. The envelope of the result is required. Tool and call_id are compared only if the
// envelope of the intent is given. It returns nil if everything agrees.
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
		follows := i.Policy.ForResult(i.EventID, r.Policy.Declared)
		d.comparePolicy(&r.Policy, &follows)
	}
	return d.all
}

// compareCall compares what both envelopes state about the call.
func (d *differences) compareCall(result *event.Envelope, intent Documents) {
	call, ok := result.ClaimsResult()
	d.compareValues("payload.phase", event.PhaseResult, call.Phase)
	d.compareValues("parent_event_id", string(call.Parent), string(intent.Record.EventID))
	if e := intent.Envelope; ok && e != nil {
		d.compareValues("event_digest of the intent", intent.Record.EventDigest.String(), e.Digest.String())
		d.compareValues("tool_name", string(result.Tool), string(e.Tool))
		if callID := e.Call().ID; callID != "" && call.ID != "" {
			d.compareValues("payload.call_id", call.ID, callID)
		}
		if of, err := result.OnBehalfOf(); err == nil && of != nil {
			before, _ := e.OnBehalfOf() // nil if it is malformed
			d.compareValues("on_behalf_of like the intent's", "true", strconv.FormatBool(bytes.Equal(of.Canonical(), before.Canonical())))
		}
	}
}

// comparePolicy compares the decision in a record with the expected decision.
func (d *differences) comparePolicy(recorded, want *event.Policy) {
	d.compareValues("policy.policy_id", recorded.PolicyID, want.PolicyID)
	d.compareValues("policy.policy_version", fmt.Sprint(recorded.PolicyVersion), fmt.Sprint(want.PolicyVersion))
	d.compareValues("policy.policy_digest", recorded.PolicyDigest.String(), want.PolicyDigest.String())
	d.compareValues("policy.rule_id", recorded.RuleID, want.RuleID)
	d.compareValues("policy.engine", recorded.Engine, want.Engine)
	d.compareValues("policy.effective", recorded.Effective.String(), want.Effective.String())
	if len(d.all) == 0 && !recorded.Same(want) {
		d.compareValues("policy", "members of an evaluation", "null, because a result is not judged")
	}
}
