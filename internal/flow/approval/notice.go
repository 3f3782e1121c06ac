package approval

import (
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/jcs"
)

// noticeMessage returns the webhook message about a transition: approval.pending for a new question, otherwise the
// new state. ok is false for a vote that does not change the state.
func noticeMessage(name ID, r *record, transition string) (m webhook.Message, ok bool) {
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
	if to == Pending && r.ErasedAt == 0 {
		m.Detail = string(jcs.UntagPayload(r.Payload)) // for people
	}
	return m, true
}

func noticeTitle(r *record, to Status) string {
	if to != Pending {
		return fmt.Sprintf("The approval of %s for %s is %s.", r.Tool, r.Agent, to)
	}
	title := fmt.Sprintf("%s asks for approval of %s.", r.Agent, r.Tool)
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
