package gateway

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

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

// callerOf returns the span that a call's _meta names (W3C Trace Context), or the zero value.
func callerOf(text jsontext.Value) event.Traceparent {
	var parent string
	if text == nil || json.Unmarshal(text, &parent) != nil {
		return event.Traceparent{}
	}
	caller, _ := event.ParseTraceparent(parent)
	return caller
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
	if of := g.OnBehalfOf; of != nil { // a key of the guard is for one subject
		owner += "\x00" + of.Issuer + "\x00" + of.Subject
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
