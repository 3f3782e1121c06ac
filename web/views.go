package web

import (
	"embed"
	"net/http"
	"slices"

	"github.com/agentledger/agentledger/web/page"
)

//go:embed templates
var templates embed.FS

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

// parseViews reads the templates of every page.
func parseViews(k *page.Kit) *page.Views {
	return k.Parse(templates, []string{"checks", "form"},
		[]string{homePage, eventPage, logPage, checkPage, agentPage, refusalPage, offlinePage})
}

// render makes a page. Modules are those that its script imports.
func (s *Server) render(name, title, script string, content any) ([]byte, error) {
	f := page.Frame{Name: name, Title: title, Script: script, Page: content}
	if script != "" {
		f.Modules = scriptModules(script, s.kit.Assets.VerifierModules())
	}
	return s.views.Render(f)
}

// scriptModules returns the modules of a page that checks.
func scriptModules(script string, verifier []string) []string {
	if script == agentScript {
		return []string{script, "times.js"}
	}
	var all []string
	for _, name := range verifier {
		all = append(all, page.VerifierFolder+name)
	}
	own := []string{"consistency.js", "marks.js", "memory.js", "times.js", "trust.js"}
	switch script {
	case eventScript:
		own = append(own, "path.js", "verdicts.js")
	case checkScript:
		own = []string{"marks.js"}
		for _, name := range []string{"manifest", "pack", "packlines", "zip"} {
			all = append(all, page.VerifierFolder+"verify/"+name+".js")
		}
	}
	return slices.Concat([]string{script}, own, all)
}

// showRefusal makes the page of a refused request. It repeats nothing of the request.
func (s *Server) showRefusal(status int, message string) (page.Answer, error) {
	body, err := s.render(refusalPage, http.StatusText(status), "", message)
	return page.Answer{Status: status, Media: page.MediaHTML, Cache: page.Never, Body: body}, err
}
