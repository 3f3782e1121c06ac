package gateway

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// Revisions of the protocol. They sort by date.
const (
	revision2024November = "2024-11-05"
	revision2025March    = "2025-03-26"
	revision2025June     = "2025-06-18"
	revision2025November = "2025-11-25" // the last one with a handshake
	revision2026July     = message.StatelessRevision
)

// HandshakeRevisions returns the revisions that initialize can negotiate.
func HandshakeRevisions() []string {
	return []string{revision2024November, revision2025March, revision2025June, revision2025November}
}

// treatment is what the gateway does with the messages of a method.
type treatment int

const (
	refused  treatment = iota // reaches nobody; a request gets an error
	passed                    // reaches its receiver unchanged, except for a name or id with several servers
	filtered                  // the gateway checks or changes the message, its receivers or its answer
	decided                   // runs as a guarded action
)

// kind is a direction and whether a response is expected.
type kind int

const (
	clientRequest kind = iota
	clientNotification
	serverRequest
	serverNotification
	clientResponse // has no method
)

func (k kind) String() string {
	return [...]string{"request of the client", "notification of the client", "request of a server",
		"notification of a server", "response of the client"}[k]
}

// method is what the protocol defines under a name.
type method struct {
	name         string
	since, until string // first and last revision; the last one is "" if the method is still defined
	treatment
}

// methods are the methods that the protocol defines. Every other message is refused, and so is a method outside of
// its revisions. A tools/call without an id is a notification, so it is refused too.
//
// In 2026-07-28 tasks are an extension, io.modelcontextprotocol/tasks.
var methods = [...][]method{
	clientRequest: {
		{"initialize", revision2024November, revision2025November, filtered},
		{"server/discover", revision2026July, "", passed},
		{"ping", revision2024November, revision2025November, passed},
		{"tools/call", revision2024November, "", decided},
		{"tools/list", revision2024November, "", filtered},
		{"prompts/list", revision2024November, "", filtered},
		{"prompts/get", revision2024November, "", passed},
		{"resources/list", revision2024November, "", filtered},
		{"resources/templates/list", revision2024November, "", filtered},
		{"resources/read", revision2024November, "", passed},
		{"resources/subscribe", revision2024November, revision2025November, passed},
		{"resources/unsubscribe", revision2024November, revision2025November, passed},
		{"subscriptions/listen", revision2026July, "", passed},
		{"completion/complete", revision2024November, "", passed},
		{"logging/setLevel", revision2024November, revision2025November, passed},
		{"tasks/get", revision2025November, "", passed},
		{"tasks/result", revision2025November, revision2025November, passed},
		{"tasks/list", revision2025November, revision2025November, passed},
		{"tasks/cancel", revision2025November, "", passed},
		{"tasks/update", revision2026July, "", passed},
	},
	clientNotification: {
		{"notifications/cancelled", revision2024November, "", filtered},
		{"notifications/progress", revision2024November, revision2025November, filtered},
		{"notifications/initialized", revision2024November, revision2025November, passed},
		{"notifications/roots/list_changed", revision2024November, revision2025November, passed},
		{"notifications/tasks/status", revision2025November, revision2025November, passed},
	},
	serverRequest: {
		{"ping", revision2024November, revision2025November, passed},
		{"sampling/createMessage", revision2024November, revision2025November, passed},
		{"roots/list", revision2024November, revision2025November, passed},
		{"elicitation/create", revision2025June, revision2025November, passed},
		{"tasks/get", revision2025November, revision2025November, passed},
		{"tasks/result", revision2025November, revision2025November, passed},
		{"tasks/list", revision2025November, revision2025November, passed},
		{"tasks/cancel", revision2025November, revision2025November, passed},
	},
	serverNotification: {
		{"notifications/cancelled", revision2024November, "", filtered},
		{"notifications/progress", revision2024November, "", filtered},
		{"notifications/message", revision2024November, "", passed},
		{"notifications/resources/updated", revision2024November, "", filtered},
		{"notifications/resources/list_changed", revision2024November, "", passed},
		{"notifications/tools/list_changed", revision2024November, "", passed},
		{"notifications/prompts/list_changed", revision2024November, "", passed},
		{"notifications/elicitation/complete", revision2025November, revision2025November, passed},
		{"notifications/tasks/status", revision2025November, "", passed},
		{"notifications/tasks", revision2026July, "", passed},
		{"notifications/subscriptions/acknowledged", revision2026July, "", passed},
	},
}

