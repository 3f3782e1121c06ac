package console

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"errors"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// version is a version of a policy on a page.
type version struct {
	head
	PolicyID string
	Default  string
	Rules    []rule
	Tests    []test
	Text     jsontext.Value // the complete document of the interface
}

// head is a version in the list of a policy's versions.
type head struct{ wire.PolicyVersion }

func describeVersions(list []wire.PolicyVersion) []head {
	shown := make([]head, len(list))
	for i := range list {
		shown[i] = head{list[i]}
	}
	return shown
}

// rule is a rule of a policy with all its members.
type rule struct {
	RuleID      string       `json:"rule_id"`
	Tool        string       `json:"tool"`
	Agents      []string     `json:"agents"`
	OnBehalfOf  *ruleSubject `json:"on_behalf_of"`
	When        string       `json:"when"`
	Requires    []string     `json:"requires"`
	Decision    string       `json:"decision"`
	Reason      string       `json:"reason"`
	Priority    int          `json:"priority"`
	Obligations []obligation `json:"obligations"`
	Mode        string       `json:"mode"`
	OnError     string       `json:"on_error"`
	Limit       *ruleLimit   `json:"limit"`
}

// ruleSubject is the subject that a rule is about.
type ruleSubject struct {
	Issuer   string `json:"issuer"`
	Subject  string `json:"subject"`
	Verified bool   `json:"verified"`
}

type obligation struct{ wire.Obligation }

type ruleLimit struct {
	LimitID       string         `json:"limit_id"`
	Sum           string         `json:"sum"`
	Count         bool           `json:"count"`
	By            string         `json:"by"`
	WindowSeconds int64          `json:"window_seconds"`
	Max           jsontext.Value `json:"max"`
	Currency      string         `json:"currency"`
}

// test is a test of a policy.
type test struct {
	Name  string `json:"name"`
	Input struct {
		Tool  string `json:"tool_name"`
		Agent string `json:"agent_id"`
	} `json:"input"`
	Expect struct {
		Decision string `json:"decision"`
		RuleID   string `json:"rule_id"`
	} `json:"expect"`
}

// readVersion reads the version in a parameter of the address, or the latest for "".
func readVersion(r *page.Request, number string) (v version, err error) {
	return readVersionOf(r, r.PathParameter("policy"), number)
}

// readVersionOf is readVersion for a policy.
func readVersionOf(r *page.Request, policy, number string) (v version, err error) {
	query := url.Values{}
	if number != "" {
		query.Set("version", number)
	}
	found, err := visitOf(r).Console.ShowPolicy(r.Context(), visitOf(r).caller, policy, query)
	if err != nil {
		return v, err
	}
	v.PolicyVersion = wire.PolicyVersion{Version: found.Version, Name: found.Name, State: found.State,
		Digest: found.Digest, WrittenAt: found.WrittenAt, WrittenBy: found.WrittenBy, ActivatedAt: found.ActivatedAt,
		ArchivedAt: found.ArchivedAt}
	v.PolicyID, v.Default = found.PolicyID, found.Default
	if v.Text, err = json.Marshal(found); err != nil {
		return v, err
	}
	return v, errors.Join(decode(found.Rules, &v.Rules), decode(found.Tests, &v.Tests))
}

// AddressOf returns the part of an address that selects the version.
func (h head) AddressOf() string { return "?version=" + strconv.FormatUint(h.Version, 10) }

// Following returns the number of the version after this one.
func (h head) Following() uint64 { return h.Version + 1 }

// IsDraft reports whether the version may still change.
func (h head) IsDraft() bool { return h.State == "draft" }

// IsActive reports whether the version is active.
func (h head) IsActive() bool { return h.State == "active" }

// IsShadow reports whether the rule is evaluated without effect on decisions.
func (r rule) IsShadow() bool { return r.Mode == "shadow" }

// AnyTool reports whether the rule applies to every tool.
func (r rule) AnyTool() bool { return r.Tool == "**" }

// Matches reports whether the rule matches if its condition cannot be evaluated.
func (r rule) Matches() bool { return r.OnError == "match" }

// Within returns the time in which approvers must agree.
func (o obligation) Within() string { return durationWords(int64(o.TTLSeconds)) }

// Reminds returns the time after which approvers are reminded, or "".
func (o obligation) Reminds() string {
	if o.RemindAfterSeconds == 0 {
		return ""
	}
	return durationWords(int64(o.RemindAfterSeconds))
}

// Escalates returns the time after which another role is notified, or "".
func (o obligation) Escalates() string {
	if o.EscalateAfterSeconds == 0 {
		return ""
	}
	return durationWords(int64(o.EscalateAfterSeconds))
}

// Within returns the window of the limit.
func (l ruleLimit) Within() string { return durationWords(l.WindowSeconds) }

// MaxText returns the bound without quotes.
func (l ruleLimit) MaxText() string { return strings.Trim(string(l.Max), `"`) }

// durationWords returns a number of seconds in the largest unit that divides it.
func durationWords(seconds int64) string {
	for _, unit := range []struct {
		seconds int64
		name    string
	}{{86400, "day"}, {3600, "hour"}, {60, "minute"}} {
		if seconds >= unit.seconds && seconds%unit.seconds == 0 {
			return textcheck.Count(int(seconds/unit.seconds), unit.name)
		}
	}
	return textcheck.Count(int(seconds), "second")
}

// refuseConflict returns the refusal of a form whose object has changed in the meantime.
func refuseConflict(message string) error {
	return fault.New(fault.Conflict, message)
}

// parseNumber parses a positive integer in a field.
func parseNumber(name, text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 53)
	if err != nil || n == 0 {
		return 0, fault.New(fault.Invalid, name+" must be a whole number from 1")
	}
	return n, nil
}
