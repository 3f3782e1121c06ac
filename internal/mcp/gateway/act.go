package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

// stage is how far a call has come. A call that takes several round trips goes from answered back to sent.
type stage int

const (
	parsed    stage = iota // its tool, arguments and caller are known; what can't be parsed is no call
	deciding               // the service is asked
	waiting                // people are asked
	permitted              // the guard lets it run, so it is begun
	sent                   // a server may have it
	answered               // the server has answered; after that, the guard records the result
)

// maxInputWait is how long a call that needs input waits for the client's next request.
const maxInputWait = 30 * time.Minute

// openActs are the calls that a server has begun and not ended: those that need input from the client, and tasks. One
// intent, one approval and one count of the limits are for all requests of a call.
type openActs struct {
	mu    sync.Mutex
	input map[id.Hash][]*call // by what the next request of the call has
	tasks map[taskName]*call
}

type taskName struct {
	link *link
	id   string
}

func newOpenActs() *openActs {
	return &openActs{input: map[id.Hash][]*call{}, tasks: map[taskName]*call{}}
}

// actName is the same for the requests of one call: owner, tool, arguments and the state that the server has given.
func actName(act id.Hash, state string) id.Hash {
	return sha256.Sum256(fmt.Appendf(nil, "%x\n%s", act, state))
}

// await makes a call claimable under a name until stop is called.
func (o *openActs) await(name id.Hash, c *call) (stop func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.input[name] = append(o.input[name], c)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.remove(name, c)
	}
}

func (o *openActs) remove(name id.Hash, c *call) {
	var remaining []*call
	for _, open := range o.input[name] {
		if open != c {
			remaining = append(remaining, open)
		}
	}
	if o.input[name] = remaining; len(remaining) == 0 {
		delete(o.input, name)
	}
}

// claim hands a request to the call that it continues. It reports false if there is none.
func (o *openActs) claim(next *call) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	name := actName(next.act, next.state)
	open := o.input[name]
	if len(open) == 0 {
		return false
	}
	o.remove(name, open[0])
	open[0].next <- next // has a slot, because a call is claimed once for each wait
	return true
}

// begin makes the answers about a task reach its call until stop is called. It returns nil if the server has another
// open task of this name.
func (o *openActs) begin(name taskName, c *call) (stop func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tasks[name] != nil {
		return nil
	}
	o.tasks[name] = c
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.tasks, name)
	}
}

// roundTrip is one question of a server and the client's answer.
type roundTrip struct {
	Requests  jsontext.Value `json:"input_requests,omitzero"`
	Responses jsontext.Value `json:"input_responses,omitzero"`
	State     string         `json:"request_state_digest,omitzero"`
}

// answerKind is the part of a result that says whether the call has ended.
type answerKind struct {
	Type     string         `json:"resultType"`
	Requests jsontext.Value `json:"inputRequests"`
	State    string         `json:"requestState"`
	TaskID   string         `json:"taskId"`
	Task     struct {
		TaskID string `json:"taskId"`
	} `json:"task"`
}

// forward sends the call to its server until the server ends it. The guard calls it once. Its error is
// guard.ErrInterrupted when it can't be known how far the server came.
func (c *call) forward(context.Context, guard.Permit) (any, error) {
	result, err := c.follow()
	if result == nil && len(c.trips) > 0 { // how it ended is not known, but what was asked is
		result = c.recordedResult(nil)
	}
	return result, err
}