// treatmentOf returns what happens to a message of a kind and method in a revision.
func treatmentOf(k kind, name, revision string) treatment {
	for i := range methods[k] {
		if m := &methods[k][i]; m.name == name && revision >= m.since && (m.until == "" || revision <= m.until) {
			return m.treatment
		}
	}
	return refused
}

// revisionFor returns the revision that a client's message belongs to. After a handshake that is the negotiated one.
// Before, a request can name its revision; otherwise the last revision with a handshake applies. ok is false if the
// request names a revision that the gateway does not know.
func (s *session) revisionFor(m message.Message) (revision string, ok bool) {
	named := m.Revision()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.revision != "":
		return s.revision, true
	case named == revision2026July:
		s.stateless = true
		return named, true
	case named != "" && !slices.Contains(HandshakeRevisions(), named):
		return named, false
	case s.stateless && !m.IsRequest():
		return revision2026July, true
	}
	return revision2025November, true
}

// initialize passes the handshake on, with a revision that the gateway knows.
func (s *session) initialize(m message.Message) {
	params, err := readParams(m.Params)
	var requested string
	if err != nil || json.Unmarshal(params["protocolVersion"], &requested) != nil {
		s.answer(m.Refuse(message.CodeInvalidParams, "params: protocolVersion must be a string"))
		return
	}
	if !slices.Contains(HandshakeRevisions(), requested) {
		if m.Params, err = replaceMember(params, "protocolVersion", revision2025November); err != nil {
			s.answer(m.Refuse(message.CodeInvalidParams, err.Error()))
			return
		}
	}
	s.askAll(m, s.links, func(answers []message.Message) message.Message {
		if len(answers) == 1 {
			return s.takeRevision(answers[0])
		}
		return s.takeRevision(s.mergeInitialize(answers))
	})
}

// takeRevision notes the negotiated revision. A revision that the gateway does not know is an error for the client.
func (s *session) takeRevision(answer message.Message) message.Message {
	if answer.Error != nil {
		return answer
	}
	var result struct {
		Revision string `json:"protocolVersion"`
	}
	if json.Unmarshal(answer.Result, &result) != nil || !slices.Contains(HandshakeRevisions(), result.Revision) {
		return answer.Refuse(message.CodeInternal, fmt.Sprintf("the server answers with revision %.64q, which the gateway does not know", result.Revision))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision = result.Revision
	return answer
}

// serverRevision returns the revision that a server's messages belong to.
func (s *session) serverRevision() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.revision != "":
		return s.revision
	case s.stateless:
		return revision2026July
	}
	return revision2025November
}

// maxRefusals is the number of refused messages of a session that are reported one by one. The session's end reports
// the number of all.
const maxRefusals = 16

// refuse counts a message that reaches nobody, and reports it.
func (s *session) refuse(k kind, m message.Message, from, reason string) {
	s.mu.Lock()
	s.refusals++
	report := s.refusals <= maxRefusals
	s.mu.Unlock()
	if report {
		s.gate.OnError(fmt.Errorf("%s refused: %s%.64q: %s", k, from, m.Method, reason))
	}
}

// reportRefusals reports how many messages were refused, if not all were reported already.
func (s *session) reportRefusals() {
	s.mu.Lock()
	n := s.refusals
	s.mu.Unlock()
	if n > maxRefusals {
		s.gate.OnError(fmt.Errorf("%d messages of one session were refused", n))
	}
}

// RefuseRevision answers a request that names a revision the gateway does not know.
func RefuseRevision(m message.Message, requested string) message.Message {
	text, err := json.Marshal(map[string]any{
		"code": message.CodeUnsupportedRevision, "message": "unsupported protocol version",
		"data": map[string]any{"supported": append(HandshakeRevisions(), revision2026July), "requested": requested},
	}, json.Deterministic(true))
	if err != nil { // the name is not UTF-8
		return m.Refuse(message.CodeInvalidParams, "unsupported protocol version")
	}
	return message.Message{ID: m.ID, Error: text}
}
