// Package console is the HTTP surface through which members run their organization, and through which their programs do so
// with a console token: ingest keys, agents, policies, approvals, runs, events, erasures, evidence packs, settings.
//
// A new call is a row in Server.Routes (console.go), and a handler in the file of its subject that parses the request, calls a
// function of a Caller and encodes its document (internal/wire). Pages call these functions too.
//
// The package hides who the caller is, what they may do, and how a call is admitted; a handler sees a caller who has the
// permission for the call.
//
// Invariants:
//
//   - An exported function checks the permission of its caller first (surface.check).
//   - Each call acts only on the organization of the caller's session. Objects of other organizations are answered with 404,
//     like objects that do not exist.
//   - The caller is identified before the body is read, by a session or, where tokens are allowed, by a token. A route
//     names a permission of package account, which the role of the caller must have.
//   - A vote requires a factor that the user proved within the last 15 minutes, or a signature by a passkey. Only an owner
//     erases, in a session whose factor was proved recently; the call starts the erasure, and package operate/erasure
//     completes it in the background. Tokens can do neither, and cannot change members or tokens.
//   - Only answers to roles that may read payloads contain them; the member is absent otherwise. Only these roles receive
//     evidence packs.
//   - An inactive organization can be read but not changed, except that keys can be revoked.
//   - A request that a browser makes on behalf of another site changes nothing.
//   - A console token acts for the user who created it, with a role that does not exceed that user's role. Events name both.
//   - Admission counts these calls and those of the organization's senders as one tenant. A request beyond the limit is
//     refused before its body is read.
//   - A list is paged, or it is a stream of at most MaxRows rows of durable events. A stream that fails after its first byte
//     ends with its connection, and waits for a slow reader for a bounded time. CSV follows RFC 4180 with a byte order mark,
//     and an apostrophe precedes what a spreadsheet would take for a formula; use NDJSON for the exact texts.
//   - At most one evidence pack is built at a time for each organization, two for each network and four for the service,
//     because a pack reads its range several times. A reader slower than 64 KiB a second is cut off.
//   - The holder of a link to a view reads that view without a session, and nothing else: an act that is not in the view is
//     answered like one that does not exist. Names of those who voted are shown, their addresses and accounts are not. Such
//     requests have a limit of their own.
//   - A secret appears only in the answer to the call that created it. Answers are never cached.
package console

import (
	"cmp"
	"net/http"
	"net/netip"
	"runtime"

	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/read/evidence"
	"github.com/agentledger/agentledger/internal/sysevent"

	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/internal/read/auditlist"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/apitoken"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/tenant/share"
	"github.com/agentledger/agentledger/internal/tenant/slacklink"
	"github.com/agentledger/agentledger/internal/tenant/toolname"
	"github.com/agentledger/agentledger/internal/tenant/voterkey"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/policy"
)

// Options configure New. All up to PublicURL are required.
type Options struct {
	Edge          *edge.Edge
	Sessions      Sessions
	Orgs          *org.Orgs
	Agents        *agent.Agents
	Policies      *policystore.Policies
	Approvals     *approval.Approvals
	Workflows     *workflow.Workflows
	Webhooks      *webhook.Sender
	StreamExports *streamexport.Exporter
	Simulator     *simulate.Simulator
	Witnesses     *witness.Witnesses
	Tokens        *apitoken.Tokens
	Shares        *share.Links
	Events        *eventlist.Reader
	Erasures      *erasure.Erasures
	Evidence      *evidence.Exporter
	People        eventlist.People
	Members       *member.Members
	VoterKeys     *voterkey.Keys
	Sources       sysevent.Sources
	SlackLinks    *slacklink.Links
	Callouts      webhook.Caller  // sends answers to Slack
	ToolNames     toolname.Getter // fetches the documents of did:web names; if nil, no name of a tool can be resolved
	PublicURL     string          // pages of its origin may call, even through a proxy that changes Host

	// Control is the load control shared with other surfaces. If nil, New makes one for runtime.GOMAXPROCS(0)
	// processors.
	Control *admission.Control
	// Address returns the network address of a client. If nil, it is the address of the peer.
	Address func(*http.Request) netip.Addr
	// Maximum numbers of calls in flight, in all and per organization. If zero, 1,024 and 256.
	MaxInFlight, MaxInFlightOrganization int
	// Maximum numbers of waiting long polls, in all and per organization. If zero, 1,024 and 64.
	MaxPolls, MaxPollsOrganization int
	// Maximum number of acts that a comparison with a tool's record reads. If zero, 50,000.
	MaxCoverageActs int
}

// Server serves the surface. It keeps no state of a call.
type Server struct {
	Options
	surface *surface
	audit   *auditlist.Reader
	acts    *eventlist.ActReader
	slack   *slackLimits

	comparisons *admission.Limit                     // of records of tools
	counts      *cache.Loading[share.ID, wire.Stats] // of the acts of links
}

