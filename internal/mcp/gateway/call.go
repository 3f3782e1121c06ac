package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

// A tool call goes through these stages, and the functions of this file are in the same order:
//
//	received   startCall
//	parsed     readCall, identify: who calls which tool with which arguments
//	deciding   run, decide: the guard asks the service
//	waiting    beginWait: people are asked
//	permitted  forward: the guard has noted that the call begins
//	sent       exchange: a server may have it
//	answered   follow: the result, or a question of the server (awaitInput, back to sent), or a task (awaitTask)
//	recorded   takeResult, and the guard notes the result; then reply
//
// A call that stops before permitted reaches no server. Its answer says why (answerFailure).

// stage is how far a call has come, after received and before recorded.
type stage int

const (
	parsed    stage = iota // its tool, arguments and caller are known; what can't be parsed is no call
	deciding               // the service is asked
	waiting                // people are asked
	permitted              // the guard lets it run, so it is begun
	sent                   // a server may have it
	answered               // the server has answered; after that, the guard records the result
)

// call is a request for a tool call, and, if it begins one, the call itself on its way through the guard. The requests
// that continue a call answer the questions of its server; leg is the current one.
type call struct {
	session   *session
	link      *link
	request   message.Message // as the server gets it
	token     jsontext.Value  // progressToken, nil for none
	tool      id.Tool
	rule      Rule
	arguments arguments
	principal string
	act       id.Hash // the same for the requests of one call
	question  id.Hash // the same for equal calls that may use its approval
	alone     bool    // there is no such call
	key       string
	isNew     bool // no earlier call had the key
	trace     id.Trace
	caller    event.Traceparent // zero if the client named none
	state     string            // requestState of a request that continues a call, "" for none
	responses jsontext.Value    // its inputResponses, nil for none
	abandoned chan struct{}     // closed when the client cancels
	replied   chan struct{}     // closed when the request has its answer
	deciding  *time.Timer       // ends the wait for a decision

	// Used by the goroutine of the call.
	leg      *call                // the request that the client waits for
	next     chan *call           // receives the request that continues the call
	taskEnd  chan message.Message // receives the end of the call's task
	trips    []roundTrip
	response *message.Message // the server's last one

	mu       sync.Mutex
	cancel   context.CancelCauseFunc
	approval string // that the call waits for, "" for none
	stage    stage
	dropped  bool // the client has cancelled
}

var (
	errWaitOver  = errors.New("the wait for people is over")
	errNoAnswer  = errors.New("the service has not decided in time")
	errCancelled = errors.New("cancelled by the client")
	errEnded     = errors.New("the session has ended")
)

// startCall admits a received tool call, and runs it beside the other messages.
func (s *session) startCall(m message.Message) {
	c, err := s.readCall(m)
	if refused, ok := errors.AsType[*argumentsError](err); ok {
		s.answer(RefuseCall(m.ID, refused))
		return
	}
	if err != nil {
		s.answer(m.Refuse(message.CodeInvalidParams, err.Error()))
		return
	}
	s.mu.Lock()
	_, used := s.calls[string(m.ID)]
	full := len(s.calls) >= s.gate.Bounds.Calls || !c.continues() && len(s.calls)+s.suspended >= s.gate.Bounds.Calls
	closing := s.closing
	if !used && !full && !closing {
		s.calls[string(m.ID)] = c
		s.running.Add(1)
	}
	s.mu.Unlock()
	switch {
	case used:
		s.answer(m.Refuse(message.CodeInvalidRequest, "the id is that of a request without an answer"))
	case closing:
		s.answer(failedResult(m, "Not done: the session has ended. Call again in another one.", &callStatus{Status: "not_decided"}))
	case full:
		s.answer(failedResult(m, "Not done: too many tool calls at once. Call again later.", &callStatus{Status: "not_decided"}))
	default:
		go func() {
			defer s.running.Done()
			c.run()
		}()
	}
}

// readCall parses the params of a tool call. The request that the server gets is written anew from the values that are
// judged.
func (s *session) readCall(m message.Message) (*call, error) {
	params, err := readParams(m.Params)
	if err != nil {
		return nil, err
	}
	if err := checkFolded(m.Params); err != nil {
		return nil, &argumentsError{err}
	}
	var name string
	if err := json.Unmarshal(params["name"], &name); err != nil {
		return nil, errors.New("params: name must be a string")
	}
	c := &call{session: s, request: m, abandoned: make(chan struct{}), replied: make(chan struct{}),
		next: make(chan *call, 1), taskEnd: make(chan message.Message, 1), responses: params["inputResponses"]}
	c.leg = c
	if text := params["requestState"]; text != nil && json.Unmarshal(text, &c.state) != nil {
		return nil, errors.New("params: requestState must be a string")
	}
	if c.link, name = s.linkOfTool(name); c.link == nil {
		return nil, errors.New("no server has this tool")
	}
	if c.tool, err = ToolName(c.link.name, name); err != nil {
		return nil, err
	}
	c.rule = s.gate.ruleFor(c.tool)
	if c.arguments, err = readArguments(params["arguments"]); err == nil {
		err = c.rule.checkSize(c.arguments)
	}
	if err != nil {
		return nil, &argumentsError{err}
	}
	var meta map[string]jsontext.Value
	if text := params["_meta"]; text != nil && json.Unmarshal(text, &meta) != nil {
		return nil, errors.New("params: _meta must be an object")
	}
	c.token, c.caller = meta["progressToken"], callerOf(meta["traceparent"])
	c.trace = c.caller.TraceID()
	if c.principal, err = s.gate.principalOf(m, meta); err != nil {
		return nil, err
	}
	params["arguments"] = c.arguments.text
	if c.request.Params, err = replaceMember(params, "name", name); err != nil {
		return nil, err
	}
	c.identify()
	return c, nil
}

