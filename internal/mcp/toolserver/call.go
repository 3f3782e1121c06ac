package toolserver

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// beginCall begins a call of a tool, or refuses it. The error is that of the connection.
func (c *session) beginCall(ctx context.Context, r request) error {
	at := slices.IndexFunc(c.Tools, func(t Tool) bool { return t.Name == r.params.Name })
	if at < 0 {
		return c.conn.Write(r.Refuse(message.CodeInvalidParams, "unknown tool"))
	}
	ctx, cancel := context.WithCancel(ctx)
	if code, reason := c.enter(string(r.ID), cancel); reason != "" {
		cancel()
		return c.conn.Write(r.Refuse(code, reason))
	}
	c.calls.Go(func() {
		defer cancel()
		defer c.leave(string(r.ID))
		result := c.Tools[at].run(ctx, r)
		if ctx.Err() == nil {
			_ = c.answer(r, result) // a client that has gone is noticed by Read
		}
	})
	return nil
}

// enter takes a place for a call, or returns the reason against it.
func (c *session) enter(id string, cancel context.CancelFunc) (code int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.running[id] != nil:
		return message.CodeInvalidRequest, "a call with this id is under way"
	case len(c.running) >= MaxCalls:
		return message.CodeBusy, "too many calls are under way"
	}
	c.running[id] = cancel
	return 0, ""
}

func (c *session) leave(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, id)
}

// cancel ends the call that a notification names, if it is under way.
func (c *session) cancel(m message.Message) {
	var named struct {
		ID jsontext.Value `json:"requestId"`
	}
	if err := json.Unmarshal(m.Params, &named); err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.running[string(named.ID)]; cancel != nil {
		cancel()
	}
}

// run calls the tool and returns the result.
func (t *Tool) run(ctx context.Context, r request) object {
	arguments, err := t.readArguments(r)
	var text string
	if err == nil {
		text, err = t.Call(ctx, arguments)
	}
	if err != nil {
		text = err.Error()
	}
	result := object{"content": []object{{"type": "text", "text": text}}}
	if err != nil {
		result["isError"] = true
	}
	return result
}

// readArguments returns the arguments of a call. The error names no value.
func (t *Tool) readArguments(r request) (map[string]string, error) {
	arguments := make(map[string]string)
	if len(r.params.Arguments) > 0 {
		if err := json.Unmarshal(r.params.Arguments, &arguments); err != nil {
			return nil, fmt.Errorf("arguments: must be an object of texts")
		}
	}
	for name := range arguments {
		if !slices.ContainsFunc(t.Arguments, func(a Argument) bool { return a.Name == name }) {
			return nil, fmt.Errorf("arguments: the tool has no argument %.64q", name)
		}
	}
	for _, a := range t.Arguments {
		if _, given := arguments[a.Name]; a.Required && !given {
			return nil, fmt.Errorf("arguments: %s is missing", a.Name)
		}
	}
	return arguments, nil
}
