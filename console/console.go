// Package console is the HTTP surface by which people run their organization:
// ingest keys, agents and their keys, policies, approvals, runs, settings.
//
// Invariants:
//
//   - Each call acts on the organization of the caller's session and on no other;
//     objects of another organization are 404, like objects that do not exist.
//   - Every role reads; owner, admin and approver decide on approvals; owner and
//     admin write. The session is checked before the body is read.
//   - Of an inactive organization everything can be read and nothing changed, but
//     that keys can be revoked.
//   - A request that a browser makes for another site changes nothing.
//   - In the load control, its requests and those of the organization's senders are one
//     tenant. A request beyond the limit is refused before its body is read.
//   - Lists have pages. A secret is in the answer to the call that made it, and in
//     no other.
//   - No answer is ever cached.
package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"

	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/webhook"
	"github.com/agentledger/agentledger/policy"
)

// CookieName is the cookie that holds a session's token.
const CookieName = "agentledger_session"

// Sessions finds the session of a token; fault.Unauthorized when there is none, or when it
// has ended. The session is at most one second old.
type Sessions interface {
	Session(ctx context.Context, token string) (*account.Session, error)
}

// Options configure New. All but the last three are required.
type Options struct {
	Edge       *edge.Edge
	Sessions   Sessions
	Orgs       *org.Orgs
	Agents     *agent.Agents
	Rulebook   *policystore.Policies
	Approvals  *approval.Approvals
	Workflows  *workflow.Workflows
	Outbox     *webhook.Sender
	Rehearsals *simulate.Simulator
	Witnesses  Witnesses
	PublicURL  string // pages of its origin may call, also through a proxy that changes Host

	// Control is the load control shared with other surfaces; default: one of its own for
	// runtime.GOMAXPROCS(0) processors.
	Control *admission.Control
	// Calls under way in all and of one organization. Defaults: 1,024 and 256.
	MaxInFlight, MaxInFlightOrganization int
}

// Server serves the surface. It keeps nothing of a call.
type Server struct {
	Options
	crossOrigin *http.CrossOriginProtection
	limit       *admission.Limit
}

// New returns a server.
func New(o Options) (*Server, error) {
	if o.Control == nil {
		o.Control = admission.New(runtime.GOMAXPROCS(0))
	}
	s := &Server{
		Options: o, crossOrigin: http.NewCrossOriginProtection(),
		limit: admission.NewLimit(cmp.Or(o.MaxInFlight, 1024), cmp.Or(o.MaxInFlightOrganization, 256)),
	}
	u, err := url.Parse(o.PublicURL)
	if err == nil {
		err = s.crossOrigin.AddTrustedOrigin(u.Scheme + "://" + strings.ToLower(u.Host))
	}
	if err != nil {
		return nil, fmt.Errorf("console: public URL: %w", err)
	}
	return s, nil
}

// Routes adds the routes of the surface to r.
func (s *Server) Routes(r *edge.Router) {
	permit := func(right string) edge.Permission { return edge.Permission{Credential: edge.Session, Right: right} }
	reads, writes, revokes, votes := permit(rightRead), permit(rightWrite), permit(rightRevoke), permit(rightVote)
	none, some := edge.Body{}, edge.JSONBody(maxBody)
	document := edge.JSONBody(policy.MaxBytes)
	var table edge.Table[call]
	table.Add("GET", "/v1/console/ingest-keys", reads, none, s.listIngestKeys)
	table.Add("POST", "/v1/console/ingest-keys", writes, some, s.createIngestKey)
	table.Add("GET", "/v1/console/ingest-keys/{key}", reads, none, s.answerIngestKey)
	table.Add("DELETE", "/v1/console/ingest-keys/{key}", revokes, none, s.revokeIngestKey)
	table.Add("GET", "/v1/console/agents", reads, none, s.listAgents)
	table.Add("POST", "/v1/console/agents", writes, some, s.createAgent)
	table.Add("GET", "/v1/console/agents/{agent}", reads, none, s.answerAgent)
	table.Add("PATCH", "/v1/console/agents/{agent}", writes, some, s.patchAgent)
	table.Add("GET", "/v1/console/agents/{agent}/keys", reads, none, s.listAgentKeys)
	table.Add("POST", "/v1/console/agents/{agent}/keys", writes, some, s.registerKey)
	table.Add("POST", "/v1/console/agents/{agent}/keys/{key}/retire", writes, some, s.retireAgentKey)
	table.Add("POST", "/v1/console/agents/{agent}/keys/{key}/revoke", revokes, some, s.revokeAgentKey)
	table.Add("GET", "/v1/console/policies", reads, none, s.listPolicies)
	table.Add("POST", "/v1/console/policies", writes, document, s.createPolicy)
	table.Add("GET", "/v1/console/policies/{policy}", reads, none, s.answerPolicy)
	table.Add("PATCH", "/v1/console/policies/{policy}", writes, document, s.draftPolicy)
	table.Add("DELETE", "/v1/console/policies/{policy}", writes, none, s.deletePolicy)
	table.Add("POST", "/v1/console/policies/{policy}/activate", writes, some, s.activatePolicy)
	table.Add("POST", "/v1/console/policies/{policy}/simulate", reads, edge.JSONBody(maxSimulation), s.simulatePolicy)
	table.Add("GET", "/v1/console/approvals", reads, none, s.listApprovals)
	table.Add("GET", "/v1/console/approvals/{approval}", reads, none, s.answerApproval)
	table.Add("POST", "/v1/console/approvals/{approval}/votes", votes, some, s.voteOnApproval)
	table.Add("POST", "/v1/console/approvals/{approval}/revoke", votes, some, s.revokeApproval)
	table.Add("GET", "/v1/console/runs", reads, none, s.listWorkflowRuns)
	table.Add("GET", "/v1/console/runs/{run}", reads, none, s.answerRun)
	table.Add("GET", "/v1/console/webhooks", reads, none, s.listWebhooks)
	table.Add("POST", "/v1/console/webhooks/{webhook}/replay", writes, some, s.replayWebhook)
	table.Add("GET", "/v1/console/witnesses", reads, none, s.answerWitnesses)
	table.Add("PUT", "/v1/console/witnesses", writes, some, s.putWitnesses)
	table.Add("DELETE", "/v1/console/witnesses", writes, none, s.deleteWitnesses)
	table.Add("POST", "/v1/console/witnesses/ask", writes, none, s.askWitnesses)
	table.Add("GET", "/v1/console/organization/plan-usage", reads, none, s.answerPlanUsage)
	table.Add("GET", "/v1/console/organization", reads, none, s.getOrganization)
	table.Add("PATCH", "/v1/console/organization", writes, some, s.patchOrganization)
	edge.Mount(r, edge.Surface[call]{Edge: s.Edge, Serve: s.serveRoute}, table)
}
