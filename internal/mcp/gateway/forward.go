package gateway

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client/guard"
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

// takeResult keeps the last response of a call for the client, and returns the result for the ledger.
func (c *call) takeResult(m message.Message) (any, error) {
	if m.Local {
		return nil, guard.ErrInterrupted
	}
	c.response = &m
	if m.Error != nil {
		return c.recordedResult(nil), errToolFailed
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

// recordedResult is what the ledger gets of a result: its digest, and the result itself where the rule says so. The
// round trips before it are recorded in the same way. A nil result is that of an error.
func (c *call) recordedResult(result jsontext.Value) any {
	members := map[string]any{}
	if len(c.trips) > 0 {
		members["round_trips"] = c.recordedTrips()
	}
	output := canonicalText(result)
	switch {
	case !c.rule.Output || output == nil:
	case len(output) > maxOutput:
		members["output_left_out"] = len(output)
	default:
		members["output"] = output
	}
	if len(members) == 0 && output == nil {
		return nil
	}
	return guard.Disclosed{Output: output, Members: members}
}

func (s *session) forgetExchange(l *link, requestID jsontext.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, exchange{l.index, string(requestID)})
}
