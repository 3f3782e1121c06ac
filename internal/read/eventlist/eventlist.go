// Package eventlist parses the queries about events in URLs, runs them and describes the results, for the console and
// its API.
//
// Invariants:
//
//   - A query that is not valid is rejected with a message that names the parameter.
//   - Descriptions contain no payloads, except the envelope of a single event, for roles that may read it.
package eventlist

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
)

// maxText bounds the text to search for, in bytes.
const maxText = 256

// MaxValue bounds the values of other parameters, in bytes.
const MaxValue = 1024

// ParseQuery parses the parameters of a list of events. after and limit are the parameters of its page.
func ParseQuery(values url.Values, after string, limit int) (q index.Query, err error) {
	for name := range values {
		if len(values.Get(name)) > MaxValue {
			return q, fault.New(fault.Invalid, "A parameter is longer than 1024 bytes")
		}
	}
	if q.Filter, err = parseFilter(values); err != nil {
		return q, err
	}
	switch order := values.Get("order"); order {
	case "", "newest", "oldest":
		q.Ascending = order == "oldest"
	default:
		return q, fault.New(fault.Invalid, "order must be newest or oldest")
	}
	if q.Text = strings.ToLower(values.Get("q")); len(q.Text) > maxText {
		return q, fault.New(fault.Invalid, "q must have at most 256 bytes")
	}
	q.Limit = limit
	q.After, err = parseAfter(after)
	return q, err
}

func parseAfter(after string) (*id.Index, error) {
	if after == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(after, 10, 63)
	if err != nil {
		return nil, fault.New(fault.Invalid, "after must be a log index, such as next of the page before")
	}
	at := id.Index(n)
	return &at, nil
}

// parseFilter parses the parameters that select events.
func parseFilter(values url.Values) (f index.Filter, err error) {
	f = index.Filter{
		Agent: id.Agent(values.Get("agent_id")), Tool: values.Get("tool"), Kind: values.Get("action_kind"),
		Trace: id.Trace(values.Get("trace_id")), ByCaller: true, Principal: values.Get("principal"),
		Subject: values.Get("on_behalf_of"), Issuer: values.Get("issuer"),
		Signer: event.Signer(values.Get("signer")),
	}
	if f.Effective, err = parseDecision(values, "decision"); err != nil {
		return f, err
	}
	if f.Declared, err = parseDecision(values, "declared"); err != nil {
		return f, err
	}
	if f.From, err = parseBound(values, "from"); err != nil {
		return f, err
	}
	if f.To, err = parseBound(values, "to"); err != nil {
		return f, err
	}
	return f, f.Check()
}

func parseDecision(values url.Values, name string) (id.Decision, error) {
	if !values.Has(name) {
		return 0, nil
	}
	d, err := id.ParseDecision(values.Get(name))
	if err != nil {
		return 0, fault.Wrap(fault.Invalid, name+" must be allow, deny or allow_with_obligation", err)
	}
	return d, nil
}

// parseBound parses a bound from a query.
func parseBound(values url.Values, name string) (index.Bound, error) {
	return ParseBound(name, values.Get(name))
}

// ParseBound parses a bound: a UTC time, a log index, or "" for none. Times are truncated to milliseconds. name is the
// name of the bound in errors.
func ParseBound(name, text string) (index.Bound, error) {
	if text == "" {
		return index.Bound{}, nil
	}
	if n, err := strconv.ParseUint(text, 10, 63); err == nil {
		return index.Bound{Given: true, Index: id.Index(n)}, nil
	}
	if t, ok := event.ParseTime(text); ok && t.UnixMilli() > 0 {
		return index.Bound{Given: true, At: id.InstantOf(t)}, nil
	}
	return index.Bound{}, fault.New(fault.Invalid, name+" must be a UTC time like 2026-01-31T12:00:00Z, or a log index")
}
