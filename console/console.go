// Package console is the HTTP surface by which people run their organization:
// ingest keys, agents and their keys, policies, approvals, runs, settings.
//
// What always holds:
//
//   - Each call acts on the organization of the caller's session and on no other;
//     what belongs to another one is 404, like what is not there at all.
//   - Every role reads; owner, admin and approver decide on approvals; owner and
//     admin write. Who asks is settled before anything
//     of the request's body is looked at.
//   - Of an inactive organization everything can be read and nothing changed, but
//     that keys can be revoked.
//   - A request that a browser makes for another site changes nothing.
//   - Its work has its place on the floor as one party with the organization's
//     senders, and what is too much is refused before its body is looked at.
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

	"github.com/go-chi/chi/v5"

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
)

// CookieName is the cookie that holds a session's token.
const CookieName = "agentledger_session"

// Sessions tells who is behind a session's token; fault.Unauthorized when there
// is no such session, or not any more. What they say is at most a second old.
type Sessions interface {
	Session(ctx context.Context, token string) (*account.Session, error)
}

// Options configure New. All but the last three are required.
type Options struct {
	Edge       *edge.Edge
	Sessions   Sessions
	Orgs       *org.Orgs
	Agents     *agent.Agents
	Rulebook   *policystore.Rulebook
	Approvals  *approval.Approvals
	Workflows  *workflow.Workflows
	Outbox     *webhook.Outbox
	Rehearsals *simulate.Rehearsals
	Witnesses  Witnesses
	PublicURL  string // pages of its origin may call, also through a proxy that changes Host

	// Floor is shared with other surfaces; default: one of its own for
	// runtime.GOMAXPROCS(0) processors.
	Floor *admission.Floor
	// Calls under way in all and of one organization. Defaults: 1,024 and 256.
	MaxInFlight, MaxInFlightOrganization int
}

// Server serves the surface. It keeps nothing of a call.
type Server struct {
	Options
	crossOrigin *http.CrossOriginProtection
	gate        *admission.Gate
}

// New returns a server.
func New(o Options) (*Server, error) {
	if o.Floor == nil {
		o.Floor = admission.NewFloor(runtime.GOMAXPROCS(0))
	}
	s := &Server{
		Options: o, crossOrigin: http.NewCrossOriginProtection(),
		gate: admission.NewGate(cmp.Or(o.MaxInFlight, 1024), cmp.Or(o.MaxInFlightOrganization, 256)),
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
func (s *Server) Routes(r chi.Router) {
	r.Route("/v1/console", func(r chi.Router) {
		r.Method("GET", "/ingest-keys", s.read(s.listIngestKeys))
		r.Method("POST", "/ingest-keys", s.write(s.createIngestKey))
		r.Method("GET", "/ingest-keys/{key}", s.read(s.getIngestKey))
		r.Method("DELETE", "/ingest-keys/{key}", s.revoke(s.revokeIngestKey))

		r.Method("GET", "/agents", s.read(s.listAgents))
		r.Method("POST", "/agents", s.write(s.createAgent))
		r.Method("GET", "/agents/{agent}", s.read(s.getAgent))
		r.Method("PATCH", "/agents/{agent}", s.write(s.patchAgent))
		r.Method("GET", "/agents/{agent}/keys", s.read(s.listKeys))
		r.Method("POST", "/agents/{agent}/keys", s.write(s.registerKey))
		r.Method("POST", "/agents/{agent}/keys/{key}/retire", s.write(s.retireKey))
		r.Method("POST", "/agents/{agent}/keys/{key}/revoke", s.revoke(s.revokeKey))

		r.Method("GET", "/policies", s.read(s.listPolicies))
		r.Method("POST", "/policies", s.write(s.createPolicy))
		r.Method("GET", "/policies/{policy}", s.read(s.getPolicy))
		r.Method("PATCH", "/policies/{policy}", s.write(s.draftPolicy))
		r.Method("DELETE", "/policies/{policy}", s.write(s.deletePolicy))
		r.Method("POST", "/policies/{policy}/activate", s.write(s.activatePolicy))
		r.Method("POST", "/policies/{policy}/simulate", s.read(s.simulatePolicy))

		r.Method("GET", "/approvals", s.read(s.listApprovals))
		r.Method("GET", "/approvals/{approval}", s.read(s.getApproval))
		r.Method("POST", "/approvals/{approval}/votes", s.vote(s.castVote))
		r.Method("POST", "/approvals/{approval}/revoke", s.vote(s.revokeApproval))

		r.Method("GET", "/runs", s.read(s.listRuns))
		r.Method("GET", "/runs/{run}", s.read(s.getRun))

		r.Method("GET", "/webhooks", s.read(s.listWebhooks))
		r.Method("POST", "/webhooks/{webhook}/replay", s.write(s.replayWebhook))

		r.Method("GET", "/witnesses", s.read(s.getWitnesses))
		r.Method("PUT", "/witnesses", s.write(s.putWitnesses))
		r.Method("DELETE", "/witnesses", s.write(s.deleteWitnesses))
		r.Method("POST", "/witnesses/ask", s.write(s.askWitnesses))

		r.Method("GET", "/organization/plan-usage", s.read(s.planUsage))
		r.Method("GET", "/organization", s.read(s.getOrganization))
		r.Method("PATCH", "/organization", s.write(s.patchOrganization))
	})
}