// follow follows the call from the permission to its end.
func (c *call) follow() (any, error) {
	c.mu.Lock()
	c.stage = permitted
	if c.dropped {
		c.mu.Unlock()
		return nil, errCancelled
	}
	c.stage = sent
	c.mu.Unlock()
	for {
		m, err := c.leg.exchange(c.session.hurry)
		if err != nil {
			return nil, err
		}
		c.setStage(answered)
		var kind answerKind
		if m.Error != nil || json.Unmarshal(m.Result, &kind) != nil {
			return c.takeResult(m)
		}
		if s := c.leg.session; len(s.links) > 1 {
			s.owners.addResult(c.leg.link, m.Result)
		}
		switch task := kind.TaskID + kind.Task.TaskID; {
		case kind.Type == "input_required":
			if err := c.awaitInput(m, kind); err != nil {
				return nil, err
			}
		case task != "" && (kind.Type == "task" || kind.Type == "" && kind.Task.TaskID != ""):
			return c.awaitTask(m, task)
		default:
			return c.takeResult(m)
		}
		c.setStage(sent)
	}
}

func (c *call) setStage(s stage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stage = s
}

// errNotSent is returned for a request that no server has received.
var errNotSent = errors.New("the call was not sent")

// exchange sends a request of a call to its server and waits for the response. hurry ends the wait, and so does the end
// of the request's own session.
func (c *call) exchange(hurry <-chan struct{}) (message.Message, error) {
	responses := make(chan message.Message, 1)
	s := c.session
	select {
	case <-c.link.gone:
		return message.Message{}, fmt.Errorf("%w: the MCP server %s has ended", errNotSent, c.link.name)
	default:
	}
	if !s.await(c.link, c.request, func(m message.Message) { responses <- m }) {
		return message.Message{}, fmt.Errorf("%w: too many requests of the client have no answer", errNotSent)
	}
	s.send(c.link, c.request)
	select {
	case m := <-responses:
		if m.Local {
			return m, guard.ErrInterrupted
		}
		return m, nil
	case <-c.abandoned:
		s.forgetExchange(c.link, c.request.ID)
		if m, err := message.Notification("notifications/cancelled",
			map[string]any{"requestId": c.request.ID, "reason": "cancelled by the client"}); err == nil {
			s.send(c.link, m)
		}
	case <-s.hurry:
		s.forgetExchange(c.link, c.request.ID)
	case <-hurry:
		s.forgetExchange(c.link, c.request.ID)
	}
	return message.Message{}, guard.ErrInterrupted
}

// maxRoundTrips bounds the questions of a server in one call, because the result event names each of them.
const maxRoundTrips = 64

// awaitInput answers the client with the server's questions, and waits for the request that has the answers.
func (c *call) awaitInput(m message.Message, kind answerKind) error {
	if len(c.trips) >= maxRoundTrips {
		c.session.gate.OnError(fmt.Errorf("%s asked %d times in one call of %s, which ends here", c.leg.link.name, maxRoundTrips, c.tool))
		return guard.ErrInterrupted
	}
	gate := c.session.gate
	trip := roundTrip{Requests: kind.Requests}
	if kind.State != "" {
		trip.State = digestOf(kind.State)
	}
	// An equal call of a client that has not seen the questions is another call.
	if err := gate.Questions.forget(c.question, c.key); err != nil {
		gate.OnError(err)
	}
	stop := gate.acts.await(actName(c.act, kind.State), c)
	defer stop()
	defer c.suspend()()
	c.leg.reply(m)
	ended := time.NewTimer(maxInputWait)
	defer ended.Stop()
	select {
	case c.leg = <-c.next:
		trip.Responses = c.leg.responses
		c.trips = append(c.trips, trip)
		return nil
	case <-c.session.ctx.Done():
	case <-ended.C:
	}
	c.trips = append(c.trips, trip)
	stop()
	select {
	case late := <-c.next: // claimed in between
		late.reply(failedResult(late.request, "Not done: the call that this request continues has ended.", &callStatus{Status: "unknown"}))
	default:
	}
	return guard.ErrInterrupted
}

// suspend counts the call as one that has no request of the client until the returned function is called.
func (c *call) suspend() (resume func()) {
	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspended++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.suspended--
	}
}

