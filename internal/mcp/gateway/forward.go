package gateway

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

// inexactMember holds a result that has no canonical form, as text.
const inexactMember = "inexact_result"

const (
	// maxOutput is the size in bytes of the largest result that is recorded itself, in canonical form. An event has
	// at most 256 KiB.
	maxOutput = 200 << 10
	// outputDepth is how deep a result lies in its event: event, payload, output.
	outputDepth = 3
)

var errToolFailed = errors.New("the tool reported an error")

// forward sends the call to its server and waits for the response. The guard calls it once. Its error is
// guard.ErrInterrupted when it can't be known how far the server came.
func (c *call) forward(context.Context, guard.Permit) (any, error) {
	c.mu.Lock()
	c.entered = true
	if c.dropped {
		c.mu.Unlock()
		return nil, errCancelled
	}
	c.started = true
	c.mu.Unlock()
	responses := make(chan message.Message, 1)
	s := c.session
	if !s.await(c.link, c.request, func(m message.Message) { responses <- m }) {
		return nil, errors.New("the request could not be sent")
	}
	s.send(c.link, c.request)
	select {
	case m := <-responses:
		return c.takeResult(m)
	case <-c.abandoned:
		s.forgetExchange(c.link, c.request.ID)
		if m, err := message.Notification("notifications/cancelled",
			map[string]any{"requestId": c.request.ID, "reason": "cancelled by the client"}); err == nil {
			s.send(c.link, m)
		}
	case <-s.hurry:
		s.forgetExchange(c.link, c.request.ID)
	}
	return nil, guard.ErrInterrupted
}

// takeResult keeps a response for the client, and returns the result for the ledger.
func (c *call) takeResult(m message.Message) (any, error) {
	if m.Local {
		return nil, guard.ErrInterrupted
	}
	c.response = &m
	if m.Error != nil {
		return nil, errToolFailed
	}
	if len(c.session.links) > 1 {
		c.session.owners.addResult(c.link, m.Result)
	}
	var told struct {
		IsError bool `json:"isError"`
	}
	var failed error
	if json.Unmarshal(m.Result, &told) == nil && told.IsError {
		failed = errToolFailed
	}
	return c.recordedResult(m.Result), failed
}

// recordedResult is what the ledger gets of a result: its digest, and the result itself where the rule says so.
func (c *call) recordedResult(result jsontext.Value) any {
	text, err := jcs.Canonicalize(result, jcs.MaxDepth-outputDepth)
	if err != nil { // numbers that are not exact, for example
		text = jcs.AppendString([]byte(`{"`+inexactMember+`":`), string(result))
		text = append(text, '}')
	}
	output := jsontext.Value(text)
	switch {
	case !c.rule.Output:
		return output
	case len(text) > maxOutput:
		return guard.Disclosed{Output: output, Members: map[string]any{"output_left_out": len(text)}}
	}
	return guard.Disclosed{Output: output, Members: map[string]any{"output": output}}
}

func (s *session) forgetExchange(l *link, requestID jsontext.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, exchange{l.index, string(requestID)})
}
