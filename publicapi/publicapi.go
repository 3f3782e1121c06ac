// Package publicapi is the HTTP surface without authentication: the public part of an
// organization's log, and the DID documents of agents.
//
// An organization that gave up a frozen log has a line of logs. A request that names no
// log is about the newest.
//
// Invariants:
//
//   - It only reads. It knows organizations by tenant handles and agents by their
//     public keys, and can't reach people or ingest keys. Of policies it
//     knows those that their organization publishes.
//   - An answer comes from one published state of one ledger, so its parts fit
//     together: size, root, proofs, checkpoint. A frozen ledger that does not hold
//     the tree of its checkpoint shows that checkpoint, and no entry or proof.
//   - DID documents say which keys are active, so there are none of an organization
//     whose records can't be trusted (log.State.Trusted). One is made once for each
//     config version and kept within a bound of bytes.
//   - A bundle discloses the parts of an event that were chosen when it was stored.
//   - What is under way at a time has a bound of its own, which slow readers don't
//     count for: making an answer counts, sending it does not.
//   - 404 has one body for every cause, and is never cached.
//   - `Cache-Control: immutable` is sent for tiles and entry bundles only, because those
//     never change.
//   - Compression for anonymous clients is bounded in time and memory.
package publicapi

import (
	"context"
	"iter"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// Organizations finds the handle of an organization; fault.NotFound when there
// is none of that name. Names of any form may be asked for.
type Organizations interface {
	BySlug(ctx context.Context, slug id.Slug) (id.Tenant, error)
	ByID(ctx context.Context, organization id.Organization) (id.Tenant, error)
	// Slug returns the slug of an organization.
	Slug(ctx context.Context, t id.Tenant) (id.Slug, error)
}

// Agents tells the public side of agents' keys.
type Agents interface {
	// Owner returns whose agent it is; fault.NotFound when there is no such agent.
	Owner(ctx context.Context, agent id.Agent) (id.Tenant, error)
	// DIDKeys returns all keys of an organization's agent in the order of their registration.
	DIDKeys(ctx context.Context, owner id.Tenant, agent id.Agent) ([]did.Key, error)
	// KeyHolders yields the organizations in which a public key was ever registered.
	KeyHolders(ctx context.Context, public [32]byte) iter.Seq2[id.Tenant, error]
	// CompromisedFrom returns the index from which on an agent's key is not to be
	// trusted, tlog.MaxSize when there is none.
	CompromisedFrom(ctx context.Context, s *log.State, agent id.Agent, key id.Key) (id.Index, error)
}

// GrantKeys tells the key that signs an organization's grants and the size of its
// log when that was made; ok is false before the first grant.
type GrantKeys interface {
	GrantKey(ctx context.Context, t id.Tenant) (key tlog.VerifierKey, from id.Index, ok bool, err error)
}

// Options configure New. The first six are required.
type Options struct {
	Edge          *edge.Edge
	Ledgers       Ledgers
	Organizations Organizations
	Agents        Agents
	GrantKeys     GrantKeys
	// PublicURL is where clients find the service: scheme, host and maybe a port
	// and a path, without a slash at the end.
	PublicURL string
	Witnesses Witnesses        // default: there are none
	Clock     func() time.Time // default: time.Now
	Directory *Directory       // default: none
	LogList   LogList          // default: none
	Policies  Policies         // default: none is published
	Known     Known            // of organizations that other nodes own; default: their nodes are asked for all

	MaxInFlight int                   // reads under way at a time, and as many of heads and checkpoints; default 512
	GzipBytes   int64                 // room for compressed entry bundles; default 32 MiB
	DIDBytes    int64                 // room for DID documents; default 16 MiB
	Control     *admission.Control    // load control shared with other surfaces; default: one of its own
	Metrics     prometheus.Registerer // default: none
}

// Server serves the surface. Of a request it keeps nothing but compressed entry
// bundles, which never change, DID documents of one config version each, and the answer
// about a head until the head is another.
type Server struct {
	edge      edge.Edge
	ledgers   Ledgers
	orgs      Organizations
	agents    Agents
	grantKeys GrantKeys
	directory *Directory // nil: there is none
	lists     LogList    // nil: there is none
	policies  Policies   // nil: none is published
	known     Known      // nil: none
	witnesses Witnesses
	publicURL string
	host      string // of did:web identifiers
	clock     func() time.Time
	control   *admission.Control
	limit     *admission.Limit
	newest    *admission.Limit // of heads and checkpoints, so that reads that wait for the store do not refuse them
	gzipCache *gzipCache
	heads     *cache.Map[id.Tenant, *keptHead]
	documents *cache.Loading[documentName, documentBody]
}

// New returns a server.
func New(o Options) *Server {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Witnesses == nil {
		o.Witnesses = noWitnesses{}
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = 512
	}
	if o.Control == nil {
		o.Control = admission.New(runtime.GOMAXPROCS(0))
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.GzipBytes == 0 {
		o.GzipBytes = 32 << 20
	}
	if o.DIDBytes == 0 {
		o.DIDBytes = 16 << 20
	}
	_, host, _ := strings.Cut(o.PublicURL, "://")
	s := &Server{
		edge: *o.Edge, ledgers: o.Ledgers, orgs: o.Organizations, agents: o.Agents, grantKeys: o.GrantKeys,
		witnesses: o.Witnesses, directory: o.Directory, lists: o.LogList, policies: o.Policies, known: o.Known,
		publicURL: o.PublicURL, host: strings.ToLower(host), clock: o.Clock,
		control: o.Control, limit: admission.NewLimit(o.MaxInFlight, o.MaxInFlight),
		newest:    admission.NewLimit(o.MaxInFlight, o.MaxInFlight),
		gzipCache: newGzipCache(o.GzipBytes, o.Metrics), heads: newHeadCache(),
		documents: newDocuments(o.DIDBytes),
	}
	s.edge.Quiet = true
	registerLimits(o.Metrics, s.limit, s.newest)
	return s
}

// Routes adds the routes of the surface to r. Each answers GET and HEAD. A client that prefers
// HTML gets the page of an event from eventPage; nil is a service without pages.
func (s *Server) Routes(r *edge.Router, eventPage edge.Handler) {
	const slug = slugPrefix + "{slug}"
	var table edge.Table[getter]
	list := func(pattern string, get getter, mode ...edge.Mode) *edge.Route[getter] {
		return table.Add(edge.GetAndHead, pattern, edge.Permission{}, edge.Body{}, get, mode...)
	}
	list(slug+"/transparency/head", s.answerHead, edge.Fast).Takes("origin")
	list(slug+"/transparency/checkpoint", s.answerCheckpoint, edge.Fast).Takes("origin", "cosigned")
	list(slug+"/transparency/inclusion", s.answerInclusion, edge.Fast).
		Takes("origin", "log_index", "event_id", "tree_size")
	list(slug+"/transparency/consistency", s.answerConsistency, edge.Fast).Takes("origin", "from", "to")
	list(slug+"/transparency/keys", s.answerKeys).Takes("origin")
	list(slug+"/transparency/keys/{key}", s.answerKeyStatement).Takes("origin")
	list(slug+"/transparency/policy", s.answerPolicy).Takes("origin")
	list(bundlePattern, s.answerBundle).Takes("origin", "verify", "directory", "format")
	list(slug+"/policies/{digest}", s.answerPolicyDocument).Takes("origin")
	list("/v1/public/witness-network/logs/v0", s.answerLogList)
	list("/v1/public/directory", s.answerDirectory)
	list("/v1/public/directory/events", s.answerDirectoryEvents).Takes("from")
	list("/v1/public/agents/{agent}/did", s.answerKeyDocument)
	list("/v1/public/agents/{agent}/did.json", s.answerWebDocument)
	list("/v1/public/did/{did}", s.answerDocument)
	listLog := func(log string, mode edge.Mode) {
		list(log+"/checkpoint", s.answerLogCheckpoint, mode).Takes("cosigned")
		list(log+"/successor", s.answerSuccessor)
		list(log+"/keys/{key}", s.answerKeyStatementByID)
		list(log+"/tile/entries/*", s.answerEntries, mode).TakesAnyQuery() // 404 with a query
		list(log+"/tile/*", s.answerTile, mode).TakesAnyQuery()
	}
	listLog(idPrefix+"{organization}", edge.Fast)
	listLog(idPrefix+"{organization}/{number:[0-9]+}", edge.InPlace)
	serve := func(route *edge.Route[getter]) edge.Handler {
		if route.Pattern == bundlePattern {
			return orPage(s.serveRoute(route), eventPage)
		}
		return s.serveRoute(route)
	}
	edge.Mount(r, edge.Surface[getter]{Edge: &s.edge, Serve: serve, ReadsQuery: true,
		Prefixes: []string{"/v1/public", "/o"}, Around: allowAllOrigins}, table)
}

// slugPrefix begins the paths that name an organization by its slug.
const slugPrefix = "/v1/public/orgs/"

// bundlePattern is the route of an event.
const bundlePattern = slugPrefix + "{slug}/verify/{event}"

// getter makes the response to a request.
type getter func(*request) (response, error)

// serveRoute answers the requests of a route. Every fault.NotFound has the same answer.
func (s *Server) serveRoute(route *edge.Route[getter]) edge.Handler {
	class, ofTile := s.classOf(route), strings.Contains(route.Pattern, "/tile/")
	return func(w http.ResponseWriter, r *http.Request) error {
		q, err := route.ReadQuery(r)
		if err != nil {
			return err
		}
		err = class.Serve(r, &call{request: request{Request: r, query: q}, server: s, get: route.Handler, w: w,
			ofTile: ofTile})
		if fault.Is(err, fault.NotFound) {
			return fault.Wrap(fault.NotFound, "Not found", err)
		}
		return err
	}
}

func errNotFound() error { return fault.New(fault.NotFound, "Not found") }
