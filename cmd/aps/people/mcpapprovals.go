package people

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/mcp/message"
	"github.com/agentledger/agentledger/internal/mcp/toolserver"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// MCPApprovalsCommand is aps mcp approvals: the queue of approvals as an MCP server. Its client acts for the user of the
// session, and the service decides who may vote.
type MCPApprovalsCommand struct {
	personFlags
}

// Run serves the tools over standard input and output until the client disconnects.
func (c *MCPApprovalsCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	return newApprovalServer(p.newest).Serve(ctx, message.NewLines(t.In, t.Out, 0))
}

// newest returns the session, or the one that aps login has saved since.
func (s *session) newest() (*session, error) {
	if !s.stored {
		return s, nil
	}
	now := newSession(s.base)
	var err error
	if now.cookie, err = readKept(s.base); err == nil && now.cookie == nil {
		err = errors.New("not signed in: run aps login")
	}
	return now, err
}

// newApprovalServer returns the server of the tools list_approvals, show_approval and vote_on_approval. Each call of a
// tool uses the session that open returns.
func newApprovalServer(open func() (*session, error)) *toolserver.Server {
	desk := approvalDesk{open}
	return &toolserver.Server{Name: "agentledger-approvals", Version: "1", Tools: []toolserver.Tool{
		{Name: "list_approvals", ReadOnly: true, Call: desk.listPage, Arguments: listArguments(),
			Description: "List the actions of agents that wait for people, one page. " +
				"Pass next as after for another one."},
		{Name: "show_approval", ReadOnly: true, Call: desk.showApproval, Arguments: voteArguments()[:1],
			Description: "Show one approval with the agent, the tool, the whole payload and the votes."},
		{Name: "vote_on_approval", Call: desk.castVote, Arguments: voteArguments(),
			Description: "Approve or deny an action for the person who is signed in. Ask the person first: " +
				"show the tool and the payload, and pass the action_digest that was shown. A denial is final."},
	}}
}

func listArguments() []toolserver.Argument {
	return []toolserver.Argument{
		{Name: "status", Description: "pending (the default), approved, consumed, denied and so on"},
		{Name: "after", Description: "next of the page before"},
	}
}

// voteArguments returns the arguments of a vote. The first one is the approval's id.
func voteArguments() []toolserver.Argument {
	return []toolserver.Argument{
		{Name: "approval_id", Required: true, Description: "apr_…"},
		{Name: "vote", Required: true, Description: "approve or deny"},
		{Name: "action_digest", Required: true, Description: "digest of the action, as show_approval has it"},
		{Name: "comment", Description: "why, for the agent and the record"},
		{Name: "reason_code", Description: "why, as a word for programs: over_budget"},
	}
}

// approvalDesk makes the calls of the tools.
type approvalDesk struct{ open func() (*session, error) }

func (d approvalDesk) listPage(ctx context.Context, in map[string]string) (string, error) {
	status := in["status"]
	if status == "" {
		status = "pending"
	}
	return d.fetch(ctx, http.MethodGet, approvalsPath(status, in["after"]), nil)
}

func (d approvalDesk) showApproval(ctx context.Context, in map[string]string) (string, error) {
	return d.fetch(ctx, http.MethodGet, "/approvals/"+url.PathEscape(in["approval_id"]), nil)
}

func (d approvalDesk) castVote(ctx context.Context, in map[string]string) (string, error) {
	action, err := id.ParseHash(strings.TrimSpace(in["action_digest"]))
	if err != nil {
		return "", fmt.Errorf("action_digest: %w", err)
	}
	if in["vote"] != "approve" && in["vote"] != "deny" {
		return "", fmt.Errorf("vote: must be approve or deny")
	}
	ballot := map[string]any{"vote": in["vote"], "comment": in["comment"], "action_digest": action}
	if in["reason_code"] != "" {
		ballot["reason_code"] = in["reason_code"]
	}
	return d.fetch(ctx, http.MethodPost, "/approvals/"+url.PathEscape(in["approval_id"])+"/votes", ballot)
}

// fetch makes one console call and returns the JSON response.
func (d approvalDesk) fetch(ctx context.Context, method, path string, body any) (string, error) {
	p, err := d.open()
	if err != nil {
		return "", err
	}
	var text rawText
	if err := p.callConsole(ctx, method, path, body, &text); err != nil {
		return "", adviseSignIn(err)
	}
	return string(textcheck.EscapeJSON(text)), nil
}

// adviseSignIn adds to a refusal what the user can do outside the model's reach.
func adviseSignIn(err error) error {
	refused, ok := errors.AsType[*Refusal](err)
	switch {
	case !ok || refused.Status != http.StatusUnauthorized:
		return err
	case refused.Code == "step_up":
		return fmt.Errorf("%w: the sign-in is older than 15 minutes. The person runs aps login in a terminal; "+
			"then the same vote is taken", err)
	}
	return fmt.Errorf("%w: the person runs aps login in a terminal", err)
}
