// Package coverage compares a tool's or gateway's own record of calls with the acts of a log: which calls have an act, which
// have none, and which acts have no call (docs/guides/coverage.md).
//
// Parse reads a record in one of four formats. Match pairs its calls with acts. The package does no I/O and reads no clock,
// and its functions are safe for concurrent use.
//
// Invariants:
//
//   - A record is read completely or not at all: an error names the line.
//   - A call is paired with at most one act, and an act with at most one call.
//   - A call and an act whose identifiers differ are never paired.
//   - No call is missing while an act that fits it has no call.
//   - The result does not depend on the order of the acts.
package coverage

import "github.com/agentledger/agentledger/id"

// identifier is a kind of identifier of one call, the strongest first.
type identifier int

const (
	eventID identifier = iota
	grantNonce
	approvalID
	callID
	actionDigest
	identifiers // how many there are
)

// IDs are the identifiers of a call or an act. Each may be "". Digests and nonces are in lower-case hex.
type IDs [identifiers]string

// Call is one call in the record of a tool.
type Call struct {
	Line        int // in the file, from 1: where the row, or the document of a span, begins
	Tool        string
	Agent       string     // "" if the record does not name it
	Time        id.Instant // 0 if unknown
	IDs         IDs
	InputDigest string
	Trace       string
}

// Act is an act in the log.
type Act struct {
	Index       id.Index
	Tool        string
	Agent       string
	Time        id.Instant // received_at
	Outcome     string
	Permitted   bool // the policy or approvers permitted the call
	IDs         IDs
	InputDigest string
	Traces      [2]string // its own and its caller's, "" for none
}

// Rule is what identified a call, the strongest first.
type Rule int

// The rules. The first five are identifiers.
const (
	ByEvent    Rule = Rule(eventID)
	ByNonce    Rule = Rule(grantNonce)
	ByApproval Rule = Rule(approvalID)
	ByCall     Rule = Rule(callID)
	ByAction   Rule = Rule(actionDigest)

	ByInput     Rule = Rule(identifiers) + iota - 5 // arguments and tool, near in time
	ByTrace                                         // trace and tool, near in time
	ByTimeAgent                                     // agent and tool, near in time
	ByTime                                          // tool, near in time
	rules
)

// Rules returns all rules, the strongest first.
func Rules() []Rule {
	all := make([]Rule, rules)
	for i := range all {
		all[i] = Rule(i)
	}
	return all
}

var ruleNames = [rules]string{"event_id", "grant_nonce", "approval_id", "call_id", "action_digest", "input_digest", "trace", "time_agent", "time"}

// String returns the name of a rule.
func (r Rule) String() string { return ruleNames[r] }

// Weak reports whether a rule uses only time, tool and agent.
func (r Rule) Weak() bool { return r >= ByTimeAgent }

// Reason is why a call is missing.
type Reason string

// The reasons of missing calls.
const (
	Repeated     Reason = "repeated"     // its identifier is of an act that another call has
	Conflict     Reason = "conflict"     // its identifier is of an act of another tool or agent, or with another identifier
	Taken        Reason = "taken"        // acts fit, and other calls have them
	NoAct        Reason = "no_act"       // no act fits
	Unidentified Reason = "unidentified" // it has neither an identifier nor a time
	TooWeak      Reason = "weak"         // an act fits by a weak rule, which Options.Strict excludes
)

// Options are the options of Match.
type Options struct {
	From, To  id.Instant // the range [From, To) of calls and of extra acts
	Tolerance id.Instant // maximum distance of a call and its act, in milliseconds
	Strict    bool       // a pair by a weak rule is a missing call
}

// ApprovalTime is how long an approval may take, in milliseconds: a call may be later by this time than its act.
const ApprovalTime id.Instant = 7 * 24 * 60 * 60 * 1000

// Match is a call with its act.
type Match struct {
	Call, Act int // positions in the arguments of Compare
	By        Rule
}

// Missing is a call without an act.
type Missing struct {
	Call   int
	Reason Reason
	Act    int // with the reasons repeated, conflict and weak: the act; else -1
}

// Result is the result of a comparison. Each list is in the order of the calls, or of the acts' times.
type Result struct {
	Matched     []Match // with an act that permits the call
	Unpermitted []Match // with an act that does not
	Missing     []Missing
	Extra       []int // positions of permitted acts in the range without a call
	NotMade     int   // how many acts in the range were not permitted and have no call
	Outside     int   // how many calls are not in the range
}

// Covered reports whether each call in the range has an act that permits it.
func (r *Result) Covered() bool { return len(r.Missing) == 0 && len(r.Unpermitted) == 0 }

// ByRule returns how many calls were matched by each rule.
func (r *Result) ByRule() (counts [rules]int) {
	for _, m := range r.Matched {
		counts[m.By]++
	}
	return counts
}

// Compare pairs calls with acts. The range of the acts must include what precedes and follows the range of the calls by the
// tolerance, and acts with an approval from ApprovalTime before it. It returns an error if so many acts have the same
// identifiers that the comparison would take too long.
func Compare(calls []Call, acts []Act, o Options) (Result, error) {
	p := newPairing(calls, acts, o)
	for k := range identifiers {
		if err := p.pairByID(k); err != nil {
			return Result{}, err
		}
	}
	for rule := ByInput; rule < rules; rule++ {
		p.pairNear(rule, true)
		p.pairNear(rule, false)
	}
	return p.result(), nil
}

// result sorts the calls and acts by what was found.
func (p *pairing) result() Result {
	var r Result
	for c := range p.calls {
		call, act := &p.calls[c], p.actOf[c]
		switch {
		case p.isOutside(call):
			r.Outside++
		case act >= 0 && p.byRule[c].Weak() && p.Strict:
			r.Missing = append(r.Missing, Missing{c, TooWeak, int(act)})
		case act >= 0 && p.acts[act].Permitted:
			r.Matched = append(r.Matched, Match{c, int(act), p.byRule[c]})
		case act >= 0:
			r.Unpermitted = append(r.Unpermitted, Match{c, int(act), p.byRule[c]})
		case p.final[c] != nil:
			r.Missing = append(r.Missing, *p.final[c])
		case p.crowded[c]:
			r.Missing = append(r.Missing, Missing{c, Taken, -1})
		case call.IDs == IDs{} && call.InputDigest == "" && call.Trace == "" && call.Time == 0:
			r.Missing = append(r.Missing, Missing{c, Unidentified, -1})
		default:
			r.Missing = append(r.Missing, Missing{c, NoAct, -1})
		}
	}
	for _, a := range p.byTime {
		switch in := p.contains(p.acts[a].Time); {
		case !in || p.callOf[a] >= 0:
		case p.acts[a].Permitted:
			r.Extra = append(r.Extra, int(a))
		default:
			r.NotMade++
		}
	}
	return r
}

func (o *Options) contains(t id.Instant) bool { return o.From <= t && t < o.To }

// Permits reports whether an act permits its call. outcome is that of the act, decision the effective one of its event, and
// approval whether an approval was requested.
func Permits(outcome string, decision id.Decision, approval bool) bool {
	switch outcome {
	case "done", "failed", "unknown", "open":
		return decision == id.Allow || decision == id.AllowWithObligation && approval
	}
	return false
}
