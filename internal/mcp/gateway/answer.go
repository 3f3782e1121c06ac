package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

// MetaMember is the member of a result's _meta with the end of a call.
const MetaMember = "agentledger/call"

// callStatus is the value of MetaMember.
type callStatus struct {
	Status   string `json:"status"` // denied, waiting, not_decided, refused, unknown or failed
	Reason   string `json:"reason,omitzero"`
	Rule     string `json:"rule_id,omitzero"`
	Policy   string `json:"policy_id,omitzero"`
	Event    string `json:"event_id,omitzero"`
	Approval string `json:"approval_id,omitzero"`
}

// RefuseCall answers a tool call whose arguments can't be recorded, in a form that a model reads and can act on.
func RefuseCall(request jsontext.Value, why error) message.Message {
	return failedResult(message.Message{ID: request}, "Not done: "+why.Error()+". Change the arguments to call again.",
		&callStatus{Status: "refused"})
}

// failedResult is a result with isError true.
func failedResult(request message.Message, text string, status *callStatus) message.Message {
	result := map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}, "isError": true}
	if status != nil {
		result["_meta"] = map[string]any{MetaMember: status}
	}
	m, err := request.Answer(result)
	if err != nil {
		return request.Refuse(message.CodeInternal, "internal error")
	}
	return m
}

func (c *call) wasEntered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stage >= permitted
}

// answerFailure tells the end of a call that no server has answered, and the caller's next step.
func (c *call) answerFailure(ctx context.Context, err error) message.Message {
	if denied, ok := errors.AsType[*client.DeniedError](err); ok {
		return c.answerDenied(denied)
	}
	c.mu.Lock()
	approval := c.approval
	c.mu.Unlock()
	if failed, ok := errors.AsType[*guard.FailedError](err); ok {
		return failedResult(c.leg.request, "The call was made before and failed: "+failed.Failure,
			&callStatus{Status: "failed", Approval: approval})
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, guard.ErrInterrupted):
		return failedResult(c.leg.request, "The call was sent to the server, and how it ended is not known. "+
			"Find out before you call again, because another call can do it twice.",
			&callStatus{Status: "unknown", Approval: approval})
	case errors.Is(err, errNotSent) && len(c.trips) == 0:
		return failedResult(c.leg.request, "Not done: "+err.Error()+". A retry does not help before that is changed.",
			&callStatus{Status: "failed", Approval: approval})
	case errors.Is(err, guard.ErrQueueFull):
		return failedResult(c.leg.request, "Not done: too many results wait to be recorded. Call again later.",
			&callStatus{Status: "not_decided"})
	case errors.Is(cause, ErrManyQuestions):
		return failedResult(c.leg.request, "Not done: too many calls wait for people. Call again later.",
			&callStatus{Status: "not_decided"})
	case approval != "" && c.alone && (errors.Is(cause, errWaitOver) || errors.Is(cause, errEnded)):
		c.session.gate.withdraw(approval)
		return failedResult(c.leg.request, fmt.Sprintf("Not done: nobody has decided on %s, the approval by people, in time. It is withdrawn, "+
			"because the gateway can't tell its callers apart (callers). Call again to ask again.", approval),
			&callStatus{Status: "not_decided", Approval: approval})
	case approval != "" && (errors.Is(cause, errWaitOver) || errors.Is(cause, errEnded)):
		return failedResult(c.leg.request, fmt.Sprintf("Not done: this call waits for %s, the approval by people. "+
			"Call again with the same arguments to go on waiting.", approval),
			&callStatus{Status: "waiting", Approval: approval})
	case c.wasEntered():
		return failedResult(c.leg.request, "The call was made, and its result could not be recorded: "+err.Error()+
			" Do not call again.", &callStatus{Status: "unknown", Approval: approval})
	}
	if undecided, ok := errors.AsType[*guard.NotDecidedError](err); ok {
		err = undecided.Err
	}
	if errors.Is(cause, errNoAnswer) {
		err = cause
	}
	return failedResult(c.leg.request, "Not done, because there is no decision: "+err.Error()+". "+guard.Advise(err),
		&callStatus{Status: "not_decided", Approval: approval})
}

func (c *call) answerDenied(denied *client.DeniedError) message.Message {
	status := &callStatus{Status: "denied", Reason: denied.Reason, Rule: denied.Decision.RuleID,
		Policy: denied.Decision.PolicyID, Event: string(denied.Event), Approval: denied.Approval.ID}
	text := "Denied: " + denied.Reason
	if status.Rule != "" {
		text += fmt.Sprintf(" (rule %s of policy %s)", status.Rule, status.Policy)
	}
	if status.Event != "" {
		text += ", event " + status.Event
	}
	return failedResult(c.leg.request, text, status)
}

// answerRepeated answers with the result of an equal call that had the same approval.
func (c *call) answerRepeated(result jsontext.Value) message.Message {
	var kept map[string]jsontext.Value
	var text string
	if json.Unmarshal(result, &kept) == nil && json.Unmarshal(kept[inexactMember], &text) == nil {
		result = jsontext.Value(text)
	}
	return message.Message{ID: c.leg.request.ID, Result: result}
}
