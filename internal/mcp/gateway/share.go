package gateway

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// listMembers are the lists that the gateway makes one of, with the member of the result and the capability
// of servers that have it.
var listMembers = map[string][2]string{
	"tools/list":               {"tools", "tools"},
	"prompts/list":             {"prompts", "prompts"},
	"resources/list":           {"resources", "resources"},
	"resources/templates/list": {"resourceTemplates", "resources"},
}

// shareRequest passes a request to the servers that it is for, of several.
func (s *session) shareRequest(m message.Message) {
	_, isList := listMembers[m.Method]
	switch {
	case m.Method == "server/discover":
		s.askAll(m, s.links, s.mergeDiscover)
	case m.Method == "ping":
		s.answer(message.Message{ID: m.ID, Result: jsontext.Value("{}")})
	case m.Method == "logging/setLevel":
		s.askAll(m, s.linksWith("logging"), firstSuccess)
	case isList:
		s.afterDiscovery(m, func() { s.listPage(m) })
	case m.Method == "subscriptions/listen":
		s.subscribe(m)
	case m.Method == "tasks/list":
		s.answer(m.Refuse(message.CodeMethodNotFound, "not with several servers"))
	default:
		s.askOwner(m)
	}
}

func (s *session) linksWith(capability string) (with []*link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		if _, ok := l.capabilities[capability]; ok {
			with = append(with, l)
		}
	}
	return with
}

// askAll sends a request to servers, and answers with their merged responses.
func (s *session) askAll(m message.Message, links []*link, merge func([]message.Message) message.Message) {
	if len(links) == 0 {
		s.answer(m.Refuse(message.CodeMethodNotFound, "no server has this method"))
		return
	}
	s.askEach(links, slices.Repeat([]message.Message{m}, len(links)), nil, merge)
}

// askEach sends a request to each server, and answers the client with their merged responses. each, unless it is nil, gets
// every response.
func (s *session) askEach(
	links []*link, requests []message.Message, each func(*link, message.Message), merge func([]message.Message) message.Message,
) {
	var mu sync.Mutex
	answers := make([]message.Message, len(links))
	open := len(links)
	for i, l := range links {
		s.request(l, requests[i], func(answer message.Message) {
			if each != nil {
				each(l, answer)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[i] = answer
			if open--; open == 0 {
				s.answer(merge(answers))
			}
		})
	}
}

func firstSuccess(answers []message.Message) message.Message {
	for _, a := range answers {
		if a.Error == nil {
			return a
		}
	}
	return answers[0]
}

// listPage answers with one page of one server. The cursor names the server, so that the pages of all servers
// follow each other.
func (s *session) listPage(m message.Message) {
	links := s.linksWith(listMembers[m.Method][1])
	params := map[string]jsontext.Value{}
	var cursor string
	if len(m.Params) > 0 {
		if json.Unmarshal(m.Params, &params) != nil {
			s.answer(m.Refuse(message.CodeInvalidParams, "params: must be an object"))
			return
		}
	}
	number, own, _ := strings.Cut("0/", "/")
	if text := params["cursor"]; text != nil {
		if json.Unmarshal(text, &cursor) != nil {
			s.answer(m.Refuse(message.CodeInvalidParams, "params: cursor must be a string"))
			return
		}
		number, own, _ = strings.Cut(cursor, "/")
	}
	index, err := strconv.Atoi(number)
	if err != nil || index < 0 || index >= max(len(links), 1) {
		s.answer(m.Refuse(message.CodeInvalidParams, "params: unknown cursor"))
		return
	}
	if len(links) == 0 {
		s.answer(m.Refuse(message.CodeMethodNotFound, "no server has this list"))
		return
	}
	delete(params, "cursor")
	if own != "" {
		m.Params, err = replaceMember(params, "cursor", own)
	} else {
		m.Params, err = message.EncodeMembers(params)
	}
	if err != nil {
		s.answer(m.Refuse(message.CodeInvalidParams, err.Error()))
		return
	}
	s.request(links[index], m, func(answer message.Message) {
		s.fetching.Go(func() { s.answer(s.takeListed(m.Method, links, index, answer)) })
	})
}
