package approval

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/policy"
)

// noticeMessage returns the webhook message about a transition: approval.pending for a new question, otherwise the
// new state. ok is false for a vote that does not change the state.
func noticeMessage(name ID, r *record, transition string, columns []org.Column) (m webhook.Message, ok bool) {
	to := Status(transition)
	if transition == "requested" {
		to = Pending
	}
	if !to.Valid() {
		return webhook.Message{}, false
	}
	m = webhook.Message{
		Type: "approval." + string(to), Data: document(newNotice(name, r, to)), Agent: r.Agent, Tool: r.Tool,
		Title: noticeTitle(r, to), Path: "/console/approvals/" + string(name),
	}
	if to == Pending {
		m.Card = newCard(name, r, columns)
	}
	return m, true
}

// newCard returns the question for people. It contains the payload's members, and in its header the amount if that is the
// first of the columns that the payload has.
func newCard(name ID, r *record, columns []org.Column) *webhook.Card {
	c := &webhook.Card{Header: fmt.Sprintf("Approve %s?", webhook.SafeTool(string(r.Tool))), Agent: r.nameOfAgent(), Tool: string(r.Tool), Until: r.ExpiresAt,
		Why: cmp.Or(policy.WrittenReason(r.RuleID, r.Reason), "Rule "+r.RuleID) + " · " + textcheck.Count(r.Quorum, "approval needed", "approvals needed")}
	if r.ErasedAt != 0 {
		return c
	}
	c.Approval = string(name)
	actors := false
	if o := r.OnBehalfOf; o != nil {
		c.Subject, c.Issuer, c.Standing, actors = o.Subject, o.Issuer, r.Standing.Words(), len(o.Actors) > 0
	}
	if !r.Signed && !actors { // otherwise it needs a passkey, or more is shown on the page
		c.Ballot = FormatBallot(name, r.ActionDigest)
	}
	if shown := shownOf(r.Payload, columns); len(shown) > 0 && shown[0].Amount {
		c.Header = fmt.Sprintf("Approve %s?", shown[0].Text)
	}
	for member, value := range payloadMembers(r.Payload) {
		c.Fields = append(c.Fields, [2]string{member, value})
	}
	if r.Principal != "" {
		c.Fields = append(c.Fields, [2]string{"Principal", r.Principal + " (agent said)"})
	}
	return c
}

// FormatBallot returns a text that names an approval and the action that a voter saw.
func FormatBallot(name ID, action id.Hash) string { return string(name) + " " + action.String() }

// ParseBallot returns the approval and the action of a text by FormatBallot. It returns fault.Invalid for any other text.
func ParseBallot(text string) (name ID, action id.Hash, err error) {
	before, after, _ := strings.Cut(text, " ")
	if err := action.UnmarshalText([]byte(after)); err != nil {
		return "", action, fault.Wrap(fault.Invalid, "The value is not that of a vote", err)
	}
	return ID(before), action, nil
}

// payloadMembers yields the members of a payload with their values for people, in their order: numbers as they were sent,
// texts without quotes unless they could be taken for another type, everything else as JSON.
func payloadMembers(payload jsontext.Value) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		d := jsontext.NewDecoder(bytes.NewReader(jcs.UntagPayload(payload)))
		if _, err := d.ReadToken(); err != nil {
			return
		}
		for d.PeekKind() == '"' {
			name, err := d.ReadToken()
			if err != nil {
				return
			}
			member := name.String()
			value, err := d.ReadValue()
			if err != nil || !yield(member, valueWords(value)) {
				return
			}
		}
	}
}

func valueWords(value jsontext.Value) string {
	var text string
	if value.Kind() != '"' || json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	if text == "" || strings.TrimSpace(text) != text || jsontext.Value(text).IsValid() { // such as "12" or "null"
		return string(value)
	}
	return text
}

func noticeTitle(r *record, to Status) string {
	tool := webhook.SafeTool(string(r.Tool))
	if to != Pending {
		return fmt.Sprintf("The approval of %s for %s is %s.", tool, r.nameOfAgent(), to)
	}
	title := fmt.Sprintf("%s asks for approval of %s.", r.nameOfAgent(), tool)
	if r.Reason != "" {
		title += " Rule: " + r.Reason
	}
	return title
}

// notice is the data of the message. It has no payload, because only some members may read the payload in the
// console.
type notice struct {
	callback      `json:",inline"`
	Tool          id.Tool    `json:"tool_name"`
	PolicyID      string     `json:"policy_id"`
	PolicyVersion uint64     `json:"policy_version"`
	RuleID        string     `json:"rule_id"`
	Reason        string     `json:"reason"`
	Quorum        int        `json:"quorum"`
	CreatedAt     id.Instant `json:"created_at"`
	ExpiresAt     id.Instant `json:"expires_at"`
}

func newNotice(name ID, r *record, status Status) notice {
	return notice{callback: newCallback(name, r, status), Tool: r.Tool, PolicyID: r.PolicyID, PolicyVersion: r.PolicyVersion,
		RuleID: r.RuleID, Reason: r.Reason, Quorum: r.Quorum, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt}
}
