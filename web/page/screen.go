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
	Pattern string // a chi pattern below the base, such as /console/agents/{agent}
	Views   *Views
	Name    string   // name of the template
	Title   string   // title of the page; Show may change it
	Script  string   // the page's module; if empty, people.js
	Modules []string // modules that the script imports
	Open    bool     // also shown to strangers
	Query   []string // names of its query parameters, in addition to noticeParameter

	// Show returns the content of the page. It is called for GET, and again if a form was refused.
	Show func(*Request) (content any, err error)
	// Forms are the changes that the page can make, by the value of the button named "do".
	Forms map[string]Form
	// MaxForm is the maximum form size in bytes. If zero, it is 64 KiB.
	MaxForm int64
}

// Form makes a change and returns where to continue.
type Form func(*Request) (Outcome, error)

// Outcome is the result of a form: a redirect to a page, or a page that is shown once.
type Outcome struct {
	path   string
	notice string

	screen  *Screen
	again   bool // show the form's own page
	content any
}

// GoTo redirects to a page of the service. notice is a key of notices, or "".
func GoTo(path, notice string) Outcome { return Outcome{path: path, notice: notice} }

// ShowOnce shows a page that has no address, for example with a new secret.
func ShowOnce(views *Views, name, title string, content any) Outcome {
	return Outcome{screen: &Screen{Views: views, Name: name, Title: title}, content: content}
}

// ShowAgain shows the form's page with its fields unchanged and the given content instead of the result of Show. It is
// for forms that change nothing, such as a form that checks a text.
func ShowAgain(content any) Outcome { return Outcome{again: true, content: content} }

// WithScript returns the outcome with a script instead of people.js, and the modules that it imports. It is for
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
	// maxInFlight is the maximum number of concurrent page requests. Access.Read and Access.Change have limits of their
	// own.
	maxInFlight = 256
	// maxLargeForms is the maximum number of concurrent forms larger than defaultMaxForm, because each occupies its
	// size in memory several times.
	maxLargeForms = 8
)

// Options configure New. All are required.
type Options struct {
	Edge    *edge.Edge
	Kit     *Kit
	Control *admission.Control
	Access  Access
}

// Access decides how readers get access to pages, and which links the pages show.
type Access struct {
	// Admit sets the reader, and in Visit what the functions of screens need to know about the reader. An error with
	// status 401 and no code redirects to the sign-in page. Admit is called before the request is read, also for
	// strangers and open pages, and again after a form that may have begun a session. It returns errors of
	// edge.CheckOwner unchanged.
	Admit func(*Request) error
	// Read calls show under the load control. If nil, show is called directly.
	Read func(r *Request, show func() error) error
	// Change calls form under the load control. It must refuse requests of other sites, unless Admit does. If nil, form
	// is called directly.
	Change func(r *Request, form func() error) error
	// StepUp proves the presence of the user by a password. If nil, no form asks for one.
	StepUp func(r *Request, password string) error
	// Links are the links of every page, by their paths below the base.
	Links []Link
	// Providers returns the OpenID providers of the service. If nil, there are none.
	Providers func() []wire.Provider
}

// Server serves screens. It keeps no state of a request.
type Server struct {
	edge    edge.Edge
	kit     *Kit
	views   *Views // templates for refusals and the step-up
	class   admission.Class
	large   admission.Class // for forms larger than defaultMaxForm
	notices map[string]string
	access  Access
}

// New returns a server.
func New(o Options) *Server {
	s := &Server{edge: *o.Edge, kit: o.Kit, views: parseViews(o.Kit), notices: notices(),
		class: admission.Class{Control: o.Control, Waits: true, Anonymous: true,
			Limit: admission.NewLimit(maxInFlight, maxInFlight)}, access: o.Access}
	s.large = s.class
	s.large.Limit = admission.NewLimit(maxLargeForms, maxLargeForms)
	s.edge.Quiet = false // each page is one request in the log
	return s
}

// Mount adds the routes of screens to r, and a page for unknown addresses. The routes are not in the OpenAPI document.
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
	answer, err := r.showRefusal(&refusal{Status: http.StatusNotFound, Message: "Not found"})
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

// listLinks returns the links of a page. path is the page's own path.
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

// covers reports whether path is the page of a link or below it.
func covers(link, path string) bool {
	return path == link || len(path) > len(link) && path[:len(link)] == link && path[len(link)] == '/'
}

// noticeParameter is the query parameter of every page that selects the confirmation of a form.
const noticeParameter = "notice"

// notice returns the message that an address selects, or "" if it is unknown.
func (s *Server) notice(query url.Values) string { return s.notices[query.Get(noticeParameter)] }
