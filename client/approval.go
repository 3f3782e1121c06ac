package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/agentledger/agentledger/id"
)

// Approval is the state of an agent's request for approval.
type Approval struct {
	ID           string         `json:"approval_id"`
	Status       ApprovalStatus `json:"status"`
	ActionDigest id.Hash        `json:"action_digest"`
	ExpiresAt    id.Instant     `json:"expires_at"`
	Quorum       int            `json:"quorum"`
	Approvals    int            `json:"approvals"` // number of approvers who approved
	// Comment and ReasonCode are from the vote that decided, or from the revocation of the
	// approval; "" if absent. The comment is free text and may have many lines.
	Comment    string `json:"comment"`
	ReasonCode string `json:"reason_code"`
}

// Denial returns the error for an approval that was not granted, with status, reason code and
// comment.
func (a Approval) Denial(d Decision) *DeniedError {
	reason := "the approval is " + string(a.Status)
	if a.ReasonCode != "" {
		reason += " [" + a.ReasonCode + "]"
	}
	if a.Comment != "" {
		reason += ": " + a.Comment
	}
	return &DeniedError{Reason: sanitizeLine(reason), Decision: d, Approval: a}
}

// ApprovalStatus is the state of an approval.
type ApprovalStatus string

// States. All except the first two are final.
const (
	ApprovalPending     ApprovalStatus = "pending"
	ApprovalApproved    ApprovalStatus = "approved"
	ApprovalConsumed    ApprovalStatus = "consumed"
	ApprovalDenied      ApprovalStatus = "denied"
	ApprovalExpired     ApprovalStatus = "expired"
	ApprovalCancelled   ApprovalStatus = "cancelled"
	ApprovalRevoked     ApprovalStatus = "revoked"
	ApprovalInvalidated ApprovalStatus = "invalidated"
)

// ApprovalQuestion asks approvers to approve one action.
type ApprovalQuestion struct {
	Organization id.Organization `json:"organization_id"`
	Agent        id.Agent        `json:"agent_id"`
	Tool         id.Tool         `json:"tool_name"`
	Payload      any             `json:"payload,omitzero"`         // must become a JSON object; nil is {}
	Trace        id.Trace        `json:"trace_id,omitzero"`        // the same question with another trace is another question
	Principal    string          `json:"actor_principal,omitzero"` // the person or system that the agent acts for
	// URL that receives a webhook on each change; see CheckWebhook.
	Callback string `json:"callback_url,omitzero"`
}

// AskApproval requests approval, or finds the open request with the same action, key and trace, so
// it is safe to repeat. If the policy needs no approval or denies the action, the error is an
// *Error with status 422.
func (c *Client) AskApproval(ctx context.Context, q ApprovalQuestion) (Approval, error) {
	var err error
	if q.Payload, err = recordPayload(q.Payload); err != nil {
		return Approval{}, fmt.Errorf("ask approval: %w", err)
	}
	a, err := c.callApproval(ctx, http.MethodPost, approvalsPath, q)
	if err != nil {
		return Approval{}, fmt.Errorf("ask for approval: %w", err)
	}
	return a, nil
}

const approvalsPath = "/v1/ingest/approvals"

func approvalPath(name string) string { return approvalsPath + "/" + url.PathEscape(name) }

// pollSeconds is the maximum wait of one request for an approval. answerMargin is the part of its
// timeout that is reserved for the answer.
const (
	pollSeconds  = 25
	answerMargin = 5 * time.Second
)

// longestPollSeconds returns how many seconds a request may wait so that the service answers before
// the client's timeout.
func (c *Client) longestPollSeconds() int {
	return min(pollSeconds, int(max(c.timeout-answerMargin, c.timeout/2)/time.Second))
}

// GetApproval fetches the state of an approval. Errors are those of Call.
func (c *Client) GetApproval(ctx context.Context, name string) (Approval, error) {
	return c.pollApproval(ctx, name, 0)
}

// AwaitApproval waits until an approval is no longer pending or ctx ends. Errors are those of Call.
func (c *Client) AwaitApproval(ctx context.Context, name string) (Approval, error) {
	wait := c.longestPollSeconds()
	for {
		rest := 100 * time.Millisecond
		if wait == 0 {
			rest = time.Second
		}
		a, err := c.pollApproval(ctx, name, wait)
		if wait > 0 && isOverloaded(err) { // too many requests of the organization are waiting
			rest = overloadedPause
			a, err = c.pollApproval(ctx, name, 0)
		}
		if err != nil || a.Status != ApprovalPending {
			return a, err
		}
		if err := c.retry.Sleep(ctx, rest); err != nil { // avoids flooding a server that answers at once
			return a, fmt.Errorf("wait for approval: %w", err)
		}
	}
}

// overloadedPause is the pause between two requests that do not wait, while the service cannot
// accept another waiting request.
const overloadedPause = 5 * time.Second

func isOverloaded(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Status == http.StatusServiceUnavailable && refused.Code == "overloaded"
}

func (c *Client) pollApproval(ctx context.Context, name string, wait int) (Approval, error) {
	path := approvalPath(name)
	if wait > 0 {
		path += "?wait=" + strconv.Itoa(wait)
	}
	a, err := c.callApproval(ctx, http.MethodGet, path, nil)
	if err == nil && a.ID != name {
		err = malformedAnswer(errors.New("names another approval"))
	}
	if err != nil {
		return Approval{}, fmt.Errorf("get approval: %w", err)
	}
	return a, nil
}

func (c *Client) callApproval(ctx context.Context, method, path string, body any) (a Approval, err error) {
	err = c.Call(ctx, method, path, body, &a)
	if err == nil && (a.ID == "" || a.Status == "") {
		err = malformedAnswer(errors.New("no approval"))
	}
	return a, err
}

// ConsumeApproval uses a granted approval with the signer's proof and returns the grant, a signed
// note. It retries after lost answers, because the service returns the same grant while the grant
// is valid. If the approval has ended, the error is an *Error with status 409 or 410.
func (c *Client) ConsumeApproval(ctx context.Context, s *Signer, a Approval) (grant string, err error) {
	proof, err := s.consumeProof(a)
	if err != nil {
		return "", fmt.Errorf("consume approval: %w", err)
	}
	request := struct {
		ActionDigest id.Hash `json:"action_digest"`
		Proof        string  `json:"proof_b64"`
	}{a.ActionDigest, proof}
	var consumed struct {
		Grant string `json:"grant"`
	}
	err = c.Call(ctx, http.MethodPost, approvalPath(a.ID)+"/consume", request, &consumed)
	if err == nil && consumed.Grant == "" {
		err = malformedAnswer(errors.New("no grant"))
	}
	if err != nil {
		return "", fmt.Errorf("consume approval: %w", err)
	}
	return consumed.Grant, nil
}

// CancelApproval withdraws a request for approval. Errors are those of Call.
func (c *Client) CancelApproval(ctx context.Context, name string) error {
	if err := c.Call(ctx, http.MethodPost, approvalPath(name)+"/cancel", struct{}{}, nil); err != nil {
		return fmt.Errorf("cancel approval: %w", err)
	}
	return nil
}

// consumeProof returns the signer's signature of
//
//	APS1-CONSUME LF approval_id LF action_digest LF
func (s *Signer) consumeProof(a Approval) (string, error) {
	proof, err := s.key.Sign(fmt.Appendf(nil, "APS1-CONSUME\n%s\n%s\n", a.ID, a.ActionDigest))
	return base64.StdEncoding.EncodeToString(proof[:]), err
}
