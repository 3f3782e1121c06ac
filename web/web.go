// Package web serves the public pages of a log to browsers. The pages show the documents of the JSON interface, and the
// browser verifies them itself.
//
// Invariants:
//
//   - Pages only read, and they read only documents that anyone may read without an account.
//   - A page sets no cookie and loads nothing from another host. Its content security policy allows no inline script or
//     style, and no eval. Only the badge of a log may be framed by other sites.
//   - Stored texts enter a page only through html/template, and the browser's document only as text, never as markup.
//   - The server never calls anything proved. Check marks are computed in the browser by the verifier of the TypeScript
//     client, whose files are served exactly as they are in the repository.
//   - The home page of a log is cached until its head, keys, witnesses or name change. Older pages of its entries are not.
//   - The path of an asset contains the hash of all assets, so its content never changes. A package of a client never
//     changes if the release key signed it.
//   - Requests are admitted under the same rules as those of the public interface.
package web

import (
	"context"
	"net/http"
	"runtime"
	"sync"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/clients"
	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/trust"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/web/page"
)

// Organizations finds the tenant of an organization. It returns fault.NotFound if there is no organization with that
// name. Names may have any form.
type Organizations interface {
	BySlug(ctx context.Context, slug id.Slug) (id.Tenant, error)
}

// Logs lists the logs of the service, as far as the operator publishes the list.
type Logs interface {
	// Directory returns the slug of the log that lists all others, or "" if there is none.
	Directory() id.Slug
	// ListLogs returns up to limit logs after a position of the list, "" for its start, and the next position, "" at
	// the end. It returns fault.NotFound if there is no list.
	ListLogs(ctx context.Context, after string, limit int) (logs []ListedLog, next string, err error)
}

// ListedLog is a log in the list of logs.
type ListedLog struct {
	Path string   // below /o/: the ID of the organization and, from its second log on, the log's number
	Key  string   // vkey; "" if the list contains none
	Size id.Index // listed size; 0 if the list contains none
}

// Hashes finds events by their hashes.
type Hashes interface {
	// IndexOf returns the index of the event with an event hash in the current log. It returns fault.NotFound if there
	// is none.
	IndexOf(ctx context.Context, t id.Tenant, hash id.Hash) (id.Index, error)
}

// Events reads the public documents of events. It returns fault.NotFound for unknown events and origins.
type Events interface {
	// EventBundle returns the bundle of an event in the log of an origin. If origin is empty, it uses the
	// organization's latest log that contains the event.
	EventBundle(ctx context.Context, t id.Tenant, slug id.Slug, event string, origin id.Origin) (*verify.Bundle, error)
	// EventAt returns the ID of the event at an index of the current log.
	EventAt(ctx context.Context, t id.Tenant, at id.Index) (id.Event, error)
	// DisclosedEvents returns a range of events of the current log, clipped to its size, with the fields that each of
	// them discloses.
	DisclosedEvents(ctx context.Context, t id.Tenant, events id.Range) ([]storage.Event, error)
}

// Heads reads the public documents of an organization's current log.
type Heads interface {
	LogHead(ctx context.Context, t id.Tenant, slug id.Slug) (verify.Head, error)
	// LogCosigned returns the latest checkpoint with a quorum as a signed note, or nil if there is none.
	LogCosigned(ctx context.Context, t id.Tenant) ([]byte, error)
	// LogKeys returns the keys of the log, latest last. To is at least tlog.MaxSize for a key that signs.
	LogKeys(ctx context.Context, t id.Tenant) ([]verify.LogKey, error)
	// LogPolicy returns the trust policy in force, without the log lines.
	LogPolicy(ctx context.Context, t id.Tenant) (*trust.Policy, error)
}

// Agents reads the public keys of agents.
type Agents interface {
	// AgentKeys returns the keys of an agent of the organization, latest last. It returns fault.NotFound for agents of
	// other organizations.
	AgentKeys(ctx context.Context, t id.Tenant, agent id.Agent) ([]did.Key, error)
}

// Log reads the public documents of logs, as the public interface returns them.
type Log interface {
	Events
	Heads
	Agents
}

// Acts joins events to acts (docs/guides/acts.md).
type Acts interface {
	// ActsOf returns the acts that events are about: the event itself, or the act whose result it states. Events that are
	// about none are absent.
	ActsOf(ctx context.Context, t id.Tenant, at []id.Index) (map[id.Index]Act, error)
}

// Act is what became of an act.
type Act struct {
	Index   id.Index // its event
	Outcome string   // a word of docs/guides/acts.md
	Result  id.Index // the event that states the result; 0 if there is none
}

// Names reads the names that an organization gave to itself and to its agents. They are public.
type Names interface {
	OrganizationName(ctx context.Context, t id.Tenant) (string, error)
	// AgentName returns the name of an agent, "" if it has none. It returns fault.NotFound if there is no such agent.
	AgentName(ctx context.Context, t id.Tenant, agent id.Agent) (string, error)
}

