package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// Outcomes of sending an event.
const (
	Created  = "created"  // stored by this request
	Replayed = "replayed" // was already stored; as durable as Created
)

// Result is the service's answer for an event that it accepted. Only a created event has Sequence,
// EventHash, ChainValid and Reason. Decision, PolicyID and RuleID are set for a created event whose
// declared decision the server tightened, and for a replayed event that is an intent
// (payload.phase) or was sent by SendIntent.
type Result struct {
	EventID    id.Event    `json:"event_id"`
	Status     string      `json:"status"` // Created or Replayed
	Sequence   uint64      `json:"sequence_num,omitzero"`
	EventHash  id.Hash     `json:"event_hash,omitzero"`
	ChainValid *bool       `json:"chain_valid,omitzero"`
	Decision   id.Decision `json:"policy_decision,omitzero"` // effective
	PolicyID   string      `json:"policy_id,omitzero"`
	RuleID     string      `json:"rule_id,omitzero"`
	Reason     string      `json:"reason,omitzero"`   // of the rule, for humans; may be ""
	Approval   *Approval   `json:"approval,omitzero"` // of the event; may be nil
}

// Tightened reports whether the service's policy was stricter than the declared decision of a
// created event.
func (r Result) Tightened() bool { return r.Status == Created && r.Decision != 0 }

// Send stores a signed envelope and returns once it is durable and in the public log. It retries
// after lost connections, timeouts, 408, 429 and 502 to 504, so after a lost answer the result is
// Replayed. After any error for which IsRefused is false, the event may be stored: send the same
// bytes again. If the envelope is malformed, the error is a *fault.Error and nothing is sent.
//
// Events of concurrent calls that wait for a request share the next one. Those of one trace are
// stored in the order of the calls, except for those that the service could not accept at first.
func (c *Client) Send(ctx context.Context, envelope []byte) (Result, error) {
	e, err := event.Parse(envelope, event.Options{MaxBytes: math.MaxInt})
	if err != nil {
		return Result{}, fmt.Errorf("send event: %w", err)
	}
	for try := 1; ; try++ {
		r, err := c.sendOnce(ctx, e)
		if err == nil {
			return r, nil
		}
		if err := c.retry.waitForNext(ctx, try, err, isRetryableEvent); err != nil {
			return Result{}, fmt.Errorf("send event: %w", err)
		}
	}
}

// sendOnce sends an event, together with others if the client sends no subject tokens.
func (c *Client) sendOnce(ctx context.Context, e *event.Envelope) (Result, error) {
	if c.subject == nil {
		return c.gatherer.send(ctx, e)
	}
	answer, err := c.sendRequestOnce(ctx, sendCall(e, ""))
	if err != nil {
		return Result{}, err
	}
	return parseSendResult(answer.body, e.EventID)
}

// sendGathered sends events in one request, once, and returns the outcome of each.
func (c *Client) sendGathered(ctx context.Context, events []*event.Envelope) ([]Outcome, error) {
	if len(events) > 1 {
		return c.sendBatchOnce(ctx, events)
	}
	answer, err := c.sendRequestOnce(ctx, sendCall(events[0], ""))
	if err != nil {
		return nil, err
	}
	r, err := parseSendResult(answer.body, events[0].EventID)
	return []Outcome{{Result: r, Err: err}}, nil
}

// Headers with the value 1 that state the purpose of a request with an event.
const (
	headerRequestApproval = "X-Request-Approval"
	headerReplayOnly      = "X-Replay-Only"
)

// sendCall returns the call that sends one event. asks is a header to send with the value 1, or "".
func sendCall(e *event.Envelope, asks string) call {
	return call{method: http.MethodPost, path: "/v1/ingest/events", body: e.Canonical, ingest: true,
		once: string(e.EventID), asks: asks, proves: asks != headerReplayOnly}
}

// sendAsking sends an envelope in a request of its own with a header that has the value 1.
func (c *Client) sendAsking(ctx context.Context, envelope []byte, asks string) (Result, error) {
	e, err := event.Parse(envelope, event.Options{MaxBytes: math.MaxInt})
	if err != nil {
		return Result{}, fmt.Errorf("send event: %w", err)
	}
	body, err := c.sendWithRetries(ctx, sendCall(e, asks))
	if err != nil {
		return Result{}, fmt.Errorf("send event: %w", err)
	}
	r, err := parseSendResult(body, e.EventID)
	if err != nil {
		return Result{}, fmt.Errorf("send event: %w", err)
	}
	return r, nil
}

func parseSendResult(body []byte, sent id.Event) (r Result, err error) {
	if err := decodeAnswer(body, &r); err != nil {
		return Result{}, err
	}
	return r.checkSendResult(sent)
}

// checkSendResult returns r if it is a valid answer for the sent event.
func (r Result) checkSendResult(sent id.Event) (Result, error) {
	var err error
	switch {
	case r.EventID != sent:
		err = errors.New("names another event")
	case r.Status != Created && r.Status != Replayed:
		err = errors.New("neither created nor replayed")
	case r.Status == Created && (r.Sequence == 0 || r.ChainValid == nil):
		err = errors.New("created without sequence_num or chain_valid")
	case r.Approval != nil && (r.Approval.ID == "" || r.Approval.Status == ""):
		err = errors.New("no approval")
	case r.Approval != nil && r.Decision != id.AllowWithObligation:
		err = errors.New("an approval that the decision does not require")
	}
	if err != nil {
		return Result{}, malformedAnswer(err)
	}
	r.Reason = sanitizeLine(r.Reason)
	return r, nil
}
