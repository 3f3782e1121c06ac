package event

import "github.com/agentledger/agentledger/id"

// Permits reports whether an event with this policy may be the intent of results: it was evaluated
// itself and not denied. A result never is, because it is not evaluated.
func (p *Policy) Permits() bool { return p.Evaluated && p.Intent == "" && p.Effective != id.Deny }

// ForResult returns the policy of a result event, where p is the policy of its intent. A result is
// not evaluated again, because the decision on the intent covers it. Its own members of an
// evaluation (input_digest, evaluated_at, limits) are null.
func (p *Policy) ForResult(intent id.Event, declared id.Decision) Policy {
	return Policy{
		Declared: declared, Effective: declared.Tighten(p.Effective), Intent: intent,
		PolicyID: p.PolicyID, PolicyVersion: p.PolicyVersion, PolicyDigest: p.PolicyDigest,
		RuleID: p.RuleID, Engine: p.Engine,
	}
}

// Same reports whether two policies have the same text in a record.
func (p *Policy) Same(other *Policy) bool {
	return string(p.appendCanonical(nil)) == string(other.appendCanonical(nil))
}

// FollowsFrom reports whether r is the record of a result of the event with the record intent: r
// names that event, comes after it in the same log and is of the same agent, intent permits
// results, and r has the policy that ForResult returns. Records do not contain the tool.
func (r *Record) FollowsFrom(intent *Record) bool {
	if r.Policy.Intent != intent.EventID || r.Origin != intent.Origin || r.AgentID != intent.AgentID ||
		r.SequenceNum <= intent.SequenceNum || !intent.Policy.Permits() {
		return false
	}
	follows := intent.Policy.ForResult(intent.EventID, r.Policy.Declared)
	return r.Policy.Same(&follows)
}
