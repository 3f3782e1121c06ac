package people

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/internal/wire"
)

// ApprovalsCommand is aps approvals.
type ApprovalsCommand struct {
	List    approvalsListCommand `cmd:"" help:"Print pending approvals."`
	Show    approvalsShowCommand `cmd:"" help:"Print one approval with everything that it covers."`
	Approve approveCommand       `cmd:"" help:"Approve an action, after showing its tool and payload."`
	Deny    denyCommand          `cmd:"" help:"Deny an action. One denial is final."`
	Revoke  revokeCommand        `cmd:"" help:"End an approval that is not used yet, also one that you have just given."`
}

// consoleApproval is an approval in the form of the console.
type consoleApproval struct {
	ID           string           `json:"approval_id"`
	Status       string           `json:"status"`
	Agent        id.Agent         `json:"agent_id"`
	Tool         id.Tool          `json:"tool_name"`
	Payload      jsontext.Value   `json:"payload"`
	OnBehalfOf   *wire.OnBehalfOf `json:"on_behalf_of,omitzero"`
	ActionDigest id.Hash          `json:"action_digest"`
	Quorum       int              `json:"quorum"`
	ExpiresAt    id.Instant       `json:"expires_at"`
	Policy       struct {
		Reason string `json:"reason"`
	} `json:"policy"`
	Votes []struct {
		Email     string `json:"email"`
		Vote      string `json:"vote"`
		Comment   string `json:"comment"`
		Signature *struct {
			RegisteredAt string `json:"key_registered_at"`
		} `json:"signature"`
	} `json:"votes"`
}

type approvalsListCommand struct {
	personFlags
	Status string `default:"pending" help:"For example pending, approved, consumed or denied." type:"word" expected:"a status: pending, approved, consumed, denied, expired, cancelled, revoked or invalidated"`
}

// Run implements the command.
func (c *approvalsListCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	table := commandline.NewTable(t.Out, "APPROVAL", "STATUS", "AGENT", "TOOL", "UNTIL")
	for after := ""; ; {
		var page struct {
			Approvals []consoleApproval `json:"approvals"`
			Next      *string           `json:"next"`
		}
		if err := p.callConsole(ctx, http.MethodGet, approvalsPath(c.Status, after), nil, &page); err != nil {
			return err
		}
		for i := range page.Approvals {
			if err := page.Approvals[i].printSummary(t, table); err != nil {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		after = *page.Next
	}
}

// approvalsPath returns the path of a page of approvals. It leaves out empty parameters, which the service rejects.
func approvalsPath(status, after string) string {
	values := make(url.Values)
	for name, value := range map[string]string{"status": status, "after": after} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return "/approvals?" + values.Encode()
}

func (a *consoleApproval) printSummary(t *Terminal, table *commandline.Table) error {
	if t.JSON {
		return t.PrintJSON(a)
	}
	return table.PrintRow("%s  %-10s %s  %s  until %s", textcheck.Printable(a.ID), textcheck.Printable(a.Status),
		textcheck.Printable(string(a.Agent)), textcheck.Printable(string(a.Tool)), a.ExpiresAt)
}

type approvalsShowCommand struct {
	personFlags
	ID string `arg:"" help:"Approval id." type:"id" expected:"an approval ID, such as apr_…"`
}

// Run implements the command.
func (c *approvalsShowCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	var a consoleApproval
	if err := p.callConsole(ctx, http.MethodGet, "/approvals/"+url.PathEscape(c.ID), nil, &a); err != nil {
		return err
	}
	return a.printDetails(t)
}

func (a *consoleApproval) printDetails(t *Terminal) error {
	if t.JSON {
		return t.PrintJSON(a)
	}
	agreed := 0
	for _, v := range a.Votes {
		if v.Vote == "approve" {
			agreed++
		}
	}
	subject := ""
	if of := a.OnBehalfOf; of != nil {
		subject = "\nfor       " + describeSubject(of) + " " + textcheck.Printable(string(of.Canonical()))
	}
	err := t.PrintLine("approval  %s\nstatus    %s, %d of %d agreed\nagent     %s\ntool      %s%s\n"+
		"payload   %s\nreason    %s\nuntil     %s\naction    %s",
		textcheck.Printable(a.ID), textcheck.Printable(a.Status), agreed, a.Quorum,
		textcheck.Printable(string(a.Agent)),
		textcheck.Printable(string(a.Tool)), subject, textcheck.Printable(string(jcs.UntagPayload(a.Payload))),
		textcheck.Printable(a.Policy.Reason),
		a.ExpiresAt, a.ActionDigest)
	for _, v := range a.Votes {
		err = errors.Join(err, t.PrintLine("vote      %s by %s %s", textcheck.Printable(v.Vote),
			textcheck.Printable(v.Email),
			textcheck.Printable(v.Comment)))
		signature := "none: an unverified operator claim"
		if v.Signature != nil {
			signature = "by the approver's passkey, registered on " + textcheck.Printable(v.Signature.RegisteredAt)
		}
		err = errors.Join(err, t.PrintLine("signature %s", signature))
	}
	return err
}

type voteFlags struct {
	personFlags
	ID      string `arg:"" help:"Approval id." type:"id" expected:"an approval ID, such as apr_…"`
	Action  string `required:"" placeholder:"HEX" help:"Digest of the action, as show prints it." type:"hash" expected:"the digest of the action as approvals show prints it, 64 hexadecimal digits"`
	Comment string `help:"Why."`
}

type approveCommand struct{ voteFlags }

// Run implements the command.
func (c *approveCommand) Run(ctx context.Context, t *Terminal) error {
	return c.castVote(ctx, t, "approve")
}

type denyCommand struct{ voteFlags }

// Run implements the command.
func (c *denyCommand) Run(ctx context.Context, t *Terminal) error { return c.castVote(ctx, t, "deny") }

type revokeCommand struct {
	personFlags
	ID     string `arg:"" help:"Approval id." type:"id" expected:"an approval ID, such as apr_…"`
	Reason string `help:"Why. The agent reads it."`
}

// Run implements the command.
func (c *revokeCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	var after consoleApproval
	if err := p.callConsole(ctx, http.MethodPost, "/approvals/"+url.PathEscape(c.ID)+"/revoke",
		map[string]string{"reason": c.Reason}, &after); err != nil {
		return err
	}
	return after.printDetails(t)
}

func (c *voteFlags) castVote(ctx context.Context, t *Terminal, vote string) error {
	action, err := id.ParseHash(c.Action)
	if err != nil {
		return fmt.Errorf("--action: %w", err)
	}
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	ballot := map[string]any{"vote": vote, "comment": c.Comment, "action_digest": action}
	var after consoleApproval
	if err := p.callConsole(ctx, http.MethodPost, "/approvals/"+url.PathEscape(c.ID)+"/votes", ballot,
		&after); err != nil {
		return err
	}
	return after.printDetails(t)
}