// New returns a server.
func New(o Options) (*Server, error) {
	if o.Control == nil {
		o.Control = admission.New(runtime.GOMAXPROCS(0))
	}
	o.MaxCoverageActs = cmp.Or(o.MaxCoverageActs, 50_000)
	surface, err := newSurface(surfaceOptions{
		Edge: o.Edge, Sessions: o.Sessions, Tokens: o.Tokens, Organizations: o.Orgs, Represents: o.Members.Represents, PublicURL: o.PublicURL,
		Control: o.Control, Address: o.Address, MaxInFlight: cmp.Or(o.MaxInFlight, 1024),
		MaxInFlightOrganization: cmp.Or(o.MaxInFlightOrganization, 256),
		MaxPolls:                cmp.Or(o.MaxPolls, 1024), MaxPollsOrganization: cmp.Or(o.MaxPollsOrganization, 64),
	})
	audit := &auditlist.Reader{Index: o.Events.Index, Ledgers: o.Events.Ledgers, Sources: o.Sources, People: o.People,
		Organizations: o.Orgs}
	acts := &eventlist.ActReader{Events: o.Events, Agents: o.Agents, People: o.People}
	return &Server{Options: o, surface: surface, audit: audit, acts: acts, slack: newSlackLimits(),
		comparisons: admission.NewLimit(maxComparisons, maxComparisonsOrganization), counts: newSharedCounts(o.Shares.Clock)}, err
}

