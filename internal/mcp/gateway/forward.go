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
	if !s.await(c.link, c.request.ID, func(m message.Message) { responses <- m }) {
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
	var told struct {
		IsError bool `json:"isError"`
	}
	if json.Unmarshal(m.Result, &told) == nil && told.IsError {
		return nil, errToolFailed
	}
	if _, err := jcs.Canonicalize(m.Result, jcs.MaxDepth); err != nil {
		return map[string]string{inexactMember: string(m.Result)}, nil // numbers that are not exact, for example
	}
	return m.Result, nil
}

func (s *session) forgetExchange(l *link, requestID jsontext.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, exchange{l.index, string(requestID)})
}
