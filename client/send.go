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
	Replayed = "replayed" // was stored before; as durable as Created
)

// Result is the service's answer for an event that it accepted. Only a created event has
// the members after Status.
type Result struct {
	EventID    id.Event    `json:"event_id"`
	Status     string      `json:"status"` // Created or Replayed
	Sequence   uint64      `json:"sequence_num,omitzero"`
	EventHash  id.Hash     `json:"event_hash,omitzero"`
	ChainValid *bool       `json:"chain_valid,omitzero"`
	Decision   id.Decision `json:"policy_decision,omitzero"` // effective, when the server tightened the declared one
	PolicyID   string      `json:"policy_id,omitzero"`
	RuleID     string      `json:"rule_id,omitzero"`
}

// Tightened reports whether the service's policy was stricter than the event's declared
// decision.
func (r Result) Tightened() bool { return r.Decision != 0 }

// Send stores a signed envelope and returns when it is durable and in the public log. It
// tries again after lost connections, time-outs, 408 and 502 to 504. After a lost answer
// the result is therefore Replayed. After any error for which IsRefused is false the
// event may be stored: send the same bytes again. A malformed envelope is a *fault.Error,
// and nothing is sent.
func (c *Client) Send(ctx context.Context, envelope []byte) (Result, error) {
	e, err := event.Parse(envelope, event.Options{MaxBytes: math.MaxInt})
	if err != nil {
		return Result{}, fmt.Errorf("send event: %w", err)
	}
	body, err := c.sendWithRetries(ctx, call{
		method: http.MethodPost, path: "/v1/ingest/events", body: envelope, ingest: true, once: string(e.EventID),
	})
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

// checkSendResult returns r if it is a valid answer for that event.
func (r Result) checkSendResult(sent id.Event) (Result, error) {
	var err error
	switch {
	case r.EventID != sent:
		err = errors.New("names another event")
	case r.Status != Created && r.Status != Replayed:
		err = errors.New("neither created nor replayed")
	case r.Status == Created && (r.Sequence == 0 || r.ChainValid == nil):
		err = errors.New("created without sequence_num or chain_valid")
	}
	if err != nil {
		return Result{}, malformedAnswer(err)
	}
	return r, nil
}
