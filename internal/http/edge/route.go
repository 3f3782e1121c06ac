package edge

import (
	"net/http"
	"strings"
	"time"
)

// Route is one line of the table of a surface. The table is the only place that names
// the route: the router, admission, body bounds, metrics and the test against the
// OpenAPI document read from it. H is the type of the surface's handlers.
type Route[H any] struct {
	Method     string // GET, or GetAndHead for a handler that answers both
	Pattern    string // a chi pattern from the root, such as /v1/things/{thing}
	Permission Permission
	Body       Body
	Handler    H
	Mode       Mode
	Query      []string // names of the query parameters; any other is refused
	AnyQuery   bool     // query parameters are not checked here; Query is empty
}

// Table is the routes of a surface.
type Table[H any] []Route[H]

// Add adds a route without query parameters. It is of mode Apart unless a mode is given. The result is valid until
// the next Add.
func (t *Table[H]) Add(method, pattern string, p Permission, b Body, h H, mode ...Mode) *Route[H] {
	route := Route[H]{Method: method, Pattern: pattern, Permission: p, Body: b, Handler: h}
	for _, m := range mode {
		route.Mode = m
	}
	*t = append(*t, route)
	return &(*t)[len(*t)-1]
}

// Takes sets the names of the query parameters of the route.
func (r *Route[H]) Takes(names ...string) { r.Query = names }

// TakesPage sets the query parameters of a list that ParsePage reads.
func (r *Route[H]) TakesPage() { r.Takes("after", "limit") }

// TakesAnyQuery turns the check of query parameters off: the handler checks them itself, or ignores them as a
// protocol requires.
func (r *Route[H]) TakesAnyQuery() { r.AnyQuery = true }

// GetAndHead is the Method of a route that answers GET and HEAD.
const GetAndHead = http.MethodGet + " " + http.MethodHead

// Methods returns the HTTP methods of the route.
func (r *Route[H]) Methods() []string { return strings.Fields(r.Method) }

// Credential is a kind of credential, by its name in the OpenAPI document.
type Credential string

// The credentials of callers.
const (
	NoCredential   Credential = ""
	IngestKey      Credential = "ingestKey"
	Session        Credential = "session"
	PlatformSecret Credential = "platformSecret"
	ConsoleToken   Credential = "consoleToken"
)

// Permission is what a caller must have: a credential, and a right that the holder of
// the credential has. The zero value admits every caller.
type Permission struct {
	Credential Credential
	Or         Credential // a second kind that is enough; NoCredential is none
	Right      string     // such as the scope of an ingest key; "" when the credential is enough
}

// Body bounds the body of a request. The zero value is for routes that read none.
type Body struct {
	Media string // media type; a request without Content-Type counts as this one
	Max   int64  // bytes
}

// JSONBody is a body of at most max bytes of JSON.
func JSONBody(max int64) Body { return Body{MediaJSON, max} }

// LinesBody is a body of at most max bytes of NDJSON.
func LinesBody(max int64) Body { return Body{MediaNDJSON, max} }

// Mode says how the requests of a route are run.
type Mode uint8

const (
	// Apart runs the handler in a goroutine of its own. A handler that misses its
	// deadline is left behind, and the request is answered without it.
	Apart Mode = iota
	// InPlace runs the handler in the goroutine of the connection, which saves 4 to
	// 7 µs. The handler MUST end when its context does.
	InPlace
	// Fast is InPlace for the few hot routes. The router finds them in a table of its
	// own before it asks chi. Their patterns have at most one parameter, and behind it at most
	// one wildcard, at the end.
	Fast
	// LongPoll is InPlace for requests that wait. Surface.Wait moves their deadline.
	LongPoll
)

// Surface says how the routes of one table are served. H is the type of their handlers.
type Surface[H any] struct {
	Edge *Edge
	// Serve makes the handler of a route. It checks the permission, admits the request,
	// reads the body and calls route.Handler. It is called once a route.
	Serve func(route *Route[H]) Handler
	// Wait returns for how long a request of a LongPoll route waits beyond the deadline
	// of other requests. It is required with such routes.
	Wait func(*http.Request) time.Duration
	// Prefixes are paths. Every request below a prefix passes Around, unknown paths
	// included. With Prefixes, every pattern MUST begin with a prefix.
	Prefixes []string
	Around   func(http.Handler) http.Handler
	// Unlisted says that the document of the interface does not have the routes, because
	// they are pages for people and no calls.
	Unlisted bool
	// ReadsQuery indicates that Serve checks the query parameters (Route.ReadQuery, CheckPageQuery).
	// If false, requests with wrong parameters are refused before the handler is called.
	ReadsQuery bool
}

// PlainSurface serves routes whose handlers need nothing but the edge.
func PlainSurface(e *Edge) Surface[Handler] {
	return Surface[Handler]{Edge: e, Serve: func(route *Route[Handler]) Handler { return route.Handler }}
}

// Listed is a route of a router without its handler.
type Listed struct {
	Method     string // one HTTP method
	Pattern    string
	Permission Permission
	Body       Body
	Query      []string
	AnyQuery   bool
}
