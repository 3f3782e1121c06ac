package edge

import (
	"net/http"
	"strings"
	"time"
)

// Route is an entry in the table of a surface. The table is the only place that declares
// the route: the router, admission, body bounds, metrics and the test against the
// OpenAPI document use it. H is the type of the surface's handlers.
type Route[H any] struct {
	Method     string // GET, or or GetAndHead
	Pattern    string // a chi pattern from the root, such as /v1/things/{thing}
	Permission Permission
	Body       Body
	Handler    H
	Mode       Mode
	Query      []string // names of the query parameters; others are rejected
	Repeated   []string // those of Query that may be given more than once
	AnyQuery   bool     // query parameters are not checked, and Query is empty
}

// Table contains the routes of a surface.
type Table[H any] []Route[H]

// Add adds a route without query parameters. Its mode is Apart unless one is given. The result is valid until
// the next call of Add.
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

// Repeats sets the query parameters, among those of Takes, that may be given more than once.
func (r *Route[H]) Repeats(names ...string) { r.Repeated = names }

// TakesPage sets the query parameters that ParsePage reads.
func (r *Route[H]) TakesPage() { r.Takes("after", "limit") }

// TakesAnyQuery disables the check of query parameters: the handler checks them itself, or ignores them as a
// protocol requires.
func (r *Route[H]) TakesAnyQuery() { r.AnyQuery = true }

// GetAndHead is the Method of a route that accepts GET and HEAD.
const GetAndHead = http.MethodGet + " " + http.MethodHead

// Methods returns the HTTP methods of the route.
func (r *Route[H]) Methods() []string { return strings.Fields(r.Method) }

// Credential is a kind of credential, as named in the OpenAPI document.
type Credential string

// The credentials of callers.
const (
	NoCredential   Credential = ""
	IngestKey      Credential = "ingestKey"
	Session        Credential = "session"
	PlatformSecret Credential = "platformSecret"
	ConsoleToken   Credential = "consoleToken"
)

// Permission is what a caller needs: a credential, and a right of its
// holder. The zero value admits every caller.
type Permission struct {
	Credential Credential
	Or         Credential // an alternative; may be NoCredential
	Right      string     // such as the scope of an ingest key; "" if the credential suffices
}

// Body bounds the body of a request. The zero value is for routes without a body.
type Body struct {
	Media string // media type, also of requests without Content-Type
	Max   int64  // in bytes
}

// JSONBody is a body of at most max bytes of JSON.
func JSONBody(max int64) Body { return Body{MediaJSON, max} }

// LinesBody is a body of at most max bytes of NDJSON.
func LinesBody(max int64) Body { return Body{MediaNDJSON, max} }

// Mode is how the handler of a route runs.
type Mode uint8

const (
	// Apart runs the handler in a separate goroutine. If a handler misses its
	// deadline, it is abandoned, and the request gets a response without it.
	Apart Mode = iota
	// InPlace runs the handler in the goroutine of the connection, which saves 4 to
	// 7 µs. The handler must return when its context ends.
	InPlace
	// Fast is InPlace for the few hot routes. The router looks them up in a separate table
	// before it calls chi. Their patterns have at most one parameter, and after it at most
	// one wildcard, at the end.
	Fast
	// LongPoll is InPlace for requests that wait. Surface.Wait extends their deadline.
	LongPoll
)

// Surface determines how the routes of a table are served. H is the type of their handlers.
type Surface[H any] struct {
	Edge *Edge
	// Serve returns the handler of a route, which checks the permission, admits the request,
	// reads the body and calls route.Handler. It is called once per route.
	Serve func(route *Route[H]) Handler
	// Wait returns how long a request of a LongPoll route may wait in addition to the deadline
	// of other requests. It is required for such routes.
	Wait func(*http.Request) time.Duration
	// Prefixes are paths. Every request below a prefix passes through Around, including unknown
	// paths. If there are prefixes, every pattern must begin with one.
	Prefixes []string
	Around   func(http.Handler) http.Handler
	// Unlisted indicates that the OpenAPI document does not contain the routes, because
	// they are pages.
	Unlisted bool
	// ReadsQuery indicates that Serve checks the query parameters (Route.ReadQuery, CheckPageQuery).
	// If false, requests with wrong parameters are rejected before the handler is called.
	ReadsQuery bool
}

// PlainSurface returns a surface for routes whose handlers need only the edge.
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
	Repeated   []string // those of Query that may be given more than once
	AnyQuery   bool
}
