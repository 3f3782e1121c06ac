package pack

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/verify"
)

// approvalLine is the part of a line of approvals.ndjson that is checked. Members are nil if they are absent.
type approvalLine struct {
	ApprovalID   string
	Events       []Statement
	ActionDigest *id.Hash
	AgentID      *string
	ToolName     *string
	Payload      *string
	OnBehalfOf   jsontext.Value // an object
	People       []person
}

// person is a voter, according to the operator.
type person struct {
	account, email, name string
}

// parseApproval parses a line, which must be in canonical form and may have other members.
func parseApproval(line []byte) (a approvalLine, err error) {
	canonical, _, err := jcs.ParseObject(nil, line, jcs.MaxDepth)
	if err != nil || !bytes.Equal(canonical, line) {
		return a, fmt.Errorf("not the exact canonical form: %w", verify.ErrMalformed)
	}
	var members struct {
		ApprovalID   string           `json:"approval_id"`
		Events       []map[string]any `json:"events"`
		ActionDigest jsontext.Value   `json:"action_digest"`
		AgentID      jsontext.Value   `json:"agent_id"`
		ToolName     jsontext.Value   `json:"tool_name"`
		Payload      *string          `json:"payload"`
		OnBehalfOf   jsontext.Value   `json:"on_behalf_of"`
		People       jsontext.Value   `json:"people"`
	}
	if err := json.Unmarshal(line, &members); err != nil {
		return a, fmt.Errorf("%w: %w", verify.ErrMalformed, err)
	}
	a.ApprovalID, a.Payload, a.OnBehalfOf = members.ApprovalID, members.Payload, members.OnBehalfOf
	for _, m := range []struct {
		name  string
		value jsontext.Value
		to    any
	}{{"action_digest", members.ActionDigest, &a.ActionDigest}, {"agent_id", members.AgentID, &a.AgentID},
		{"tool_name", members.ToolName, &a.ToolName}} {
		if m.value == nil {
			continue
		}
		if err := json.Unmarshal(m.value, m.to); err != nil || m.value.Kind() != '"' {
			return a, fmt.Errorf("%s: %w", m.name, verify.ErrMalformed)
		}
	}
	if a.People, err = parsePeople(members.People); err != nil {
		return a, err
	}
	for _, e := range members.Events {
		envelope, isText := e["envelope"].(string)
		record, alsoText := e["record"].(string)
		if len(e) != 2 || !isText || !alsoText {
			return a, fmt.Errorf("events: %w", verify.ErrMalformed)
		}
		a.Events = append(a.Events, Statement{Envelope: envelope, Record: record})
	}
	if a.ApprovalID == "" || len(a.Events) == 0 || a.OnBehalfOf != nil && (a.OnBehalfOf.Kind() != '{' || a.Payload == nil) {
		return a, fmt.Errorf("approval_id, events, on_behalf_of: %w", verify.ErrMalformed)
	}
	return a, nil
}

// parsePeople parses the voters of an approval.
func parsePeople(text jsontext.Value) (people []person, err error) {
	if text == nil {
		return nil, nil
	}
	var list []map[string]any
	if err := json.Unmarshal(text, &list); err != nil || text.Kind() != '[' {
		return nil, fmt.Errorf("people: %w", verify.ErrMalformed)
	}
	for _, members := range list {
		var p person
		var is [3]bool
		p.account, is[0] = members["account_id"].(string)
		p.email, is[1] = members["email"].(string)
		if p.name, is[2] = members["name"].(string); is[2] != (len(members) == 3) {
			is[1] = false
		}
		twice := slices.ContainsFunc(people, func(other person) bool { return other.account == p.account })
		if len(members) < 2 || len(members) > 3 || p.account == "" || !is[1] || twice {
			return nil, fmt.Errorf("people: %w", verify.ErrMalformed)
		}
		people = append(people, p)
	}
	return people, nil
}

// checkApprovals checks the service's statements about approvals.
func (c *checker) checkApprovals() error {
	var last uint64
	seen := make(map[id.Hash]bool) // hashes, because an id may be as long as a line
	for line, err := range c.files.lines(FileApprovals) {
		if err != nil {
			return err
		}
		if c.found.Approvals++; c.found.Approvals > MaxLines {
			return fmt.Errorf("too many: %w", verify.ErrMalformed)
		}
		a, err := parseApproval(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", c.found.Approvals, err)
		}
		first, err := c.checkApproval(&a)
		name := id.Hash(sha256.Sum256([]byte(a.ApprovalID)))
		if err == nil && (seen[name] || first <= last) {
			err = fmt.Errorf("order: %w", verify.ErrMismatch)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", c.found.Approvals, err)
		}
		seen[name], last = true, first
	}
	return c.checkUnlisted(seen)
}

// showStatement records a shown event of the service if it is a statement about an approval or a comparison.
func (c *checker) showStatement(e *event.Envelope, at id.Index) {
	c.addCoverage(e, at)
	if e.ActionKind != approvalKind {
		return
	}
	if c.unlisted == nil {
		c.unlisted = make([]bool, c.manifest.End-c.manifest.Begin)
	}
	c.unlisted[at-c.manifest.Begin] = true
}

