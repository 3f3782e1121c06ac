package gateway

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

func (g *Gateway) hidesTools() bool { return g.HideDenied || len(g.Hide) > 0 }

// page is one page of a server's list.
type page struct {
	members map[string]jsontext.Value // of the result
	entries []jsontext.Value
}

// takePage reads a page. It notes the definitions of tools, and takes the hidden ones out.
func (s *session) takePage(l *link, method string, result jsontext.Value) (p page, err error) {
	member := listMembers[method][0]
	if json.Unmarshal(result, &p.members) != nil || json.Unmarshal(p.members[member], &p.entries) != nil {
		return page{}, fmt.Errorf("the list of %s can't be read", l.name)
	}
	if method != "tools/list" {
		return p, nil
	}
	s.noteDefinitions(l, p.entries)
	if !s.gate.hidesTools() {
		return p, nil
	}
	hidden := make([]bool, len(p.entries))
	var asking errgroup.Group
	asking.SetLimit(maxAsked)
	for i, tool := range p.entries {
		asking.Go(func() error {
			hidden[i] = s.hidesTool(l, tool)
			return nil
		})
	}
	_ = asking.Wait() // no function returns an error
	shown := make([]jsontext.Value, 0, len(hidden))
	for i, tool := range p.entries {
		if !hidden[i] {
			shown = append(shown, tool)
		}
	}
	p.entries = shown
	return p, nil
}

// takeTools takes the list of tools of the only server. A list that can't be read shows no tool.
func (s *session) takeTools(answer message.Message) message.Message {
	if answer.Error != nil {
		return answer
	}
	p, err := s.takePage(s.links[0], "tools/list", answer.Result)
	if err != nil {
		return answer.Refuse(message.CodeInternal, err.Error())
	}
	if !s.gate.hidesTools() {
		return answer
	}
	return p.answer(answer, "tools/list")
}

// answer returns the page as the response to a list.
func (p page) answer(m message.Message, method string) message.Message {
	text, err := json.Marshal(p.entries)
	if err != nil {
		return m.Refuse(message.CodeInternal, "internal error")
	}
	p.members[listMembers[method][0]] = text
	return answerWith(m, p.members)
}

// takeListed takes a page of one of several servers. Its entries get the names that clients use, and the page the cursor
// of the next one.
func (s *session) takeListed(method string, links []*link, index int, answer message.Message) message.Message {
	if answer.Error != nil {
		return answer
	}
	l := links[index]
	p, err := s.takePage(l, method, answer.Result)
	for i := 0; i < len(p.entries) && err == nil; i++ {
		p.entries[i], err = s.takeEntry(l, method, p.entries[i])
	}
	if err != nil {
		return answer.Refuse(message.CodeInternal, err.Error())
	}
	var next string
	if text := p.members["nextCursor"]; text != nil && json.Unmarshal(text, &next) == nil && next != "" {
		next = strconv.Itoa(index) + "/" + next
	} else if next = ""; index+1 < len(links) {
		next = strconv.Itoa(index+1) + "/"
	}
	delete(p.members, "nextCursor")
	if next != "" {
		p.members["nextCursor"], _ = jsontext.AppendQuote(nil, next) // it was read as UTF-8
	}
	return p.answer(answer, method)
}

// takeEntry notes a resource or a template, and gives a tool or a prompt the name that clients use.
func (s *session) takeEntry(l *link, method string, entry jsontext.Value) (jsontext.Value, error) {
	var members map[string]jsontext.Value
	if json.Unmarshal(entry, &members) != nil {
		return nil, fmt.Errorf("the list of %s can't be read", l.name)
	}
	if strings.HasPrefix(method, "resources/") {
		if err := s.owners.addListed(l, members); err != nil {
			s.gate.OnError(err)
		}
		return entry, nil
	}
	var name string
	if json.Unmarshal(members["name"], &name) != nil {
		return nil, fmt.Errorf("the list of %s can't be read", l.name)
	}
	members["name"], _ = jsontext.AppendQuote(nil, l.name+separator+name) // the name was read as UTF-8
	return message.EncodeMembers(members)
}

// maxAsked is the number of policy evaluations at once for one list.
const maxAsked = 8

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
		Organization: who.Organization, Agent: who.Agent, Tool: name, OnBehalfOf: s.gate.OnBehalfOf,
	})
	if err != nil {
		s.gate.OnError(fmt.Errorf("list tools: %w", err))
		return false
	}
	return d.Decision == id.Deny
}
