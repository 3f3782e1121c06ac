// Package publicapi is the HTTP surface without authentication: the public part of an
// organization's log, and the DID documents of agents. It hides which node or log of an organization's line answers,
// and the caches of responses.
//
// An organization that replaced a frozen log has a line of logs. A request that names no
// log refers to the newest one.
//
// Invariants:
//
//   - It only reads. It knows organizations by tenant handles and agents by their
//     public keys, and cannot reach members or ingest keys. It serves only policies
//     that their organization publishes.
//   - A response comes from one published state of one ledger, so size, root, proofs and
//     checkpoint match. A frozen ledger that no longer has the tree of its checkpoint
//     serves that checkpoint, but neither entries nor proofs.
//   - DID documents state which keys are active, so they are not served if the
//     organization's records cannot be trusted (log.State.Trusted). Each is rendered once
//     per config version, in a cache with a bound in bytes.
//   - A bundle discloses the parts of an event that were chosen when it was stored.
//   - The number of reads in flight is bounded. Slow readers do not count: only preparing a
//     response does, not sending it.
//   - 404 has one body for every cause and is never cached.
//   - Only tiles and entry bundles, which never change, have `Cache-Control: immutable`.
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

// Organizations returns the tenant of an organization, or fault.NotFound. Callers may pass invalid names.
type Organizations interface {
	BySlug(ctx context.Context, slug id.Slug) (id.Tenant, error)
	ByID(ctx context.Context, organization id.Organization) (id.Tenant, error)
	// Slug returns the slug of an organization.
	Slug(ctx context.Context, t id.Tenant) (id.Slug, error)
}

// Agents returns the public keys of agents.
type Agents interface {
	// Owner returns the organization of an agent, or fault.NotFound if there is no such agent.
	Owner(ctx context.Context, agent id.Agent) (id.Tenant, error)
	// DIDKeys returns all keys of an organization's agent in the order of their registration.
	DIDKeys(ctx context.Context, owner id.Tenant, agent id.Agent) ([]did.Key, error)
	// KeyHolders yields the organizations in which a public key was ever registered.
	KeyHolders(ctx context.Context, public [32]byte) iter.Seq2[id.Tenant, error]
	// CompromisedFrom returns the first index at which an agent's key is not trusted, or tlog.MaxSize if it is always
	// trusted.
	CompromisedFrom(ctx context.Context, s *log.State, agent id.Agent, key id.Key) (id.Index, error)
}

// GrantKeys returns the key that signs an organization's grants and the size of its
// log when that key was generated. Before the first grant, ok is false.
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
	// PublicURL is the address of the service for clients: scheme, host, and possibly a port
	// and a path without a trailing slash.
	PublicURL string
	Witnesses Witnesses        // if nil, there are none
	Clock     func() time.Time // if nil, time.Now
	Directory *Directory       // if nil, there is none
	LogList   LogList          // if nil, there is none
	Policies  Policies         // if nil, none is published
	Known     Known            // tiles of organizations that other nodes own; if nil, those nodes serve them

	MaxInFlight int                   // concurrent reads, and in addition as many of heads and checkpoints; if zero, 512
	GzipBytes   int64                 // of cached compressed entry bundles; if zero, 32 MiB
	DIDBytes    int64                 // of cached DID documents; if zero, 16 MiB
	Control     *admission.Control    // load control shared with other surfaces; if nil, not shared
	Metrics     prometheus.Registerer // if nil, metrics are discarded
}

// Server serves the surface. It caches compressed entry bundles, which never change, DID documents by config version,
// and the response about each head until the head changes.
type Server struct {
	edge      edge.Edge
	ledgers   Ledgers
	orgs      Organizations
	agents    Agents
	grantKeys GrantKeys
	directory *Directory // may be nil
	lists     LogList    // may be nil
	policies  Policies   // may be nil
	known     Known      // may be nil
	witnesses Witnesses
	publicURL string
	host      string // of did:web identifiers
	clock     func() time.Time
	control   *admission.Control
	limit     *admission.Limit
	newest    *admission.Limit // for heads and checkpoints, so that other reads that wait for the store do not block them
	gzipCache *gzipCache
	heads     *cache.Map[id.Tenant, *headEntry]
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

// Routes adds the routes of the surface to r. Each accepts GET and HEAD. Clients that prefer
// HTML get the page of an event from eventPage, which is nil if the service has no pages.
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

// slugPrefix is the prefix of paths with an organization's slug.
const slugPrefix = "/v1/public/orgs/"

// bundlePattern is the route of an event.
const bundlePattern = slugPrefix + "{slug}/verify/{event}"

// getter returns the response to a request.
type getter func(*request) (response, error)

// serveRoute returns the handler of a route. Every fault.NotFound gets the same response.
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
