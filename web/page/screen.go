package page

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/wire"
)

// Screen is a page with its forms.
type Screen struct {
	Pattern string // a chi pattern from the root of the service, such as /console/agents/{agent}
	Views   *Views
	Name    string   // of the template
	Title   string   // of the page; Show may set another one
	Script  string   // the page's module, "" for people.js
	Modules []string // that the script imports
	Open    bool     // strangers see it too
	Query   []string // names of its query parameters, besides noticeParameter

	// Show returns the content of the page. It is called with GET, and again for a form that was refused.
	Show func(*Request) (content any, err error)
	// Forms are the changes that the page can make, by the value of the button named "do".
	Forms map[string]Form
	// MaxForm is the largest form in bytes; 0 is 64 KiB.
	MaxForm int64
}

// Form makes a change and returns where the person goes on.
type Form func(*Request) (Outcome, error)

// Outcome is the answer to a form: another page, or one that is shown this once.
type Outcome struct {
	path   string
	notice string

	screen  *Screen
	again   bool // the form's own page
	content any
}

// GoTo leads to a page of the service. Notice is a key of a text in notices, "" for none.
func GoTo(path, notice string) Outcome { return Outcome{path: path, notice: notice} }

// ShowOnce shows a page that no address leads to, for example with a new secret.
func ShowOnce(views *Views, name, title string, content any) Outcome {
	return Outcome{screen: &Screen{Views: views, Name: name, Title: title}, content: content}
}

// ShowAgain shows the page of the form with its fields as they are, and with a content in the place of that of Show. It
// is for forms that change nothing, such as one that checks a text.
func ShowAgain(content any) Outcome { return Outcome{again: true, content: content} }

// WithScript returns the outcome with a script in place of people.js, and the modules that it imports. It is for
// outcomes of ShowOnce.
func (o Outcome) WithScript(script string, modules ...string) Outcome {
	screen := *o.screen
	screen.Script, screen.Modules = script, append([]string{script}, modules...)
	o.screen = &screen
	return o
}

const (
	defaultMaxForm = 64 << 10
	formMedia      = "application/x-www-form-urlencoded"
	// maxInFlight is how many pages are made at a time. Their calls have the bounds of the interface.
	maxInFlight = 256
	// maxLargeForms is how many forms beyond defaultMaxForm are in work at a time, because each is in memory several
	// times.
	maxLargeForms = 8
)

// Options configure New. All are required.
type Options struct {
	Edge    *edge.Edge
	Calls   http.Handler // the JSON interface, which forms call
	Kit     *Kit
	Control *admission.Control
	Access  Access
}

// Access is the way of readers into pages, and the list of these.
type Access struct {
	// Admit sets the reader, what Show needs to know of the reader, and the headers by which calls have the reader's
	// permissions. A refusal with status 401 and no code leads to the sign-in. It is called before each request is read,
	// also for strangers and open pages, and returns the error of edge.CheckOwner as it is.
	Admit func(*Request) error
	// Read calls show within the load control. Default: it calls show.
	Read func(r *Request, show func() error) error
	// Links are the pages that each page leads to, by their paths below the base.
	Links []Link
	// Providers returns the OpenID providers of the service. Default: there are none.
	Providers func() []wire.Provider
}

// Server serves screens. It keeps nothing of a request.
type Server struct {
	edge    edge.Edge
	calls   http.Handler
	kit     *Kit
	views   *Views // of refusals and the step-up
	class   admission.Class
	large   admission.Class // of forms beyond defaultMaxForm
	notices map[string]string
	access  Access
}

// New returns a server.
func New(o Options) *Server {
	s := &Server{edge: *o.Edge, calls: o.Calls, kit: o.Kit, views: parseViews(o.Kit), notices: notices(),
		class: admission.Class{Control: o.Control, Waits: true, Anonymous: true,
			Limit: admission.NewLimit(maxInFlight, maxInFlight)}, access: o.Access}
	s.large = s.class
	s.large.Limit = admission.NewLimit(maxLargeForms, maxLargeForms)
	s.edge.Quiet = false // a page of people is one request in the log
	return s
}

// Mount adds the routes of screens to r, and a page for addresses that r does not have. The document of the interface
// leaves them out, because they are for people.
func (s *Server) Mount(r *edge.Router, screens []Screen) {
	var table edge.Table[*Screen]
	for i := range screens {
		one := &screens[i]
		table.Add(edge.GetAndHead, one.Pattern, edge.Permission{}, edge.Body{}, one)
		if len(one.Forms) > 0 {
			body := edge.Body{Media: formMedia, Max: one.MaxForm}
			if body.Max == 0 {
				body.Max = defaultMaxForm
			}
			table.Add(http.MethodPost, one.Pattern, edge.Permission{}, body, one)
		}
	}
	edge.Mount(r, edge.Surface[*Screen]{Edge: &s.edge, Serve: s.serveRoute, Unlisted: true, ReadsQuery: true}, table)
	r.AnswerUnknown(&s.edge, "text/html", s.showUnknown)
}

func (s *Server) showUnknown(w http.ResponseWriter, q *http.Request) error {
	r := &Request{Request: q, Kit: s.kit, server: s, screen: &Screen{Open: true}, w: w}
	answer, err := r.showRefusal(&Refusal{Status: http.StatusNotFound, Message: "Not found"})
	if err == nil {
		answer.WriteTo(w, q)
	}
	return err
}

func (s *Server) serveRoute(route *edge.Route[*Screen]) edge.Handler {
	class := &s.class
	if route.Body.Max > defaultMaxForm {
		class = &s.large
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		q := &Request{Request: r, Kit: s.kit, server: s, screen: route.Handler, w: w, body: route.Body}
		return class.Serve(r, q)
	}
}

// listLinks returns the links to all pages. Path is that of the page that is shown.
func (s *Server) listLinks(path string) []Link {
	links, best := slices.Clone(s.access.Links), -1
	for i := range links {
		if covers(links[i].URL, path) && (best < 0 || len(links[i].URL) > len(links[best].URL)) {
			best = i
		}
	}
	for i := range links {
		links[i].URL, links[i].Current = s.kit.Base+links[i].URL, i == best
	}
	return links
}

// covers reports whether a page is the one of a link or lies below it.
func covers(link, path string) bool {
	return path == link || len(path) > len(link) && path[:len(link)] == link && path[len(link)] == '/'
}

// noticeParameter is the query parameter of every page that names the effect of a form.
const noticeParameter = "notice"

// notice returns the text of the effect that an address names, "" for an unknown one.
func (s *Server) notice(query url.Values) string { return s.notices[query.Get(noticeParameter)] }

// HasForm reports whether a form of the screen has a name.
func (s *Screen) formNamed(name string) (Form, bool) {
	f, ok := s.Forms[name]
	return f, ok
}

func isOneOf(status int, all ...int) bool { return slices.Contains(all, status) }
