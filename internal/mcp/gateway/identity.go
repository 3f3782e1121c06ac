package gateway

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
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
