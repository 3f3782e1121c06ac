package gateway

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

func (g *Gateway) hidesTools() bool { return g.HideDenied || len(g.Hide) > 0 }

// takeTools notes the definitions in a server's list of tools, and takes the hidden tools out. A list that can't be read
// shows no tool.
func (s *session) takeTools(l *link, answer message.Message) message.Message {
	if answer.Error != nil {
		return answer
	}
	var result map[string]jsontext.Value
	var tools []jsontext.Value
	err := json.Unmarshal(answer.Result, &result)
	if err == nil {
		err = json.Unmarshal(result["tools"], &tools)
	}
	if err != nil {
		return answer.Refuse(message.CodeInternal, "the list of tools of "+l.name+" can't be read")
	}
	s.noteDefinitions(l, tools)
	if !s.gate.hidesTools() {
		return answer
	}
	hidden := make([]bool, len(tools))
	var asking errgroup.Group
	asking.SetLimit(maxAsked)
	for i, tool := range tools {
		asking.Go(func() error {
			hidden[i] = s.hidesTool(l, tool)
			return nil
		})
	}
	_ = asking.Wait() // no function returns an error
	shown := make([]jsontext.Value, 0, len(tools))
	for i, tool := range tools {
		if !hidden[i] {
			shown = append(shown, tool)
		}
	}
	changed, err := answer.Answer(withMember(result, "tools", shown))
	if err != nil {
		return answer.Refuse(message.CodeInternal, "internal error")
	}
	return changed
}

// maxAsked is the number of policy evaluations at once for one list.
const maxAsked = 8

func withMember(members map[string]jsontext.Value, name string, value any) map[string]any {
	changed := map[string]any{}
	for member, v := range members {
		changed[member] = v
	}
	changed[name] = value
	return changed
}

// hidesTool reports whether a list leaves a tool out. A tool is shown when the policy can't be asked, because
// its calls are judged all the same.
func (s *session) hidesTool(l *link, tool jsontext.Value) bool {
	var named struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(tool, &named); err != nil {
		return true
	}
	name, err := ToolName(l.name, named.Name)
	if err != nil || matchesAny(s.gate.Hide, name) {
		return true
	}
	if !s.gate.HideDenied {
		return false
	}
	who := s.gate.Signer.Identity()
	d, err := s.gate.Client.Evaluate(s.ctx, client.Question{
		Organization: who.Organization, Agent: who.Agent, Tool: name,
	})
	if err != nil {
		s.gate.OnError(fmt.Errorf("list tools: %w", err))
		return false
	}
	return d.Decision == id.Deny
}
