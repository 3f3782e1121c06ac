package people

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// MCPApprovalsCommand is aps mcp approvals: the queue of approvals as an MCP server. Its client acts for the
// person of the session, and the service decides as ever who may vote.
type MCPApprovalsCommand struct {
	personFlags
}

// Run serves the tools by standard input and output until the client has gone.
func (c *MCPApprovalsCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	return newApprovalServer(p.newest).Run(ctx, &mcp.StdioTransport{})
}

// newest returns the session, or the one that aps login has kept since.
func (s *session) newest() (*session, error) {
	if !s.kept {
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
// tool is made by the session that open returns.
func newApprovalServer(open func() (*session, error)) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "agentledger-approvals", Version: "1"}, nil)
	desk := approvalDesk{open}
	mcp.AddTool(server, &mcp.Tool{Name: "list_approvals",
		Description: "List the actions of agents that wait for people, one page. Pass next as after for another one.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, desk.listPage)
	mcp.AddTool(server, &mcp.Tool{Name: "show_approval",
		Description: "Show one approval with the agent, the tool, the whole payload and the votes.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, desk.showApproval)
	destructive := true
	mcp.AddTool(server, &mcp.Tool{Name: "vote_on_approval",
		Description: "Approve or deny an action for the person who is signed in. Ask the person first: " +
			"show the tool and the payload, and pass the action_digest that was shown. A denial is final.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &destructive}}, desk.castVote)
	return server
}

// approvalDesk makes the calls of the tools.
type approvalDesk struct{ open func() (*session, error) }

type listInput struct {
	Status string `json:"status,omitempty" jsonschema:"pending (the default), approved, consumed, denied and so on"`
	After  string `json:"after,omitempty" jsonschema:"next of the page before"`
}

type nameInput struct {
	ID string `json:"approval_id" jsonschema:"apr_…"`
}

type voteInput struct {
	ID      string `json:"approval_id" jsonschema:"apr_…"`
	Vote    string `json:"vote" jsonschema:"approve or deny"`
	Action  string `json:"action_digest" jsonschema:"digest of the action, as show_approval has it"`
	Comment string `json:"comment,omitempty" jsonschema:"why, for the agent and the record"`
	Code    string `json:"reason_code,omitempty" jsonschema:"why, as a word for programs: over_budget"`
}

// toolResult is a result with the service's JSON as text.
type toolResult = *mcp.CallToolResult

func (d approvalDesk) listPage(ctx context.Context, _ *mcp.CallToolRequest, in listInput) (toolResult, any, error) {
	if in.Status == "" {
		in.Status = "pending"
	}
	return d.fetch(ctx, http.MethodGet,
		"/approvals?status="+url.QueryEscape(in.Status)+"&after="+url.QueryEscape(in.After), nil)
}

func (d approvalDesk) showApproval(ctx context.Context, _ *mcp.CallToolRequest, in nameInput) (toolResult, any, error) {
	return d.fetch(ctx, http.MethodGet, "/approvals/"+url.PathEscape(in.ID), nil)
}

func (d approvalDesk) castVote(ctx context.Context, _ *mcp.CallToolRequest, in voteInput) (toolResult, any, error) {
	action, err := id.ParseHash(strings.TrimSpace(in.Action))
	if err != nil {
		return nil, nil, fmt.Errorf("action_digest: %w", err)
	}
	if in.Vote != "approve" && in.Vote != "deny" {
		return nil, nil, fmt.Errorf("vote: must be approve or deny")
	}
	ballot := map[string]any{"vote": in.Vote, "comment": in.Comment, "action_digest": action}
	if in.Code != "" {
		ballot["reason_code"] = in.Code
	}
	return d.fetch(ctx, http.MethodPost, "/approvals/"+url.PathEscape(in.ID)+"/votes", ballot)
}

// fetch makes one console call. The answer is JSON of the service.
func (d approvalDesk) fetch(ctx context.Context, method, path string, body any) (toolResult, any, error) {
	p, err := d.open()
	if err != nil {
		return nil, nil, err
	}
	var text rawText
	if err := p.callConsole(ctx, method, path, body, &text); err != nil {
		return nil, nil, adviseSignIn(err)
	}
	shown := &mcp.TextContent{Text: string(textcheck.EscapeJSON(text))}
	return &mcp.CallToolResult{Content: []mcp.Content{shown}}, nil, nil
}

// adviseSignIn adds to a refusal what the person can do outside of the model's reach.
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
