package web

import (
	"embed"
	"net/http"
	"strings"

	"github.com/agentledger/agentledger/web/page"
)

//go:embed templates
var templates embed.FS

// Pages, by the names of their templates.
const (
	homePage    = "home"
	logsPage    = "logs"
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
	return k.Parse(templates, []string{"form", "loglist"},
		[]string{homePage, logsPage, eventPage, logPage, checkPage, agentPage, refusalPage, offlinePage})
}

// render makes a page. Modules are those that its script imports.
func (s *Server) render(name, title, script string, content any) ([]byte, error) {
	f := page.Frame{Name: name, Title: title, Script: script, Page: content}
	if script != "" {
		f.Modules = scriptModules(script, s.kit.Assets)
	}
	return s.views.Render(f)
}

// scriptModules returns the modules of a page's script.
func scriptModules(script string, a *page.Assets) []string {
	switch script {
	case agentScript:
		return []string{script, "times.js"}
	case eventScript:
		return append([]string{script}, a.EventModules()...)
	case checkScript:
		all := append([]string{script, "marks.js"}, a.VerifierModules()...)
		for name := range strings.FieldsSeq("archive container coverage entries erasures inflate manifest pack packlines source") {
			all = append(all, page.VerifierFolder+"verify/"+name+".js")
		}
		return all
	}
	return append([]string{script, "consistency.js", "knownkeys.js", "live.js", "marks.js", "memory.js", "times.js",
		"trust.js"}, a.VerifierModules()...)
}

// showRefusal makes the page of a refused request. It repeats nothing of the request.
func (s *Server) showRefusal(status int, message string) (page.Answer, error) {
	body, err := s.render(refusalPage, http.StatusText(status), "", message)
	return page.Answer{Status: status, Media: page.MediaHTML, Cache: page.Never, Body: body}, err
}
