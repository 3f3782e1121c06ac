package gateway

import (
	"fmt"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// subscribed says which notifications a client wants, or a server has agreed to send.
type subscribed struct {
	Tools     bool     `json:"toolsListChanged,omitzero"`
	Prompts   bool     `json:"promptsListChanged,omitzero"`
	Resources bool     `json:"resourcesListChanged,omitzero"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
	Tasks     []string `json:"taskIds,omitempty"`
}

// subscription is a subscriptions/listen request that several servers have got. The client gets one acknowledgement of
// all servers, before any notification.
type subscription struct {
	mu     sync.Mutex           // held while messages of the subscription are sent to the client
	asked  map[*link]subscribed // of the servers that have not acknowledged it
	agreed subscribed
	held   []message.Message // notifications that came before the acknowledgement
	bytes  int               // of these
}

const (
	// maxSubscribed is the number of resources and tasks of one subscription.
	maxSubscribed = 1000
	// maxHeldBytes bounds the notifications that wait for the acknowledgement of another server.
	maxHeldBytes = 1 << 20
	heldOverhead = 256 // bytes of a notification besides its params
)

// subscribe passes subscriptions/listen to all servers, to each with its own resources and tasks. Those of no server are
// left out, and the acknowledgement says so.
func (s *session) subscribe(m message.Message) {
	params, err := readParams(m.Params)
	var wanted subscribed
	if err != nil || json.Unmarshal(params["notifications"], &wanted) != nil {
		s.answer(m.Refuse(message.CodeInvalidParams, "params: notifications must say what to listen for"))
		return
	}
	if n := len(wanted.URIs) + len(wanted.Tasks); n > maxSubscribed {
		s.answer(m.Refuse(message.CodeInvalidParams,
			fmt.Sprintf("params: %d resources and tasks: listen for at most %d", n, maxSubscribed)))
		return
	}
	sub := &subscription{asked: map[*link]subscribed{}}
	for _, l := range s.links {
		asked := subscribed{Tools: wanted.Tools, Prompts: wanted.Prompts, Resources: wanted.Resources}
		for _, uri := range wanted.URIs {
			if owner, err := s.owners.ownerOfResource(uri); err == nil && owner == l {
				asked.URIs = append(asked.URIs, uri)
			}
		}
		for _, task := range wanted.Tasks {
			if s.owners.ownerOfTask(task) == l {
				asked.Tasks = append(asked.Tasks, task)
			}
		}
		sub.asked[l] = asked
	}
	requests := make([]message.Message, len(s.links))
	for i, l := range s.links {
		requests[i] = m
		text, err := json.Marshal(sub.asked[l])
		if err == nil {
			params["notifications"] = text
			requests[i].Params, err = message.EncodeMembers(params)
		}
		if err != nil {
			s.answer(m.Refuse(message.CodeInvalidParams, err.Error()))
			return
		}
	}
	s.mu.Lock()
	_, used := s.subscriptions[string(m.ID)]
	if !used {
		s.subscriptions[string(m.ID)] = sub
	}
	s.mu.Unlock()
	if used {
		s.answer(m.Refuse(message.CodeInvalidRequest, "the id is that of a request without an answer"))
		return
	}
	s.askEach(s.links, requests, func(l *link, _ message.Message) {
		s.acknowledge(sub, m.ID, l, subscribed{}) // a server that refuses agrees to nothing
	}, func(answers []message.Message) message.Message {
		s.mu.Lock()
		delete(s.subscriptions, string(m.ID))
		s.mu.Unlock()
		return firstSuccess(answers)
	})
}

// hasSubscription reports whether the client has the subscription that a notification names.
func (s *session) hasSubscription(m message.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subscriptions[string(m.Meta()[message.MetaSubscription])] != nil
}

// takeSubscribed takes a server's notification of a subscription. It reports false if the notification belongs to none.
func (s *session) takeSubscribed(l *link, m message.Message) bool {
	if m.Method == "notifications/cancelled" {
		return s.endSubscription(l, m)
	}
	var params struct {
		Notifications subscribed `json:"notifications"`
	}
	name := m.Meta()[message.MetaSubscription]
	s.mu.Lock()
	sub := s.subscriptions[string(name)]
	s.mu.Unlock()
	if sub == nil {
		return false
	}
	if m.Method == "notifications/subscriptions/acknowledged" {
		_ = json.Unmarshal(m.Params, &params) // what can't be read agrees to nothing
		s.acknowledge(sub, name, l, params.Notifications)
		return true
	}
	sub.mu.Lock()
	defer sub.mu.Unlock()
	switch {
	case len(sub.asked) == 0:
		s.answer(m)
	case sub.bytes+heldOverhead+len(m.Params) <= maxHeldBytes:
		sub.held, sub.bytes = append(sub.held, m), sub.bytes+heldOverhead+len(m.Params)
	default:
		s.gate.OnError(fmt.Errorf("notification of %s dropped: another server has not acknowledged the subscription", l.name))
	}
	return true
}

// endSubscription takes a server's cancellation of a subscription for its response, because other servers can go on with it.
func (s *session) endSubscription(l *link, m message.Message) bool {
	name := cancelledID(m)
	s.mu.Lock()
	sub := s.subscriptions[string(name)]
	s.mu.Unlock()
	if sub == nil {
		return false
	}
	s.takeResponse(l, message.Message{ID: name}.Refuse(message.CodeInternal, "the MCP server "+l.name+" has ended the subscription"))
	return true
}

// acknowledge notes what a server has agreed to, of what it was asked for. The last server's acknowledgement goes to the
// client, with the notifications that came before it.
func (s *session) acknowledge(sub *subscription, name jsontext.Value, l *link, agreed subscribed) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	asked, waiting := sub.asked[l]
	if !waiting {
		return
	}
	delete(sub.asked, l)
	sub.agreed.Tools = sub.agreed.Tools || agreed.Tools
	sub.agreed.Prompts = sub.agreed.Prompts || agreed.Prompts
	sub.agreed.Resources = sub.agreed.Resources || agreed.Resources
	sub.agreed.URIs = append(sub.agreed.URIs, intersect(asked.URIs, agreed.URIs)...)
	sub.agreed.Tasks = append(sub.agreed.Tasks, intersect(asked.Tasks, agreed.Tasks)...)
	if len(sub.asked) > 0 {
		return
	}
	m, err := message.Notification("notifications/subscriptions/acknowledged", map[string]any{
		"notifications": sub.agreed, "_meta": map[string]any{message.MetaSubscription: name},
	})
	if err != nil {
		s.gate.OnError(fmt.Errorf("acknowledge a subscription: %w", err))
		return
	}
	s.answer(m)
	for _, held := range sub.held {
		s.answer(held)
	}
	sub.held = nil
}

// intersect returns the elements of asked that agreed contains. A server may write any number of others.
func intersect(asked, agreed []string) (both []string) {
	known := make(map[string]bool, len(agreed))
	for _, name := range agreed {
		known[name] = true
	}
	for _, name := range asked {
		if known[name] {
			both = append(both, name)
		}
	}
	return both
}
