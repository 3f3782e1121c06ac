package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
)

//go:embed templates
var templates embed.FS

// views are the templates of all pages.
type views struct{ pages map[string]*template.Template }

// Pages, by the names of their templates.
const (
	homePage    = "home"
	eventPage   = "event"
	logPage     = "log"
	checkPage   = "check"
	agentPage   = "agent"
	refusalPage = "refusal"
	offlinePage = "offline"
)

// Scripts of pages.
const (
	eventScript = "event.js"
	logScript   = "log.js"
	checkScript = "check.js"
	agentScript = "agent.js"
)

// parseTemplates reads every page together with the frame around it.
func parseTemplates() (*views, error) {
	v := &views{pages: make(map[string]*template.Template)}
	for _, name := range []string{homePage, eventPage, logPage, checkPage, agentPage, refusalPage, offlinePage} {
		t, err := template.ParseFS(templates, "templates/frame.html", "templates/checks.html",
			"templates/form.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("parse page %s: %w", name, err)
		}
		v.pages[name] = t
	}
	return v, nil
}

// frame is the content that all pages share, with the page's own.
type frame struct {
	Title    string
	Base     string   // the path before every path of the service
	Assets   string   // the folder of the assets, from the root of the host
	Script   string   // the page's module in it, "" for none
	Modules  []string // that the script imports, below the folder
	Verifier string   // SHA-256 of the verifier
	Page     any
}

// render makes a page. Modules are those that its script imports.
func (s *Server) render(name, title, script string, page any) ([]byte, error) {
	f := frame{Title: title, Base: s.base, Assets: s.base + "/assets/" + s.assets.folder, Script: script,
		Verifier: s.assets.verifier, Page: page}
	if script != "" {
		f.Modules = scriptModules(script, s.assets.modules())
	}
	var out bytes.Buffer
	if err := s.views.pages[name].ExecuteTemplate(&out, "frame", f); err != nil {
		return nil, fmt.Errorf("render page %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// scriptModules returns the modules of a page that checks.
func scriptModules(script string, verifier []string) []string {
	if script == agentScript {
		return []string{script, "times.js"}
	}
	var all []string
	for _, name := range verifier {
		all = append(all, verifierFolder+name)
	}
	own := []string{"consistency.js", "marks.js", "memory.js", "times.js", "trust.js"}
	switch script {
	case eventScript:
		own = append(own, "path.js", "verdicts.js")
	case checkScript:
		own = []string{"marks.js"}
		for _, name := range []string{"manifest", "pack", "packlines", "zip"} {
			all = append(all, verifierFolder+"verify/"+name+".js")
		}
	}
	return slices.Concat([]string{script}, own, all)
}

// showRefusal makes the page of a refused request. It repeats nothing of the request.
func (s *Server) showRefusal(status int, message string) (answer, error) {
	body, err := s.render(refusalPage, http.StatusText(status), "", message)
	return answer{status: status, media: mediaHTML, cache: never, body: body}, err
}
