package pack

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/verify"
)

// parseExact parses the canonical form of a T with exactly its members.
func parseExact[T any](text []byte) (v T, err error) {
	if err := json.Unmarshal(text, &v, json.RejectUnknownMembers(true)); err != nil {
		return v, fmt.Errorf("%w: %w", verify.ErrMalformed, err)
	}
	again, err := jcs.Marshal(v)
	if err != nil || !bytes.Equal(again, text) {
		return v, fmt.Errorf("not the exact canonical form: %w", verify.ErrMalformed)
	}
	return v, nil
}

// Text returns the content of manifest.json.
func (m *Manifest) Text() ([]byte, error) { return jcs.Marshal(m) }

// ParseManifest parses the content of manifest.json. Errors wrap verify.ErrMalformed or are
// verify.ErrVersion.
func ParseManifest(text []byte) (Manifest, error) {
	if len(text) > MaxDocument {
		return Manifest{}, fmt.Errorf("manifest: too large: %w", verify.ErrMalformed)
	}
	m, err := parseExact[Manifest](text)
	switch {
	case err != nil:
		return m, fmt.Errorf("manifest: %w", err)
	case m.V != Version:
		return m, fmt.Errorf("manifest: %w", verify.ErrVersion)
	case m.Begin > m.End || m.End > m.TreeSize || m.TreeSize > event.MaxSeq || m.End-m.Begin > MaxEvents:
		return m, fmt.Errorf("manifest: range: %w", verify.ErrMalformed)
	case (m.Prev == nil) != (m.Begin == m.End):
		return m, fmt.Errorf("manifest: prev: %w", verify.ErrMalformed)
	case !m.hasValidColumns():
		return m, fmt.Errorf("manifest: columns: %w", verify.ErrMalformed)
	}
	return m, m.Request.check()
}

func (m *Manifest) hasValidColumns() bool {
	if m.Acts == nil {
		return true
	}
	for i, name := range m.Acts.Columns {
		if !column.ValidPath(name) || slices.Contains(m.Acts.Columns[:i], name) {
			return false
		}
	}
	return len(m.Acts.Columns) <= MaxColumns && (m.Request.Envelopes || len(m.Acts.Columns) == 0)
}

// check rejects a request that no service writes.
func (r *Request) check() error {
	valid := true
	for _, bound := range []*string{r.From, r.To} {
		if bound != nil {
			_, number, time := parseBound(*bound)
			valid = valid && (number || time)
		}
	}
	valid = valid && (r.AgentID == nil || event.ValidAgent(string(*r.AgentID))) &&
		(r.Tool == nil || textcheck.ValidToolGlob(*r.Tool)) && (r.TraceID == nil || event.ValidEvent(string(*r.TraceID))) &&
		(r.Envelopes || !r.Coverage) && (r.Issuer == "" || r.Subject != "")
	if !valid {
		return fmt.Errorf("manifest: request: %w", verify.ErrMalformed)
	}
	return nil
}

// parseBound parses a bound of a range: an index or a time.
func parseBound(text string) (at id.Index, isIndex, isTime bool) {
	if n, err := strconv.ParseUint(text, 10, 63); err == nil {
		return id.Index(n), n <= event.MaxSeq && strconv.FormatUint(n, 10) == text, false
	}
	t, err := id.ParseInstant(text)
	return 0, false, err == nil && t.String() == text
}

// checkRange checks that the range is the requested one, as far as log indices show.
func (m *Manifest) checkRange() error {
	begin, end := id.Index(0), m.TreeSize
	if m.Request.From != nil {
		at, isIndex, _ := parseBound(*m.Request.From)
		if begin = at; !isIndex {
			begin = m.Begin
		}
	}
	if m.Request.To != nil {
		at, isIndex, _ := parseBound(*m.Request.To)
		if end = min(at, end); !isIndex {
			end = m.End
		}
	}
	if begin != m.Begin || end != m.End {
		return fmt.Errorf("range and request: %w", verify.ErrMismatch)
	}
	return nil
}

// Matches reports whether an event matches the request, except for its index and its subject. trace and tool are
// from its envelope; tool is "" if there is none.
func (r *Request) Matches(agent id.Agent, trace id.Trace, tool id.Tool) bool {
	return (r.AgentID == nil || *r.AgentID == agent) && (r.TraceID == nil || *r.TraceID == trace) &&
		(r.Tool == nil || textcheck.MatchTool(*r.Tool, string(tool)))
}

// Adds reports whether an event that does not match the request is shown nevertheless, because it is a comparison of a
// record of calls.
func (r *Request) Adds(signer event.Signer, kind string) bool {
	return r.Coverage && signer == event.SignerSystem && kind == coverageKind
}

// MatchesSubject reports whether the subject of an event, and its issuer, are those of the request. It compares the members of
// on_behalf_of without checking their form. e may be nil if the request names no subject.
func (r *Request) MatchesSubject(e *event.Envelope) bool {
	if r.Subject == "" {
		return true
	}
	if e == nil {
		return false
	}
	var party struct {
		Issuer  any `json:"issuer"`
		Subject any `json:"subject"`
	}
	value := jsontext.Value(e.Subject())
	if value.Kind() != '{' || json.Unmarshal(value, &party) != nil {
		return false
	}
	return party.Subject == r.Subject && (r.Issuer == "" || party.Issuer == r.Issuer)
}
