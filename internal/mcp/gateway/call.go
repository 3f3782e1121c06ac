package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/mcp/message"
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
	state     string         // requestState of a request that continues a call, "" for none
	responses jsontext.Value // its inputResponses, nil for none
	abandoned chan struct{}  // closed when the client cancels
	replied   chan struct{}  // closed when the request has its answer
	deciding  *time.Timer    // ends the wait for a decision

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

// startCall admits a tool call, and runs it beside the other messages.
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

// readCall reads the params of a tool call. The request that the server gets is written anew from the values that are
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
	c.token, c.trace = meta["progressToken"], traceOf(meta["traceparent"])
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

// traceOf returns the trace that a caller's traceparent names (W3C Trace Context): its 32 hexadecimal digits. It returns
// "" for a missing or malformed one.
func traceOf(text jsontext.Value) id.Trace {
	var parent string
	if text == nil || json.Unmarshal(text, &parent) != nil || !traceparent.MatchString(parent) {
		return ""
	}
	version, trace, span := parent[:2], parent[3:35], parent[36:52]
	if version == "ff" || version == "00" && len(parent) > len("00-")+len(trace)+len("-")+len(span)+len("-01") ||
		strings.Trim(trace, "0") == "" || strings.Trim(span, "0") == "" {
		return ""
	}
	return id.Trace(trace)
}

// traceparent has a version, a trace, a parent and flags. A version after 00 can have more.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$`)

func (g *Gateway) principalOf(m message.Message, meta map[string]jsontext.Value) (string, error) {
	if m.Caller != "" {
		return m.Caller, nil
	}
	var named string
	if g.Principal.Meta != "" {
		if text := meta[g.Principal.Meta]; text != nil && json.Unmarshal(text, &named) != nil {
			return "", errors.New("_meta: the principal must be a string")
		}
	}
	if named == "" && g.Principal.Header {
		named = m.Principal
	}
	if named == "" {
		named = g.Principal.Fixed
	}
	if named == "" && (g.Principal.Meta != "" || g.Principal.Header) {
		return "", errors.New("the call names no principal")
	}
	return named, nil
}

// identify gives the call the key of the open question that an equal call has asked, or a new one.
func (c *call) identify() {
	owner, trace := c.principal, c.session.trace
	if c.request.Stateless {
		trace = newTrace()
	}
	g := c.session.gate
	nameless := g.SharedByCallers && c.request.Caller == "" && (owner == "" || owner == g.Principal.Fixed)
	if nameless {
		owner += "\x00" + string(c.session.trace)
	}
	c.act = questionName(owner, c.tool, c.arguments)
	if c.question = c.act; nameless && c.request.Stateless { // nobody else may use its approval, so nobody may
		c.alone = true
		c.question = questionName(owner+"\x00"+string(newTrace()), c.tool, c.arguments)
	}
	if open, ok := c.session.gate.Questions.find(c.question); ok {
		c.key, c.trace, c.approval = open.Key, open.Trace, open.Approval
		return
	}
	var name [16]byte
	_, _ = rand.Read(name[:]) // never fails
	c.key, c.isNew, c.trace = fmt.Sprintf("mcp:%x", name), true, cmp.Or(c.trace, trace)
}

// continues reports whether the request continues a call.
func (c *call) continues() bool { return c.state != "" || c.responses != nil }

// run runs the call under the guard and answers it. A request that continues an open call is handed to that call.
func (c *call) run() {
	s := c.session
	if c.continues() && s.gate.acts.claim(c) {
		<-c.replied
		return
	}
	// The session's end interrupts a call that has not started, and no other.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(s.ctx))
	defer cancel(nil)
	c.mu.Lock()
	c.cancel = cancel
	if c.dropped {
		cancel(errCancelled)
	}
	c.mu.Unlock()
	defer context.AfterFunc(s.ctx, func() { c.interrupt(errEnded) })()
	c.deciding = time.AfterFunc(s.gate.Decide, func() { c.interrupt(errNoAnswer) })
	defer c.deciding.Stop()
	c.setStage(deciding)
	if c.approval != "" {
		defer c.beginWait(c.approval)()
	}
	defer s.gate.wakeFlusher() // after the answer, because the client waits for that alone
	answer := c.execute(ctx)
	select {
	case <-c.leg.replied: // with questions or the handle of a task
	default:
		c.leg.reply(answer)
	}
}

func (c *call) execute(ctx context.Context) message.Message {
	gate := c.session.gate
	endWait := func() {}
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
		Seen: c.rule.Seen, Trace: c.trace, Principal: c.principal,
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

// withdraw cancels an approval that no call waits for.
func (g *Gateway) withdraw(approval string) {
	ctx, cancel := context.WithTimeout(context.Background(), client.DefaultTimeout)
	defer cancel()
	if err := g.Client.CancelApproval(ctx, approval); err != nil {
		g.OnError(err)
	}
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

// beginWait bounds the wait for people, and tells the client about it. The returned function ends it.
func (c *call) beginWait(approval string) (end func()) {
	s := c.session
	c.deciding.Stop()
	c.mu.Lock()
	c.approval, c.stage = approval, waiting
	c.mu.Unlock()
	s.mu.Lock()
	full := s.waiting >= s.gate.Bounds.Waiting
	s.waiting++
	s.mu.Unlock()
	wait := s.gate.Wait
	if full { // the client is told at once to call again
		wait = 0
	}
	timer := time.AfterFunc(wait, func() { c.interrupt(errWaitOver) })
	over := make(chan struct{})
	if c.token != nil && !full {
		s.fetching.Go(func() { c.reportWait(approval, over) })
	}
	return func() {
		timer.Stop()
		close(over)
		s.mu.Lock()
		s.waiting--
		s.mu.Unlock()
	}
}

// reportWait sends progress until the wait is over. The steps are tiny, because the server's own progress
// follows and must not go back.
func (c *call) reportWait(approval string, over <-chan struct{}) {
	ticker := time.NewTicker(c.session.gate.Progress)
	defer ticker.Stop()
	for step := 1; ; step++ {
		c.mu.Lock()
		quiet := c.stage >= sent || c.dropped
		c.mu.Unlock()
		if quiet {
			return
		}
		m, err := message.Notification("notifications/progress", map[string]any{
			"progressToken": c.token, "progress": float64(step) / 1e6, "message": "waits for people: " + approval,
		})
		if err == nil {
			c.session.answer(m)
		}
		select {
		case <-ticker.C:
		case <-over:
			return
		}
	}
}
