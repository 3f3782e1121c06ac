package pack

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/verify"
)

// approvalLine is the part of a line of approvals.ndjson that is checked.
type approvalLine struct {
	ApprovalID string      `json:"approval_id"`
	Events     []Statement `json:"events"`
}

// parseApproval reads a line in canonical form, with any members beside those that are checked.
func parseApproval(line []byte) (a approvalLine, err error) {
	canonical, _, err := jcs.ParseObject(nil, line, jcs.MaxDepth)
	if err != nil || !bytes.Equal(canonical, line) {
		return a, fmt.Errorf("not the exact canonical form: %w", verify.ErrMalformed)
	}
	var members struct {
		ApprovalID string           `json:"approval_id"`
		Events     []map[string]any `json:"events"`
	}
	if err := json.Unmarshal(line, &members); err != nil {
		return a, fmt.Errorf("%w: %w", verify.ErrMalformed, err)
	}
	a.ApprovalID = members.ApprovalID
	for _, e := range members.Events {
		envelope, isText := e["envelope"].(string)
		record, alsoText := e["record"].(string)
		if len(e) != 2 || !isText || !alsoText {
			return a, fmt.Errorf("events: %w", verify.ErrMalformed)
		}
		a.Events = append(a.Events, Statement{Envelope: envelope, Record: record})
	}
	if a.ApprovalID == "" || len(a.Events) == 0 {
		return a, fmt.Errorf("approval_id, events: %w", verify.ErrMalformed)
	}
	return a, nil
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
	return nil
}

// checkApproval checks the statements about one approval, and returns the sequence number of the first.
func (c *checker) checkApproval(a *approvalLine) (first uint64, err error) {
	var last uint64
	for i := range a.Events {
		d, _, err := c.checkLogged([]byte(a.Events[i].Record))
		if err != nil {
			return 0, err
		}
		if err := c.checkStatement(&d, a.Events[i].Envelope, approvalKind); err != nil {
			return 0, err
		}
		var said struct {
			ApprovalID string `json:"approval_id"`
		}
		if err := json.Unmarshal(d.Envelope.Payload, &said); err != nil || said.ApprovalID != a.ApprovalID {
			return 0, fmt.Errorf("approval_id: %w", verify.ErrMismatch)
		}
		if d.Record.SequenceNum <= last {
			return 0, fmt.Errorf("order of events: %w", verify.ErrMismatch)
		}
		if last = d.Record.SequenceNum; i == 0 {
			first = last
		}
	}
	return first, nil
}
