package policy

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/policy/internal/condition"
)

// checkIdentity checks the members that a draft may omit and an active policy must have.
func (p Policy) checkIdentity() error {
	if !isValidID(p.ID) || isReservedID(p.ID) {
		return invalidMember("policy_id", "must be 1 to 128 of A-Z a-z 0-9 . _ : - and not a reserved word")
	}
	if p.Version == 0 || p.Version >= 1<<53 {
		return invalidMember("version", "must be a whole number from 1 to 2^53-1")
	}
	return nil
}

// checkContent checks everything else.
func (p Policy) checkContent() error {
	if !textcheck.Plain(p.Name, 0, MaxName) || p.Name == "" {
		return invalidMember("name", "must have 1 to 256 characters, none of them a control character")
	}
	if p.Default.String() == "" {
		return invalidMember("default", "must be allow, deny or allow_with_obligation")
	}
	if len(p.Rules) > MaxRules {
		return invalidMember("rules", "must not be more than 500")
	}
	rules, limits := make(map[string]bool, len(p.Rules)), make(map[string]bool)
	for i := range p.Rules {
		r := &p.Rules[i]
		if err := r.checkMembers(i); err != nil {
			return err
		}
		if rules[r.ID] {
			return invalidMember(ruleMemberPath(i, "rule_id"), "is used by an earlier rule")
		}
		rules[r.ID] = true
		if r.Limit == nil {
			continue
		}
		if limits[r.Limit.ID] {
			return invalidMember(ruleMemberPath(i, "limit.limit_id"), "is used by an earlier rule")
		}
		limits[r.Limit.ID] = true
	}
	return nil
}

// checkMembers checks the rule at i of its policy.
func (r *Rule) checkMembers(i int) error {
	switch {
	case !isValidID(r.ID) || isReservedID(r.ID):
		return invalidMember(ruleMemberPath(i, "rule_id"),
			"must be 1 to 128 of A-Z a-z 0-9 . _ : - and not a reserved word")
	case !textcheck.ValidToolGlob(r.Tool):
		return invalidMember(ruleMemberPath(i, "tool"),
			"must be a dotted tool name in which a segment may be * and the last one **")
	case r.Decision.String() == "":
		return invalidMember(ruleMemberPath(i, "decision"), "must be allow, deny or allow_with_obligation")
	case !textcheck.Plain(r.Reason, 0, MaxReason):
		return invalidMember(ruleMemberPath(i, "reason"),
			"must have at most 1024 characters, none of them a control character")
	case r.Priority < -MaxPriority || r.Priority > MaxPriority:
		return invalidMember(ruleMemberPath(i, "priority"), "must be from -1000000 to 1000000")
	case r.Mode.String() == "":
		return invalidMember(ruleMemberPath(i, "mode"), "must be enforce or shadow")
	case r.OnError != defaultOnError(r.Decision):
		return invalidMember(ruleMemberPath(i, "on_error"),
			"must be "+defaultOnError(r.Decision).String()+" for the decision "+r.Decision.String())
	case len(r.When) > MaxWhen || !utf8.ValidString(r.When):
		return invalidMember(ruleMemberPath(i, "when"), "must be at most 2048 bytes")
	case len(r.Agents) > MaxAgents:
		return invalidMember(ruleMemberPath(i, "agents"), "must not be more than 1000")
	}
	for j, agent := range r.Agents {
		if !isValidAgentID(string(agent)) {
			return invalidMember(ruleMemberPath(i, fmt.Sprintf("agents[%d]", j)), "is not an agent id")
		}
	}
	if err := r.OnBehalfOf.checkMembers(i); err != nil {
		return err
	}
	if err := r.checkRequires(i); err != nil {
		return err
	}
	if r.Limit != nil {
		if err := r.Limit.checkMembers(i, r.Decision); err != nil {
			return err
		}
	}
	return r.checkObligations(i)
}

// checkMembers checks the subject, which may be nil, of the rule at i.
func (s *Subject) checkMembers(i int) error {
	switch {
	case s == nil:
		return nil
	case *s == Subject{}:
		return invalidMember(ruleMemberPath(i, "on_behalf_of"), "must have issuer, subject or verified")
	case s.Issuer == "" && s.Subject != "":
		return invalidMember(ruleMemberPath(i, "on_behalf_of.subject"), "needs issuer, because another issuer may use the same subject")
	case s.Issuer != "" && !event.ValidIssuer(s.Issuer):
		return invalidMember(ruleMemberPath(i, "on_behalf_of.issuer"),
			"must be an https URL without user, query and fragment, at most 512 bytes")
	case s.Subject != "" && !event.ValidSubject(s.Subject):
		return invalidMember(ruleMemberPath(i, "on_behalf_of.subject"),
			"must be 1 to 255 characters without control characters, or a SPIFFE ID of at most 2048 bytes")
	}
	return nil
}

func (r *Rule) checkRequires(i int) error {
	if len(r.Requires) > MaxRequires {
		return invalidMember(ruleMemberPath(i, "requires"), "must not be more than 64")
	}
	for j, text := range r.Requires {
		if _, ok := condition.ParsePath(text); !ok {
			return invalidMember(ruleMemberPath(i, fmt.Sprintf("requires[%d]", j)),
				"must be a path in the payload such as amount or order.items[0].total")
		}
	}
	return nil
}

func (r *Rule) checkObligations(i int) error {
	if len(r.Obligations) > 0 && r.Decision != id.AllowWithObligation {
		return invalidMember(ruleMemberPath(i, "obligations"), "needs the decision allow_with_obligation")
	}
	if len(r.Obligations) > 1 {
		return invalidMember(ruleMemberPath(i, "obligations"), "must not name a type twice")
	}
	for j, o := range r.Obligations {
		member := func(name string) string { return ruleMemberPath(i, fmt.Sprintf("obligations[%d].%s", j, name)) }
		switch {
		case o.Type != HumanApproval:
			return invalidMember(member("type"), "must be human_approval, the only type this server supports")
		case o.Approvals < 1 || o.Approvals > MaxApprovals:
			return invalidMember(member("approvals"), "must be from 1 to 100")
		case o.TTLSeconds < 1 || o.TTLSeconds > MaxTTLSeconds:
			return invalidMember(member("ttl_seconds"), "must be from 1 to 604800, which is 7 days")
		case o.RemindAfterSeconds < 0 || o.RemindAfterSeconds >= o.TTLSeconds:
			return invalidMember(member("remind_after_seconds"), "must be from 1 to less than ttl_seconds")
		case o.EscalateAfterSeconds < 0 || o.EscalateAfterSeconds >= o.TTLSeconds:
			return invalidMember(member("escalate_after_seconds"), "must be from 1 to less than ttl_seconds")
		case o.EscalateTo != "" && !slices.Contains([]string{"owner", "admin", "approver"}, o.EscalateTo):
			return invalidMember(member("escalate_to"), "must be owner, admin or approver")
		case (o.EscalateTo == "") != (o.EscalateAfterSeconds == 0):
			return invalidMember(member("escalate_to"), "needs escalate_after_seconds, and the other way around")
		}
	}
	return nil
}

func isReservedID(s string) bool { return s == None || s == DefaultRule }
