package acts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// hookCall is the part of a hook's input that aps uses. Other members are ignored.
type hookCall struct {
	Session  string         `json:"session_id"`
	Event    string         `json:"hook_event_name"`
	Tool     string         `json:"tool_name"`
	Input    jsontext.Value `json:"tool_input"`
	ID       string         `json:"tool_use_id"`
	Response jsontext.Value `json:"tool_response"`
	Error    jsontext.Value `json:"error"`
}

// maxHookInput is the maximum size of an input in bytes.
const maxHookInput = 64 << 20

// readSession reads the input of a hook that is about a session.
func readSession(in io.Reader) (hookCall, error) {
	var c hookCall
	text, err := io.ReadAll(io.LimitReader(in, maxHookInput+1))
	switch {
	case err != nil:
		return c, fmt.Errorf("read hook input: %w", err)
	case len(text) > maxHookInput:
		return c, fmt.Errorf("read hook input: longer than %d bytes", maxHookInput)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, errors.New("read hook input: it is not a JSON object of the expected form")
	}
	if c.Session == "" {
		return c, errors.New("read hook input: session_id is missing")
	}
	return c, nil
}

// readCall reads the input of a hook that is about a tool call.
func readCall(in io.Reader) (hookCall, error) {
	c, err := readSession(in)
	switch {
	case err != nil:
		return c, err
	case c.Tool == "":
		return c, errors.New("read hook input: tool_name is missing")
	case c.ID == "":
		return c, errors.New("read hook input: tool_use_id is missing")
	}
	return c, nil
}

// action returns the action of a call. The events of a session have one trace.
func (c *hookCall) action(prefix string) (guard.Action, error) {
	tool := prefix + c.Tool
	if !event.ValidTool(tool) {
		return guard.Action{}, errors.New("the tool's name must be segments of [A-Za-z0-9_:/-]+ with dots between them")
	}
	trace := c.Session
	if !event.ValidEvent(trace) {
		trace = "trc_" + shortHash(c.Session)
	}
	a := guard.Action{Key: c.Session + "/" + c.ID, Tool: id.Tool(tool), Trace: id.Trace(trace)}
	if len(c.Input) > 0 {
		a.Payload = c.Input
	}
	return a, nil
}

// output returns the response of the tool, of which the event contains the digest.
func (c *hookCall) output() any {
	if len(c.Response) == 0 {
		return nil
	}
	return c.Response
}

// failure returns an error if the call failed. The text of the error stays in the journal.
func (c *hookCall) failure() error {
	var response struct {
		IsError bool  `json:"is_error"`
		Success *bool `json:"success"`
	}
	_ = json.Unmarshal(c.Response, &response) // a response in another form does not indicate a failure
	failed := len(c.Error) > 0 && c.Error.Kind() != 'n' && c.Error.Kind() != 'f'
	if failed || response.IsError || response.Success != nil && !*response.Success ||
		strings.HasSuffix(c.Event, "Failure") {
		return errors.New("the tool failed")
	}
	return nil
}

// recoverSession records calls of a session without a result as unknown.
func (f *agentFlags) recoverSession(ctx context.Context, s *Streams, session string) error {
	folder, err := f.folder()
	if err != nil {
		return err
	}
	files, err := os.ReadDir(folder.journal(""))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, file := range files {
		name := file.Name()
		if !strings.HasPrefix(name, hookPrefix+shortHash(session)+"-") {
			continue
		}
		err := f.openCall(ctx, s, name, func(ctx context.Context, g *guard.Guard) error {
			if err := g.Recover(ctx); err != nil {
				return err
			}
			return folder.closeEnded(g, name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
