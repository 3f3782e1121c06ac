// Package web serves the public pages of a log to browsers. The pages show the documents of the JSON interface, and the
// browser verifies them itself.
//
// Invariants:
//
//   - Pages only read, and they read only documents that anyone may read without an account.
//   - A page sets no cookie and loads nothing from another host. Its content security policy allows no inline script or
//     style, and no eval.
//   - Stored texts enter a page only through html/template, and the browser's document only as text, never as markup.
//   - The server never calls anything proved. Check marks are computed in the browser by the verifier of the TypeScript
//     client, whose files are served exactly as they are in the repository.
//   - The home page of a log is cached until its head, keys, witnesses or name change.
//   - The path of an asset contains the hash of all assets, so its content never changes.
//   - Requests are admitted under the same rules as those of the public interface.
package web

import (
	"context"
	"net/http"
	"runtime"
	"sync"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/trust"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/web/page"
)

// Organizations finds the handle of an organization; fault.NotFound when there is none of
// that name. Names of any form may be asked for.
type Organizations interface {
	BySlug(ctx context.Context, slug id.Slug) (id.Tenant, error)
}

// Logs lists the logs of the service, as far as the operator lists them for all to see.
type Logs interface {
	// Directory returns the short name of the log that lists all others, "" for none.
	Directory() id.Slug
	// ListLogs returns up to limit logs behind a position of the list, "" for its begin, and the next position, "" at
	// the end. Without a list it is fault.NotFound.
	ListLogs(ctx context.Context, after string, limit int) (logs []ListedLog, next string, err error)
}

// ListedLog is a log in the list of logs.
type ListedLog struct {
	Path string   // behind /o/: the id of the organization, and from the second log on its number
	Key  string   // vkey, "" where the list has none
	Size id.Index // that was listed, 0 where the list has none
}

// Hashes finds events by their hashes.
type Hashes interface {
	// IndexOf returns the index of the event with an event hash in the newest log; fault.NotFound when there is none.
	IndexOf(ctx context.Context, t id.Tenant, hash id.Hash) (id.Index, error)
}

// Events reads the public documents of events. Unknown events and origins are
// fault.NotFound.
type Events interface {
	// EventBundle returns the bundle of an event in the log of an origin; without one, in the
	// newest log of the organization that holds it.
	EventBundle(ctx context.Context, t id.Tenant, slug id.Slug, event string, origin id.Origin) (*verify.Bundle, error)
	// EventAt returns the id of the event at an index of the newest log.
	EventAt(ctx context.Context, t id.Tenant, at id.Index) (id.Event, error)
	// Received returns the times of receipt of a range of events of the newest log, cut to its size: one for each
	// event, 0 for one that does not show its record.
	Received(ctx context.Context, t id.Tenant, events id.Range) ([]id.Instant, error)
}

// Heads reads the public documents of an organization's newest log.
type Heads interface {
	LogHead(ctx context.Context, t id.Tenant, slug id.Slug) (verify.Head, error)
	// LogCosigned returns the newest checkpoint that has its quorum as a signed note, nil for none.
	LogCosigned(ctx context.Context, t id.Tenant) ([]byte, error)
	// LogKeys returns the keys of the log, newest last. To is at least tlog.MaxSize of a key
	// that signs.
	LogKeys(ctx context.Context, t id.Tenant) ([]verify.LogKey, error)
	// LogPolicy returns the trust policy in force, without the lines of logs.
	LogPolicy(ctx context.Context, t id.Tenant) (*trust.Policy, error)
}

// Agents reads the public keys of agents.
type Agents interface {
	// AgentKeys returns the keys of an agent of the organization, the newest last. An agent of another organization
	// is fault.NotFound.
	AgentKeys(ctx context.Context, t id.Tenant, agent id.Agent) ([]did.Key, error)
}

// Log reads the public documents of logs, as strangers get them.
type Log interface {
	Events
	Heads
	Agents
}

// Options configure New. Edge, Organizations and Log are required.
type Options struct {
	Edge          *edge.Edge
	Organizations Organizations
	Log           Log
	// PublicURL is where browsers find the service: scheme, host and maybe a port and a
	// path, without a slash at the end.
	PublicURL string

	Logs   Logs                                   // default: no log is listed
	Hashes Hashes                                 // default: events are not found by their hashes
	Health func(context.Context) (trouble string) // why the service can't be used, "" for no reason; default: none

	MaxInFlight int                // pages that are made at a time; default 512
	Control     *admission.Control // load control shared with other surfaces; default: one of its own
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

// Routes adds the routes of the pages to r. Each answers GET and HEAD. The pages of events
// have no route here: the public interface serves them by EventPage at the URLs of events.
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
	show("/log/{slug}", s.showLog)
	show("/log/{slug}/agent/{agent}", s.showAgent)
	show("/assets/{tree}/*", s.serveAsset)
	edge.Mount(r, edge.Surface[getter]{Edge: &s.edge, Serve: s.serveRoute, ReadsQuery: true}, table)
}

// serveAsset serves assets/{tree}/*.
func (s *Server) serveAsset(r *request) (page.Answer, error) {
	return s.kit.Assets.Answer(r.Request, chi.URLParam(r.Request, "tree"), chi.URLParam(r.Request, "*"))
}

// getter makes the answer to a request.
type getter func(*request) (page.Answer, error)

func (s *Server) serveRoute(route *edge.Route[getter]) edge.Handler {
	return s.handle(route.Handler, route.Query...)
}

// Kit returns the part that all pages of the service share.
func (s *Server) Kit() *page.Kit { return s.kit }

// EventPage answers a request to the URL of an event with its page. The route has the
// parameters slug and event.
func (s *Server) EventPage(w http.ResponseWriter, r *http.Request) error {
	return s.handle(s.showEvent, "origin", "verify", "directory")(w, r)
}

// handle returns the handler of a page with some query parameters. It answers refusals with a page too. An error of
// the service is left to the edge, which logs its cause and answers in JSON with the request id.
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
