package approval

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/jcs"
)

// noticeOf tells the organization's endpoints of a change of state: approval.pending of a new
// question, and else the new state. A vote that changes no state is not told.
func noticeOf(name ID, r *record, transition string) (m webhook.Message, told bool) {
	to := Status(transition)
	if transition == "requested" {
		to = Pending
	}
	if !to.Valid() {
		return webhook.Message{}, false
	}
	m = webhook.Message{
		Type: "approval." + string(to), Data: noticeBody(name, r, to), Agent: r.Agent, Tool: r.Tool,
		Title: noticeTitle(r, to), Path: "/console/approvals/" + string(name),
	}
	if to == Pending && r.ErasedAt == 0 {
		m.Detail = string(r.Payload)
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

// noticeBody is the data of a notice. It has no payload, because that is for the people who may
// read it in the console.
func noticeBody(name ID, r *record, status Status) jsontext.Value {
	b := callbackBody(name, r, status)
	b = jcs.AppendString(append(b[:len(b)-1], `,"tool_name":`...), string(r.Tool))
	b = jcs.AppendString(append(b, `,"policy_id":`...), r.PolicyID)
	b = strconv.AppendUint(append(b, `,"policy_version":`...), r.PolicyVersion, 10)
	b = jcs.AppendString(append(b, `,"rule_id":`...), r.RuleID)
	b = jcs.AppendString(append(b, `,"reason":`...), r.Reason)
	b = strconv.AppendInt(append(b, `,"quorum":`...), int64(r.Quorum), 10)
	b = jcs.AppendString(append(b, `,"created_at":`...), r.CreatedAt.String())
	b = jcs.AppendString(append(b, `,"expires_at":`...), r.ExpiresAt.String())
	return append(b, '}')
}
