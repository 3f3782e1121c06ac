package gateway

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// linkOfTool returns the server of a name, and the name that the server knows.
func (s *session) linkOfTool(name string) (*link, string) {
	if len(s.links) == 1 {
		return s.links[0], name
	}
	server, own, ok := strings.Cut(name, separator)
	for _, l := range s.links {
		if ok && l.name == server {
			return l, own
		}
	}
	return nil, ""
}

// passRequest passes a request that is no tool call.
func (s *session) passRequest(m message.Message) {
	switch {
	case m.Method == "initialize":
		s.initialize(m)
	case len(s.links) > 1:
		s.shareRequest(m)
	case m.Method == "tools/list" && (s.gate.hidesTools() || s.gate.Pins != nil):
		s.request(s.links[0], m, func(answer message.Message) {
			s.fetching.Go(func() { s.answer(s.takeTools(answer)) })
		})
	default:
		s.request(s.links[0], m, s.taskTaker(s.links[0], m))
	}
}

// request sends a request to a server. take gets the response, also when the server ends.
func (s *session) request(l *link, m message.Message, take func(message.Message)) {
	if !s.tryRequest(l, m, take) {
		s.answer(m.Refuse(message.CodeBusy, "too many requests at once, or the id is in use"))
	}
}

// tryRequest is request, and reports false if the id is in use, or if too many requests are open.
func (s *session) tryRequest(l *link, m message.Message, take func(message.Message)) bool {
	if !s.await(l, m, take) {
		return false
	}
	select {
	case <-l.gone:
		s.takeResponse(l, refuseLocally(m, "the MCP server "+l.name+" has ended"))
	default:
		s.send(l, m)
	}
	return true
}

// passNotification passes a notification. A cancellation goes where its request went.
func (s *session) passNotification(m message.Message) {
	if m.Method == "notifications/progress" {
		s.passProgress(m)
		return
	}
	if m.Method != "notifications/cancelled" {
		for _, l := range s.links {
			s.send(l, m)
		}
		return
	}
	requestID := cancelledID(m)
	s.mu.Lock()
	c := s.calls[string(requestID)]
	delete(s.subscriptions, string(requestID))
	var told []*link
	for _, l := range s.links {
		key := exchange{l.index, string(requestID)}
		if _, open := s.pending[key]; open && c == nil {
			delete(s.pending, key)
			told = append(told, l)
		}
	}
	s.mu.Unlock()
	if c != nil {
		c.drop()
	}
	for _, l := range told {
		s.send(l, m)
	}
}

// cancelledID returns the id of the request that a cancellation names, or nil.
func cancelledID(m message.Message) jsontext.Value {
	var cancelled struct {
		RequestID jsontext.Value `json:"requestId"`
	}
	_ = json.Unmarshal(m.Params, &cancelled) // params that can't be read name no request
	return cancelled.RequestID
}

// renameAsked gives a server's request an id that says whose it is, because the ids of several servers can
// be the same.
func (s *session) renameAsked(l *link, m message.Message) message.Message {
	if len(s.links) == 1 {
		return m
	}
	if m.ID != nil {
		m.ID = askedID(l, m.ID)
	}
	if m.Method == "notifications/cancelled" {
		params, err := readParams(m.Params)
		if err == nil {
			params["requestId"] = askedID(l, params["requestId"])
			m.Params, err = message.EncodeMembers(params)
		}
		if err != nil {
			s.gate.OnError(fmt.Errorf("cancellation of %s: %w", l.name, err))
		}
	}
	return m
}

func askedID(l *link, own jsontext.Value) jsontext.Value {
	text, err := jsontext.AppendQuote(nil, strconv.Itoa(l.index)+"/"+string(own))
	if err != nil {
		return own
	}
	return text
}

// passResponse passes the client's response to the server that asked. A response to no request reaches nobody.
func (s *session) passResponse(m message.Message) {
	index := 0
	if len(s.links) > 1 {
		var name string
		_ = json.Unmarshal(m.ID, &name) // another id is that of no request
		number, own, _ := strings.Cut(name, "/")
		var err error
		if index, err = strconv.Atoi(number); err != nil || index < 0 || index >= len(s.links) {
			index = 0
		}
		m.ID = jsontext.Value(own)
	}
	s.mu.Lock()
	key := exchange{index, string(m.ID)}
	_, asked := s.asked[key]
	delete(s.asked, key)
	s.mu.Unlock()
	if !asked {
		s.refuse(clientResponse, m, "", "a response to no request")
		return
	}
	s.send(s.links[index], m)
}