// continues reports whether the request continues a call.
func (c *call) continues() bool { return c.state != "" || c.responses != nil }

// run takes a parsed call to its end and answers it. A request that continues an open call is handed to that call.
func (c *call) run() {
	s := c.session
	if c.continues() && s.gate.acts.claim(c) {
		<-c.replied
		return
	}
	defer s.gate.wakeFlusher() // after the answer, because the client waits for that alone
	answer := c.decide()
	select {
	case <-c.leg.replied: // with questions or the handle of a task
	default:
		c.leg.reply(answer)
	}
}

// beginDeciding returns the context of the decision. It ends when the service takes too long, when the client cancels, and
// with the session, but not once the call is sent.
func (c *call) beginDeciding() (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(c.session.ctx))
	c.mu.Lock()
	c.cancel, c.stage = cancel, deciding
	if c.dropped {
		cancel(errCancelled)
	}
	c.mu.Unlock()
	stop := context.AfterFunc(c.session.ctx, func() { c.interrupt(errEnded) })
	c.deciding = time.AfterFunc(c.session.gate.Decide, func() { c.interrupt(errNoAnswer) })
	return ctx, func() {
		c.deciding.Stop()
		stop()
		cancel(nil)
	}
}

// decide runs the call under the guard, which calls forward if the call is permitted, and returns the answer.
func (c *call) decide() message.Message {
	ctx, end := c.beginDeciding()
	defer end()
	gate := c.session.gate
	endWait := func() {}
	if c.approval != "" {
		endWait = c.beginWait(c.approval)
	}
	defer func() { endWait() }()
	g, err := guard.New(guard.Config{
		Client: gate.Client, Signer: gate.Signer, Journal: gate.Journal, OnError: gate.OnError, FlushLater: true,
		OnAsk: func(asked client.Approval) {
			err := gate.Questions.keep(c.question, c.key, c.trace, asked)
			if err != nil {
				c.interrupt(err)
				gate.withdraw(asked.ID)
				return
			}
			endWait()
			endWait = c.beginWait(asked.ID)
		},
	})
	if err != nil {
		return c.answerFailure(ctx, err)
	}
	if gate.Pins != nil {
		if err := c.session.checkDefinition(ctx, c.tool, true); err != nil {
			return failedResult(c.leg.request, "Not done: "+err.Error()+".", &callStatus{Status: "not_decided", Reason: err.Error()})
		}
	}
	outcome, err := g.Run(ctx, guard.Action{
		Key: c.key, KeyIsNew: c.isNew, Tool: c.tool, Payload: c.arguments.members, DigestOnly: c.rule.Digest,
		Seen: c.rule.Seen, Trace: c.trace, Traceparent: c.caller.String(), Principal: c.principal, OnBehalfOf: gate.OnBehalfOf, Receipt: c.rule.Receipt,
	}, c.forward)
	if !c.staysOpen(ctx, err) {
		if err := gate.Questions.forget(c.question, c.key); err != nil {
			gate.OnError(err)
		}
	}
	switch {
	case c.response != nil && (err == nil || err == errToolFailed): // joined with another error it is not recorded
		return *c.response
	case err != nil:
		return c.answerFailure(ctx, err)
	}
	return c.answerRepeated(outcome.Result)
}

// forward makes a permitted call, and follows it until the server ends it. The guard calls it once. Its error is
// guard.ErrInterrupted when it can't be known how far the server came.
func (c *call) forward(_ context.Context, p guard.Permit) (any, error) {
	result, err := c.follow(p)
	if result == nil && len(c.trips) > 0 { // how it ended is not known, but what was asked is
		result = c.recordedResult(nil)
	}
	return result, err
}

// follow follows the call from the permission to its end.
func (c *call) follow(p guard.Permit) (any, error) {
	c.mu.Lock()
	c.stage = permitted
	if c.dropped {
		c.mu.Unlock()
		return nil, errCancelled
	}
	c.stage = sent
	c.mu.Unlock()
	for {
		if err := addPermit(&c.leg.request, p); err != nil {
			return nil, err
		}
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

func (c *call) setStage(s stage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stage = s
}

var errToolFailed = errors.New("the tool reported an error")

// takeResult keeps the last response of a call for the client, and returns the result for the ledger.
func (c *call) takeResult(m message.Message) (any, error) {
	if m.Local {
		return nil, guard.ErrInterrupted
	}
	c.response = &m
	if m.Error != nil {
		return c.recordedResult(nil), errToolFailed
	}
	var told struct {
		IsError bool `json:"isError"`
	}
	var failed error
	if json.Unmarshal(m.Result, &told) == nil && told.IsError {
		failed = errToolFailed
	}
	return c.recordedResult(m.Result), failed
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

// interrupt ends a call that no server has.
func (c *call) interrupt(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stage < sent && c.cancel != nil {
		c.cancel(cause)
	}
}

// drop is the client's cancellation. A server that has the call is told.
func (c *call) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped {
		return
	}
	c.dropped = true
	close(c.abandoned)
	if c.stage < sent && c.cancel != nil {
		c.cancel(errCancelled)
	}
}