// checkUnlisted checks that approvals.ndjson has the shown statements about approvals. With a filter, these may be about approvals
// that the filter excludes, so only those about the listed ones count. listed contains hashes of approval IDs.
func (c *checker) checkUnlisted(listed map[id.Hash]bool) error {
	if !slices.Contains(c.unlisted, true) {
		return nil
	}
	missing := fmt.Errorf("a shown event that is not in %s: %w", FileApprovals, verify.ErrMismatch)
	if !c.manifest.Request.Filters() {
		return missing
	}
	for shown, err := range c.shownAgain() {
		if err != nil {
			return err
		}
		if !c.unlisted[shown.at-c.manifest.Begin] {
			continue
		}
		var of struct {
			ApprovalID jsontext.Value `json:"approval_id"`
		}
		if err := json.Unmarshal(shown.envelope.Payload, &of); err != nil {
			return fmt.Errorf("payload: %w: %w", verify.ErrMalformed, err)
		}
		if text, is := jcs.AppendDecoded(nil, of.ApprovalID); is && listed[sha256.Sum256(text)] {
			return missing
		}
	}
	return nil
}

// checkApproval checks the statements about one approval, and returns the sequence number of the first.
func (c *checker) checkApproval(a *approvalLine) (first uint64, err error) {
	var last uint64
	var action id.Hash
	actors := make(map[string]bool)
	for i := range a.Events {
		d, at, err := c.checkLogged([]byte(a.Events[i].Record))
		if err != nil {
			return 0, err
		}
		if err := c.checkStatement(&d, a.Events[i].Envelope, approvalKind); err != nil {
			return 0, err
		}
		var statement approvalPayload
		if err := json.Unmarshal(d.Envelope.Payload, &statement); err != nil || statement.ApprovalID != a.ApprovalID {
			return 0, fmt.Errorf("approval_id: %w", verify.ErrMismatch)
		}
		named, err := parseActionDigest(statement.ActionDigest)
		if err == nil && i > 0 && named != action {
			err = fmt.Errorf("action_digest of the events: %w", verify.ErrMismatch)
		}
		if err == nil {
			err = c.checkVote(&d, &statement, named)
		}
		if err != nil {
			return 0, err
		}
		if action = named; c.unlisted != nil {
			c.unlisted[at-c.manifest.Begin] = false
		}
		if c.acts != nil && !c.acts.AddStatement(a.ApprovalID, at, d.Envelope) {
			return 0, fmt.Errorf("too many votes: %w", verify.ErrMalformed)
		}
		actor, _, _ := strings.Cut(d.Envelope.ActorPrincipal, "/")
		actors[actor] = true
		if d.Record.SequenceNum <= last {
			return 0, fmt.Errorf("order of events: %w", verify.ErrMismatch)
		}
		if last = d.Record.SequenceNum; i == 0 {
			first = last
		}
	}
	for _, p := range a.People {
		if !actors[p.account] {
			return 0, fmt.Errorf("people and the events: %w", verify.ErrMismatch)
		}
		if _, known := c.people[p.account]; c.acts != nil && !known && len(c.people) < MaxApprovers && p.isShort() {
			c.people[p.account] = p
		}
	}
	return first, c.checkAction(a, action)
}

// isShort reports whether a report can name the person.
func (p *person) isShort() bool {
	const most = 512 // bytes of each text, more than the service takes
	return max(len(p.account), len(p.email), len(p.name)) <= most
}

// parseActionDigest parses the action_digest of a statement. It returns the zero hash if there is none.
func parseActionDigest(text jsontext.Value) (digest id.Hash, err error) {
	if text == nil {
		return digest, nil
	}
	if err := json.Unmarshal(text, &digest); err != nil || text.Kind() != '"' || digest == (id.Hash{}) {
		return digest, fmt.Errorf("action_digest of an event: %w", verify.ErrMalformed)
	}
	return digest, nil
}

// checkAction compares the action that a line shows with the action_digest of the events, which is zero if they have none.
func (c *checker) checkAction(a *approvalLine, proved id.Hash) error {
	if a.ActionDigest != nil && (*a.ActionDigest != proved || proved == id.Hash{}) {
		return fmt.Errorf("action_digest and the events: %w", verify.ErrMismatch)
	}
	if a.Payload == nil {
		c.report.ActionsUnchecked++
		return nil
	}
	if a.AgentID == nil || a.ToolName == nil {
		return fmt.Errorf("a payload without agent_id and tool_name: %w", verify.ErrMalformed)
	}
	payload, _, err := jcs.ParseObject(nil, []byte(*a.Payload), jcs.MaxDepth)
	if err != nil || string(payload) != *a.Payload {
		return fmt.Errorf("payload: not the exact canonical form: %w", verify.ErrMalformed)
	}
	action := grant.Action{Organization: c.manifest.OrganizationID, Agent: id.Agent(*a.AgentID), Tool: id.Tool(*a.ToolName),
		OnBehalfOf: a.OnBehalfOf, Payload: payload}
	if action.Digest() != proved {
		return fmt.Errorf("agent_id, tool_name, payload, on_behalf_of and action_digest: %w", verify.ErrMismatch)
	}
	return nil
}
