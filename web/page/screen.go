package page

import (
	"net/http"
	"net/url"

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
	Shared  bool     // shown to holders of a link, whoever they are: no session is read, and nobody is asked to sign in
	Query   []string // names of its query parameters, in addition to noticeParameter

	// Show returns the content of the page, or a *File. It is called for GET, and again if a form was refused.
	Show func(*Request) (content any, err error)
	// Forms are the changes that the page can make, by the value of the button named "do".
	Forms map[string]Form
	// MaxForm is the maximum form size in bytes. If zero, it is 64 KiB.
	MaxForm int64
	// Files allows forms with files, as multipart/form-data. The content of a file is the value of its field, and a page
	// that is shown again does not have it.
	Files bool
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
	partsMedia     = "multipart/form-data"
	maxParts       = 100 // of a form with files
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
	// Links are the navigation of every page, with paths below the base.
	Links []Link
	// Waiting returns how many things wait for the reader, "" if nothing does. It is called for links with Counts. If nil,
	// no link has a count.
	Waiting func(*Request) string
	// NameOf returns the name of an object of the reader's organization. It is called once for each object of a page. If
	// nil, pages show IDs.
	NameOf func(r *Request, kind Kind, id string) Name
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
	answer, err := r.showRefusal(&refusal{Refused: Refused{http.StatusNotFound, "Not found"}})
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

// addLinks adds the navigation to the frame of a page at a path: the links that the reader may use, and either the tabs
// or the parents of the page.
func (s *Server) addLinks(r *Request, f *Frame) {
	for _, l := range s.access.Links {
		if l.Tabs = s.readable(r, l.Tabs); l.Needs != "" && !r.Person.May(l.Needs) {
			continue
		}
		l.URL = s.kit.Base + l.URL
		if s.access.Waiting != nil && l.Counts != "" {
			l.Count = s.access.Waiting(r)
		}
		f.Nav = append(f.Nav, l)
	}
	path := s.kit.Base + r.URL.Path
	best, bestTab, length := -1, -1, 0
	for i, l := range f.Nav {
		if covers(l.URL, path) && len(l.URL) > length {
			best, bestTab, length = i, -1, len(l.URL)
		}
		for j, tab := range l.Tabs {
			if tab.Below != "" && covers(s.kit.Base+tab.Below, path) {
				best, bestTab, length = i, j, len(s.kit.Base+tab.Below)
			}
			if covers(tab.URL, path) && (len(tab.URL) > length || best == i && len(tab.URL) == length) {
				best, bestTab, length = i, j, len(tab.URL)
			}
		}
	}
	if best < 0 {
		return
	}
	f.Nav[best].Current = true
	link := f.Nav[best]
	if length == len(path) {
		if bestTab >= 0 && len(link.Tabs) > 1 {
			f.Tabs = link.Tabs
			f.Tabs[bestTab].Current = true
		}
		return
	}
	f.Parents = []Link{link}
	if bestTab > 0 {
		f.Parents = append(f.Parents, link.Tabs[bestTab])
	}
}

// readable returns the links that the reader may use, with their addresses below the base.
func (s *Server) readable(r *Request, links []Link) []Link {
	var may []Link
	for _, l := range links {
		if l.Needs == "" || r.Person.May(l.Needs) {
			l.URL = s.kit.Base + l.URL
			may = append(may, l)
		}
	}
	return may
}

// covers reports whether path is the page of a link or below it.
func covers(link, path string) bool {
	return path == link || len(path) > len(link) && path[:len(link)] == link && path[len(link)] == '/'
}

// noticeParameter is the query parameter of every page that selects the confirmation of a form.
const noticeParameter = "notice"

// notice returns the message that an address selects, or "" if it is unknown.
func (s *Server) notice(query url.Values) string { return s.notices[query.Get(noticeParameter)] }