// Options configure New. Edge, Organizations and Log are required.
type Options struct {
	Edge          *edge.Edge
	Organizations Organizations
	Log           Log
	// PublicURL is the URL at which browsers reach the service: scheme, host and optionally a port and a path, without
	// a trailing slash.
	PublicURL string

	Logs   Logs                                  // if nil, no log is listed
	Acts   Acts                                  // if nil, no outcomes are shown
	Names  Names                                 // if nil, slugs and IDs are shown
	Hashes Hashes                                // if nil, events are not found by hash
	Health func(context.Context) (reason string) // why the service is unhealthy, or ""; if nil, the service is healthy

	Clients func() *clients.Set // the packages of the clients; if nil, those of the program

	MaxInFlight int                // pages rendered at a time; if zero, 512
	Control     *admission.Control // load control shared with other surfaces; if nil, New makes one
}

// Server serves the pages.
type Server struct {
	edge    edge.Edge
	orgs    Organizations
	log     Log
	options Options
	kit     *page.Kit
	views   *page.Views
	offline func() (*offline, error)
	logs    *cache.Map[id.Tenant, *keptLog]
	class   admission.Class
	control *admission.Control
}

// New returns a server.
func New(o Options) *Server {
	if o.MaxInFlight == 0 {
		o.MaxInFlight = 512
	}
	if o.Control == nil {
		o.Control = admission.New(runtime.GOMAXPROCS(0))
	}
	if o.Clients == nil {
		o.Clients = clients.Read
	}
	kit := page.NewKit(o.PublicURL)
	shown := parseViews(kit)
	s := &Server{
		edge: *o.Edge, orgs: o.Organizations, log: o.Log, options: o, kit: kit, views: shown,
		offline: sync.OnceValues(func() (*offline, error) { return renderOffline(shown, kit.Assets) }),
		logs:    cache.NewMap(cache.MapOptions[id.Tenant, *keptLog]{Limit: maxLogs}),
		control: o.Control, class: admission.Class{Control: o.Control, Queue: o.Control.Reads, Anonymous: true,
			Limit: admission.NewLimit(o.MaxInFlight, o.MaxInFlight)},
	}
	s.edge.Quiet = true
	return s
}

// Routes adds the routes of the pages to r. Each answers GET and HEAD. Event pages have no route here: the public
// interface serves them through EventPage at the URLs of events.
func (s *Server) Routes(r *edge.Router) {
	var table edge.Table[getter]
	show := func(pattern string, get getter, query ...string) {
		table.Add(edge.GetAndHead, pattern, edge.Permission{}, edge.Body{}, get).Takes(query...)
	}
	show("/", s.showHome)
	show("/logs", s.listLogs, "after")
	show("/check", s.showCheck)
	show("/check/offline.html", s.serveOffline)
	show("/find", s.findEvent, "log", "event")
	show(clientsPath, s.showClients)
	show(clientsPath+"/index.json", s.listClients)
	show(clientsPath+"/{file}", s.serveClient)
	show(helpPath, s.once(s.verifyFrames))
	api := s.once(s.apiFrames)
	show(apiPath, api)
	show(apiPath+"/{area}", api)
	show(runbooksPath, s.once(s.runbookFrames))
	show("/log/{slug}", s.showLog, "before")
	show("/log/{slug}/agent/{agent}", s.showAgent)
	show("/log/{slug}/badge", s.showBadge, "theme")
	show("/assets/{tree}/*", s.serveAsset)
	edge.Mount(r, edge.Surface[getter]{Edge: &s.edge, Serve: s.serveRoute, ReadsQuery: true}, table)
}

// serveAsset serves assets/{tree}/*.
func (s *Server) serveAsset(r *request) (page.Answer, error) {
	return s.kit.Assets.Answer(r.Request, chi.URLParam(r.Request, "tree"), chi.URLParam(r.Request, "*"))
}

// getter answers a request.
type getter func(*request) (page.Answer, error)

func (s *Server) serveRoute(route *edge.Route[getter]) edge.Handler {
	return s.handle(route.Handler, route.Query...)
}

// Kit returns the part that all pages of the service share.
func (s *Server) Kit() *page.Kit { return s.kit }

// EventPage answers a request for the URL of an event with its page. The route must have the parameters slug and event.
func (s *Server) EventPage(w http.ResponseWriter, r *http.Request) error {
	return s.handle(s.showEvent, "origin", "verify", "directory")(w, r)
}

// handle returns the handler of a page with some query parameters. It answers refusals with a page too. Internal errors
// are left to the edge, which logs the cause and answers in JSON with the request ID.
func (s *Server) handle(get getter, query ...string) edge.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		err := edge.CheckPageQuery(r, query...)
		if err == nil {
			err = s.class.Serve(r, &call{request: request{Request: r}, server: s, get: get, w: w})
		}
		if err == nil || edge.StatusOf(err) >= http.StatusInternalServerError {
			return err
		}
		refusal, failed := s.showRefusal(edge.StatusOf(err), fault.Of(err).Message)
		if failed != nil {
			return failed
		}
		refusal.WriteTo(w, r)
		return nil
	}
}
