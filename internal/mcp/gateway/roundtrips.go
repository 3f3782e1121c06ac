package gateway

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

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

// maxInputWait is how long a call that needs input waits for the client's next request.
const maxInputWait = 30 * time.Minute

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
