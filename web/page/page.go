// Package page serves pages: the frame around a page, its headers and the files that it loads, and the screens of users who
// sign in. A screen reads through the functions that its package was given (Access). It makes changes through the JSON
// interface with the cookie of its reader, as any client would.
//
// Invariants:
//
//   - A page loads nothing from another host. Its content security policy allows no inline script or style, and no eval.
//   - Stored texts enter a page only through html/template.
//   - The path of an asset contains the hash of all assets, so its content never changes.
//   - The files of the verifier are served exactly as they are in the repository.
//   - The interface decides who may do what: the functions that a screen calls check the caller as the JSON calls do.
//   - Showing a screen counts as one request in the metrics and in the log, with the request ID of the answer.
//   - A change is a POST of a form. The calls that it makes carry its Origin and Sec-Fetch-Site headers, so requests from
//     other sites are refused where the interface refuses them.
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

// Kit is the part that all pages of a service share. It may be used concurrently.
type Kit struct {
	Public string // the public URL, without a slash at its end
	Base   string // its path, "" for none
	Assets *Assets
	Places Places
}

// Places are paths of pages to which other pages lead, below the base.
type Places struct {
	Home    string // of strangers
	Inside  string // the first page of people who signed in
	SignIn  string
	SignOut string // takes a POST
}

// NewKit returns the kit of a service. It panics when the files that are built into the program can't be used.
func NewKit(publicURL string) *Kit {
	files, err := ReadAssets()
	if err != nil {
		panic(err) // the files are constants
	}
	return &Kit{Public: publicURL, Base: pathOf(publicURL), Assets: files,
		Places: Places{Home: "/", Inside: "/console", SignIn: "/signin", SignOut: "/signout"}}
}

// pathOf returns the path of the public URL, without a slash at its end.
func pathOf(public string) string {
	u, err := url.Parse(public)
	if err != nil {
		return ""
	}
	return strings.TrimRight(u.EscapedPath(), "/")
}

// Frame is the content that all pages share, with the page's own.
type Frame struct {
	Name    string   // of the page's template
	Title   string   // before the name of the service
	Script  string   // the page's module in the folder of the assets, "" for none
	Modules []string // that the script imports, below the folder
	Page    any      // the page's own content

	SignsIn bool // whether forms of the page may set a cookie of the sign-in

	// Of pages for people who signed in.
	Links   []Link     // to the other pages
	Person  string     // the name of the reader, "" for a stranger
	Notice  string     // the effect of the request before
	Problem string     // why a form was refused
	Form    url.Values // the refused form
}

// Link leads to another page. Current marks the one that is shown.
type Link struct {
	Title, URL string
	Current    bool
}

// framed is a frame with the values of its kit.
type framed struct {
	Frame
	Base     string // the path before every path of the service
	Assets   string // the folder of the assets, from the root of the host
	Verifier string // SHA-256 of the verifier
	Places   Places
}

// Views are the templates of pages. Each page is parsed when it is first rendered, because a service has some 60 and most
// processes render few of them.
type Views struct {
	kit   *Kit
	pages map[string]func() *template.Template
}

// Parse returns the templates of pages, NAME.html each, together with the shared ones and the frame. Rendering panics if
// they can't be parsed, because they are built into the program (TestTemplates parses all of them).
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

// Render makes a page.
func (v *Views) Render(f Frame) ([]byte, error) {
	k := v.kit
	full := framed{Frame: f, Base: k.Base, Assets: k.Base + "/assets/" + k.Assets.Folder, Verifier: k.Assets.Verifier,
		Places: k.Places}
	return v.Execute(f.Name, "frame", full)
}

// Execute runs one template of a page with a value.
func (v *Views) Execute(page, name string, value any) ([]byte, error) {
	var out bytes.Buffer
	if err := v.pages[page]().ExecuteTemplate(&out, name, value); err != nil {
		return nil, fmt.Errorf("render page %s: %w", page, err)
	}
	return out.Bytes(), nil
}