// Routes adds the routes of the surface to r.
func (s *Server) Routes(r *edge.Router) {
	reads, manages, revokes := permit(account.Read), permit(account.Manage), permit(account.RevokeKeys)
	tries, edits := permit(account.TryPolicies), permit(account.EditPolicies)
	votes, tokens, saves := permit(account.Vote), permit(account.UseTokens), permit(account.SaveViews)
	none, some, document := edge.Body{}, edge.JSONBody(maxBody), edge.JSONBody(policy.MaxBytes)
	var table routes
	table.Add("GET", "/v1/console/ingest-keys", reads, none, s.listIngestKeys).TakesPage()
	table.Add("POST", "/v1/console/ingest-keys", manages, some, s.createIngestKey)
	table.Add("GET", "/v1/console/ingest-keys/{key}", reads, none, s.answerIngestKey)
	table.Add("PATCH", "/v1/console/ingest-keys/{key}", manages, some, s.patchIngestKey)
	table.Add("DELETE", "/v1/console/ingest-keys/{key}", revokes, none, s.revokeIngestKey)
	table.Add("GET", "/v1/console/agents", reads, none, s.listAgents).TakesPage()
	table.Add("POST", "/v1/console/agents", manages, some, s.createAgent)
	table.Add("GET", "/v1/console/agents/{agent}", reads, none, s.answerAgent)
	table.Add("PATCH", "/v1/console/agents/{agent}", manages, some, s.patchAgent)
	table.Add("GET", "/v1/console/agents/{agent}/keys", reads, none, s.listAgentKeys).TakesPage()
	table.Add("POST", "/v1/console/agents/{agent}/keys", manages, some, s.registerKey)
	table.Add("POST", "/v1/console/agents/{agent}/keys/{key}/retire", manages, some, s.retireAgentKey)
	table.Add("POST", "/v1/console/agents/{agent}/keys/{key}/revoke", revokes, some, s.revokeAgentKey)
	table.Add("GET", "/v1/console/policies", reads, none, s.listPolicies).TakesPage()
	table.Add("POST", "/v1/console/policies", edits, document, s.createPolicy)
	table.Add("GET", "/v1/console/policies/{policy}", reads, none, s.answerPolicy).Takes("version")
	table.Add("GET", "/v1/console/policies/{policy}/versions", reads, none, s.listPolicyVersions).TakesPage()
	table.Add("PATCH", "/v1/console/policies/{policy}", edits, document, s.draftPolicy)
	table.Add("DELETE", "/v1/console/policies/{policy}", edits, none, s.deletePolicy)
	table.Add("POST", "/v1/console/policies/{policy}/activate", edits, some, s.activatePolicy)
	table.Add("POST", "/v1/console/policies/{policy}/deactivate", edits, some, s.deactivatePolicy)
	table.Add("POST", "/v1/console/policies/check", tries, document, s.checkPolicy)
	table.Add("POST", "/v1/console/policies/{policy}/simulate", tries, edge.JSONBody(maxSimulation), s.simulatePolicy)
	table.Add("GET", "/v1/console/approvals", reads, none, s.listApprovals).
		Takes("status", "agent_id", "tool", "may_vote", "order", "after", "limit")
	table.Add("GET", "/v1/console/approvals/{approval}", reads, none, s.answerApproval)
	signs := permit(account.SignedVote)
	table.Add("POST", "/v1/console/approvals/{approval}/votes", signs, some, s.voteOnApproval)
	table.Add("POST", "/v1/console/approvals/{approval}/votes/options", signs, some, s.beginVote)
	table.Add("GET", "/v1/console/voter-keys", reads, none, s.listVoterKeys).Takes("account_id", "after", "limit")
	table.Add("POST", "/v1/console/voter-keys", votes, some, s.registerVoterKey)
	table.Add("POST", "/v1/console/voter-keys/options", votes, some, s.beginVoterKey)
	table.Add("DELETE", "/v1/console/voter-keys/{credential}", votes, none, s.retireVoterKey)
	table.Add("GET", "/v1/console/deputies", reads, none, s.listDeputies).TakesPage()
	table.Add("PUT", "/v1/console/deputies/{membership}", votes, some, s.putDeputy)
	table.Add("DELETE", "/v1/console/deputies/{membership}", permit(account.Leave), none, s.deleteDeputy)
	table.Add("POST", "/v1/console/approvals/{approval}/revoke", votes, some, s.revokeApproval)
	table.Add("GET", "/v1/console/runs", reads, none, s.listWorkflowRuns).Takes("status", "agent_id", "after", "limit")
	table.Add("GET", "/v1/console/runs/{run}", reads, none, s.answerRun).TakesPage()
	s.addCalls(&table)
	table.Add("GET", "/v1/console/webhooks", reads, none, s.listWebhooks).TakesPage()
	table.Add("POST", "/v1/console/webhooks", manages, some, s.createEndpoint)
	table.Add("POST", "/v1/console/webhooks/callback-key/rotate", manages, some, s.rotateCallbackKey)
	table.Add("GET", "/v1/console/webhooks/{webhook}", reads, none, s.answerEndpoint)
	table.Add("PATCH", "/v1/console/webhooks/{webhook}", manages, some, s.patchEndpoint)
	table.Add("DELETE", "/v1/console/webhooks/{webhook}", manages, none, s.deleteEndpoint)
	table.Add("POST", "/v1/console/webhooks/{webhook}/rotate", manages, some, s.rotateEndpoint)
	table.Add("POST", "/v1/console/webhooks/{webhook}/test", manages, some, s.testEndpoint)
	table.Add("GET", "/v1/console/webhooks/{webhook}/deliveries", reads, none, s.listAttempts).TakesPage()
	table.Add("POST", "/v1/console/webhooks/{webhook}/replay", manages, some, s.replayWebhook)
	table.Add("GET", "/v1/console/stream-export", reads, none, s.answerStreamExport)
	table.Add("PUT", "/v1/console/stream-export", manages, some, s.putStreamExport)
	table.Add("DELETE", "/v1/console/stream-export", manages, none, s.deleteStreamExport)
	table.Add("POST", "/v1/console/stream-export/test", manages, some, s.testStreamExport)
	table.Add("GET", "/v1/console/columns", reads, none, s.answerColumns)
	table.Add("PUT", "/v1/console/columns", manages, some, s.putColumns)
	table.Add("GET", "/v1/console/tool-keys", reads, none, s.answerToolKeys)
	table.Add("PUT", "/v1/console/tool-keys", manages, some, s.putToolKeys)
	table.Add("GET", "/v1/console/views", reads, none, s.answerViews)
	table.Add("PUT", "/v1/console/views", saves, some, s.putView)
	table.Add("DELETE", "/v1/console/views", saves, none, s.deleteView).Takes("name")
	table.Add("GET", "/v1/console/witnesses", reads, none, s.answerWitnesses)
	table.Add("PUT", "/v1/console/witnesses", manages, some, s.putWitnesses)
	table.Add("DELETE", "/v1/console/witnesses", manages, none, s.deleteWitnesses)
	table.Add("POST", "/v1/console/witnesses/ask", manages, none, s.askWitnesses)
	table.Add("GET", "/v1/console/tokens", tokens, none, s.listTokens).TakesPage()
	table.Add("POST", "/v1/console/tokens", tokens, some, s.surface.whileActive(s.createToken))
	table.Add("DELETE", "/v1/console/tokens/{token}", tokens, none, s.deleteToken)
	table.Add("GET", "/v1/console/organization/plan-usage", reads, none, s.answerPlanUsage)
	table.Add("GET", "/v1/console/organization", reads, none, s.getOrganization)
	table.Add("PATCH", "/v1/console/organization", manages, some, s.patchOrganization)
	s.surface.Mount(r, table)
	s.routeDownload(r)
	s.addSlackRoute(r)
}

// addCalls adds the routes of events, erasures and evidence.
func (s *Server) addCalls(table *routes) {
	s.addReadingRoutes(table)
	s.addErasureRoutes(table)
	s.addShareRoutes(table)
	s.addCoverageRoute(table)
	newEvidenceCalls(s.Evidence).AddRoutes(table)
}
