package main

import (
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

type grantReceiptCommand struct {
	Receipt string `arg:"" help:"File with the receipt, - for standard input." type:"input" expected:"a file with a receipt, or - for standard input"`
	Key     string `required:"" placeholder:"VKEY" help:"The tool's own key." type:"vkey"`
	actionFlags
}

func (*grantReceiptCommand) Help() string {
	return `Status 0: the tool signed it for this action. 1: it did not. 2: can't tell.

The payload is that of the intent, with the guard's members.`
}

// toolReceiptReport is the JSON output of grant receipt.
type toolReceiptReport struct {
	OK           bool       `json:"ok"`
	Error        string     `json:"error,omitzero"`
	Tool         string     `json:"confirmed_by,omitzero"`
	AgentID      id.Agent   `json:"agent_id,omitzero"`
	ToolName     id.Tool    `json:"tool_name,omitzero"`
	ActionDigest id.Hash    `json:"action_digest,omitzero"`
	ApprovalID   string     `json:"approval_id,omitzero"`
	Intent       id.Event   `json:"intent_event_id,omitzero"` // without an approval
	Status       int        `json:"status,omitzero"`
	At           id.Instant `json:"at,omitzero"`
}

func (c *grantReceiptCommand) Run(s *streams) error {
	key, err := tlog.ParseVerifierKey(c.Key)
	if err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	action, err := c.digest(s)
	if err != nil {
		return err
	}
	note, err := s.readInput(c.Receipt, maxGrant)
	if err != nil {
		return err
	}
	r, bad := grant.OpenReceipt(note, key)
	if bad == nil && r.ActionDigest != action {
		bad = errors.New("the receipt is for another action")
	}
	report := toolReceiptReport{
		OK: bad == nil, AgentID: r.Agent, ToolName: r.Tool, ActionDigest: r.ActionDigest, ApprovalID: r.Approval, Intent: r.Intent, Status: r.Status, At: r.At,
	}
	switch {
	case bad != nil:
		report.Error = bad.Error()
	default:
		report.Tool = key.Name()
	}
	switch {
	case s.json:
		err = s.printJSON(report)
	case bad == nil:
		unchecked := ""
		if r.Approval == "" {
			unchecked = ", and checked no grant"
		}
		err = s.printLine("confirmed by %s: %s did this by %s, status %d at %s%s", key.Name(), r.Agent, r.Tool, r.Status, r.At, unchecked)
	}
	if err == nil && bad != nil {
		err = &negative{fmt.Errorf("verify receipt: %w", bad)}
	}
	return err
}