// awaitTask answers the client with the handle of a task, and waits until the server reports the end of the task.
func (c *call) awaitTask(m message.Message, task string) (any, error) {
	stop := c.session.gate.acts.begin(taskName{c.leg.link, task}, c)
	if stop == nil {
		return nil, guard.ErrInterrupted // two calls would have the same task
	}
	defer stop()
	defer c.suspend()()
	c.leg.reply(m)
	select {
	case end := <-c.taskEnd:
		return c.takeResult(end)
	case <-c.session.ctx.Done():
	case <-c.leg.link.gone:
	}
	return nil, guard.ErrInterrupted
}

// takeTask passes what a server says about a task to the call that has begun it.
func (s *session) takeTask(l *link, method, task string, text jsontext.Value) {
	var update struct {
		ID     string         `json:"taskId"`
		Status string         `json:"status"`
		Result jsontext.Value `json:"result"`
	}
	if json.Unmarshal(text, &update) != nil {
		return
	}
	if update.ID != "" {
		task = update.ID
	}
	s.gate.acts.mu.Lock()
	c := s.gate.acts.tasks[taskName{l, task}]
	s.gate.acts.mu.Unlock()
	if c == nil {
		return
	}
	end := message.Message{Result: text}
	switch {
	case method == "tasks/result": // it is the result itself
	case update.Status == "completed" && update.Result != nil:
		end.Result = update.Result
	case update.Status == "completed":
	case update.Status == "failed":
		end.Result, end.Error = nil, text
	case update.Status == "cancelled": // how far it came is not known
		end.Local = true
	default:
		return
	}
	select {
	case c.taskEnd <- end:
	default: // it has ended already
	}
}

// taskTaker returns the taker of the response to a request, which can be about a task.
func (s *session) taskTaker(l *link, m message.Message) func(message.Message) {
	if m.Method != "tasks/get" && m.Method != "tasks/result" {
		return s.answer
	}
	var named struct {
		ID string `json:"taskId"`
	}
	_ = json.Unmarshal(m.Params, &named) // without a name it is about no task
	return func(answer message.Message) {
		if answer.Error == nil {
			s.takeTask(l, m.Method, named.ID, answer.Result)
		}
		s.answer(answer)
	}
}

// reply answers a request of a call, unless the client has cancelled it.
func (c *call) reply(m message.Message) {
	s := c.session
	s.mu.Lock()
	delete(s.calls, string(c.request.ID))
	s.mu.Unlock()
	c.mu.Lock()
	dropped := c.dropped
	c.mu.Unlock()
	if !dropped {
		s.answer(m)
	}
	close(c.replied)
}

// recordedTrips is what the ledger gets of the round trips: questions and answers where the rule records the result
// itself, and otherwise their digests.
func (c *call) recordedTrips() []roundTrip {
	all := make([]roundTrip, len(c.trips))
	size := 0
	for i, t := range c.trips {
		all[i] = roundTrip{canonicalText(t.Requests), canonicalText(t.Responses), t.State}
		size += len(all[i].Requests) + len(all[i].Responses)
	}
	if c.rule.Output && size <= maxTrips {
		return all
	}
	for i, t := range all {
		all[i].Requests, all[i].Responses = quotedDigest(t.Requests), quotedDigest(t.Responses)
	}
	return all
}

// maxTrips is the size in bytes of the questions and answers that are recorded themselves.
const maxTrips = 32 << 10

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func quotedDigest(text jsontext.Value) jsontext.Value {
	if text == nil {
		return nil
	}
	return jsontext.Value(`"sha256:` + digestOf(string(text)) + `"`)
}

// canonicalText returns the canonical form of a value, or an object with its text if it has none.
func canonicalText(value jsontext.Value) jsontext.Value {
	if value == nil {
		return nil
	}
	text, err := jcs.Canonicalize(value, jcs.MaxDepth-outputDepth)
	if err != nil { // numbers that are not exact, for example
		text = jcs.AppendString([]byte(`{"`+inexactMember+`":`), string(value))
		text = append(text, '}')
	}
	return text
}
