// Package page serves pages: the frame around a page, its headers and the files that it loads, and the screens of users who
// sign in. A screen reads and changes through functions that its package was given; Access admits the reader.
//
// Invariants:
//
//   - A page loads nothing from another host. Its content security policy allows no inline script or style, and no eval.
//   - Stored texts enter a page only through html/template.
//   - The path of an asset contains the hash of all assets, so its content never changes.
//   - The files of the verifier are served exactly as they are in the repository.
//   - The functions that a screen or a form calls check what the caller may do, as they do for calls over HTTP.
//   - Showing a screen, or sending a form, counts as one request in the metrics and in the log, with the request ID of the
//     answer and the reason if the form was refused.
//   - A change is a POST of a form. Access refuses forms that a browser sends on behalf of another site.
//   - Every form works without JavaScript.
//   - A rejected form is shown again with its values, except passwords, and with the reason.
//   - Screens are never cached, and no screen redirects to another host.
//   - A secret appears in the answer to the form that created it, and in no address.
package page

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"strings"
	"sync"
)

//go:embed templates
var frames embed.FS

// Kit is what all pages of a service share. It may be used concurrently.
type Kit struct {
	Public string // the public URL without a trailing slash
	Base   string // its path; "" if none
	Assets *Assets
	Places Places
}

// Places are paths of pages that other pages link to, below the base.
type Places struct {
	Home    string // for strangers
	Inside  string // the first page after signing in
	SignIn  string
	SignOut string // accepts POST
}

// NewKit returns the kit of a service. It panics if the embedded files are invalid.
func NewKit(publicURL string) *Kit {
	files, err := ReadAssets()
	if err != nil {
		panic(err) // the files are embedded
	}
	return &Kit{Public: publicURL, Base: basePath(publicURL), Assets: files,
		Places: Places{Home: "/", Inside: "/console", SignIn: "/signin", SignOut: "/signout"}}
}

// basePath returns the path of the public URL without a trailing slash.
func basePath(public string) string {
	u, err := url.Parse(public)
	if err != nil {
		return ""
	}
	return strings.TrimRight(u.EscapedPath(), "/")
}

// Frame is the content that all pages share, and the page's own content.
type Frame struct {
	Name    string   // name of the page's template
	Title   string   // precedes the service's name
	Script  string   // the page's module in the assets folder; "" if none
	Modules []string // modules that the script imports, in the assets folder
	Page    any      // the page's own content

	SignsIn bool // whether forms of the page may set a sign-in cookie
	Shared  bool // whether the page is for holders of a link

	// For pages of signed-in users.
	Nav     []Link     // the navigation; empty for strangers
	Tabs    []Link     // sections of the current link, if the page is one of them
	Parents []Link     // the pages above the page, outermost first
	Person  string     // name of the reader; "" for a stranger
	Member  *Person    // the reader in the organization; nil for readers without an account
	Notice  string     // confirmation of the previous request
	Problem string     // why the form was refused
	Form    url.Values // the refused form

	names func(Kind, string) Name // nil if nothing is named
}

// Heading returns the heading of the page: its title, or the section's title if the page is a tab.
func (f Frame) Heading() string {
	for _, l := range f.Nav {
		if l.Current && len(f.Tabs) > 0 {
			return l.Title
		}
	}
	return f.Title
}

// maxTabs is the maximum number of tabs beside a heading. More have a line of their own.
const maxTabs = 5

// ManyTabs reports whether the tabs have a line of their own.
func (f Frame) ManyTabs() bool { return len(f.Tabs) > maxTabs }

// Organization returns the name of the reader's organization, or "" if there is none.
func (f Frame) Organization() string {
	if f.Member == nil {
		return ""
	}
	return f.Member.Organization.Name
}

// Link is a link of the navigation to another page.
type Link struct {
	Title, URL string
	Current    bool   // the page that is shown, or a page below it
	Icon       string // a name in the template "icon"; "" if none
	Group      string // heading above the link; "" if it continues the group
	Hidden     bool   // only its tabs are shown
	Needs      string // permission without which readers do not see the link; "" if all do
	Below      string // path of pages that are also below the page; "" if none
	Tabs       []Link // sections; the first one is the link's own page

	Count  string // what waits there for the reader; "" if nothing
	Counts string // what Count counts, in words
}

// framed is a frame with the values of its kit.
type framed struct {
	Frame
	Base     string // the service's base path
	Assets   string // the assets folder, as an absolute path
	Verifier string // SHA-256 of the verifier
	Places   Places
}

// Views are the templates of pages. Each template is parsed on first use, because a service has some 60 and most
// processes render few of them.
type Views struct {
	kit   *Kit
	pages map[string]func() *template.Template
}

// Parse returns the templates of pages, each in NAME.html, together with the shared ones and the frame. Rendering
// panics if they cannot be parsed, because they are embedded (TestTemplates parses all of them).
func (k *Kit) Parse(files fs.FS, shared []string, pages []string) *Views {
	v := &Views{kit: k, pages: make(map[string]func() *template.Template)}
	base := sync.OnceValue(func() *template.Template {
		base := template.Must(frame().Clone())
		if len(shared) == 0 {
			return base
		}
		return template.Must(base.ParseFS(files, withSuffix(shared)...))
	})
	for _, name := range pages {
		v.pages[name] = sync.OnceValue(func() *template.Template {
			return template.Must(template.Must(base().Clone()).ParseFS(files, withSuffix([]string{name})...))
		})
	}
	return v
}

// frame returns the templates that all pages share. It is never executed itself, so that it can be cloned.
var frame = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(functions()).ParseFS(frames, "templates/*.html"))
})

func withSuffix(names []string) []string {
	files := make([]string, len(names))
	for i, name := range names {
		files[i] = "templates/" + name + ".html"
	}
	return files
}

// Render renders a page.
func (v *Views) Render(f Frame) ([]byte, error) {
	k := v.kit
	full := framed{Frame: f, Base: k.Base, Assets: k.Base + "/assets/" + k.Assets.Folder, Verifier: k.Assets.Verifier,
		Places: k.Places}
	return v.Execute(f.Name, "frame", full)
}

// Execute executes one template of a page with a value.
func (v *Views) Execute(page, name string, value any) ([]byte, error) {
	var out bytes.Buffer
	if err := v.pages[page]().ExecuteTemplate(&out, name, value); err != nil {
		return nil, fmt.Errorf("render page %s: %w", page, err)
	}
	return out.Bytes(), nil
}
