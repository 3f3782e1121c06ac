package evidence

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/verify/pack"
)

// Bounds of the policies in the report.
const (
	maxPolicies = 20
	maxRules    = 50 // of a policy
)

// policyRow is a policy in the report.
type policyRow struct {
	Name    string
	ID      string
	Version uint64
	Digest  string
	Rules   []ruleRow
	Hidden  int // rules that are not shown
	Default string
}

// ruleRow is a rule as a sentence: Who Verb Tool[, if When] Then.
type ruleRow struct {
	Who, Verb, Tool, When, Then, ID, Reason string
	Shadow                                  bool
}

// describePolicy returns the sentences of a policy. agents are display names.
func describePolicy(p *policy.Policy, digest id.Hash, agents map[id.Agent]string) policyRow {
	row := policyRow{Name: shorten(p.Name), ID: p.ID, Version: p.Version, Digest: digest.String(), Default: "Every other call is denied."}
	if p.Default == id.Allow {
		row.Default = "Every other call is allowed."
	}
	for i := range p.Rules {
		if len(row.Rules) >= maxRules {
			row.Hidden = len(p.Rules) - maxRules
			break
		}
		row.Rules = append(row.Rules, describeRule(&p.Rules[i], agents))
	}
	return row
}

func describeRule(r *policy.Rule, agents map[id.Agent]string) ruleRow {
	row := ruleRow{Who: "Any agent", Verb: "may call", Tool: r.Tool, When: shorten(r.When), ID: r.ID, Reason: shorten(r.Reason), Shadow: r.Mode == policy.Shadow}
	if len(r.Agents) > 0 {
		var names []string
		for _, a := range r.Agents {
			names = append(names, nameOr(agents[a], string(a)))
		}
		row.Who = shorten(strings.Join(names, ", "))
	}
	if of := r.OnBehalfOf; of != nil {
		row.Who += " on behalf of " + nameOr(of.Subject, "anyone")
		if of.Issuer != "" {
			row.Who += " of " + shorten(of.Issuer)
		}
		if of.Verified {
			row.Who += " (verified)"
		} else {
			row.Who += " (claimed or verified)"
		}
	}
	var then []string
	switch r.Decision {
	case id.Deny:
		row.Verb = "must not call"
	case id.AllowWithObligation:
		for _, o := range r.Obligations {
			after := "after " + textcheck.Count(o.Approvals, "approval")
			if o.Signed {
				after += ", signed by the approvers' passkeys"
			}
			then = append(then, after)
		}
	}
	if l := r.Limit; l != nil {
		what := "calls"
		if l.Sum != "" {
			what = strings.TrimSpace(l.Sum + " " + l.Currency)
		}
		then = append(then, fmt.Sprintf("beyond a total of %s %s in %s per %s", l.Max, what, time.Duration(l.WindowSeconds)*time.Second, l.By))
	}
	row.Then = shorten(strings.Join(then, ", "))
	return row
}

func nameOr(name, other string) string {
	if name != "" {
		return shorten(name)
	}
	return other
}

// title returns the question of a request, such as "Acts of payments.refund by Refund bot, November 2026".
func title(r *pack.Request, agents map[id.Agent]string) string {
	words := "All acts"
	if r.Filters() {
		words = "Acts"
	}
	if r.Tool != nil {
		words += " of " + *r.Tool
	}
	if r.AgentID != nil {
		words += " by " + nameOr(agents[*r.AgentID], string(*r.AgentID))
	}
	if r.TraceID != nil {
		words += " in trace " + string(*r.TraceID)
	}
	if r.Subject != "" {
		words += " on behalf of " + shorten(r.Subject)
	}
	if period := describePeriod(r.From, r.To); period != "" {
		words += ", " + period
	}
	return words
}

// describePeriod returns the words for a range of times or log indices, or "" for all events.
func describePeriod(from, to *string) string {
	begin, end := parseTime(from), parseTime(to)
	switch {
	case from == nil && to == nil:
		return ""
	case !begin.IsZero() && begin.Day() == 1 && isMidnight(begin) && end.Equal(begin.AddDate(0, 1, 0)):
		return begin.Format("January 2006")
	case !begin.IsZero() && isMidnight(begin) && end.Equal(begin.AddDate(0, 0, 1)):
		return begin.Format("2 January 2006")
	}
	words := ""
	if from != nil {
		words = "from " + describeBound(*from, begin)
	}
	if to != nil {
		words = strings.TrimSpace(words + " to " + describeBound(*to, end))
	}
	return words
}

func parseTime(bound *string) time.Time {
	if bound == nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, *bound)
	if err != nil {
		return time.Time{}
	}
	return t
}

func isMidnight(t time.Time) bool { return t.Equal(t.Truncate(24 * time.Hour)) }

func describeBound(text string, at time.Time) string {
	switch {
	case at.IsZero():
		return "event " + text
	case isMidnight(at):
		return at.Format("2 January 2006")
	}
	return at.Format("2 January 2006, 15:04:05 UTC")
}

// number writes a number with commas between groups of three digits.
func number(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
