package gateway

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// maxTaskTokens bounds the tasks of a session whose progress is passed.
const maxTaskTokens = 1024

// namesTask reports whether a result is the handle of a task, whose progress goes on after the result.
func namesTask(result jsontext.Value) bool {
	var named struct {
		Type string         `json:"resultType"`
		Task jsontext.Value `json:"task"`
	}
	return json.Unmarshal(result, &named) == nil && (named.Type == "task" || named.Task != nil)
}

// mayReport reports whether a server has a request or a task with the token of its progress.
func (s *session) mayReport(l *link, m message.Message) bool {
	token := string(m.ProgressToken())
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.tokens[exchange{l.index, token}]; ok {
		return true
	}
	for key, open := range s.pending {
		if key.server == l.index && open.token == token && token != "" {
			return true
		}
	}
	return false
}

// passProgress passes the client's progress to the server whose request has its token.
func (s *session) passProgress(m message.Message) {
	token := string(m.ProgressToken())
	var receiver *link
	s.mu.Lock()
	for key, asked := range s.asked {
		if asked == token && token != "" {
			receiver = s.links[key.server]
		}
	}
	s.mu.Unlock()
	if receiver == nil {
		s.refuse(clientNotification, m, "", "no server has a request with this progress token")
		return
	}
	s.send(receiver, m)
}
