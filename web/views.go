package web

import (
	"embed"

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
	clientsPage = "clients"
	refusalPage = "refusal"
	offlinePage = "offline"
	badgePage   = "badge"

	helpPage     = "help"
	apiPage      = "helpapi"
	areaPage     = "helparea"
	runbooksPage = "runbooks"
)

// Scripts of pages.
const (
	eventScript = "event.js"
	logScript   = "log.js"
	checkScript = "check.js"
	agentScript = "agent.js"
	badgeScript = "badge.js"
)

// parseViews parses the templates of every page.
func parseViews(k *page.Kit) *page.Views {
	return k.Parse(templates, []string{"form", "loglist", "drawing"},
		[]string{homePage, logsPage, eventPage, logPage, checkPage, agentPage, clientsPage, refusalPage,
			offlinePage, badgePage, helpPage, apiPage, areaPage, runbooksPage})
}

// render renders a page, with the modules that its script imports.
func (s *Server) render(name, title, script string, content any) ([]byte, error) {
	f := page.Frame{Name: name, Title: title, Script: script, Page: content}
	if script != "" {
		f.Modules = s.kit.Assets.Modules(script)
	}
	return s.views.Render(f)
}

// showRefusal renders the page of a refused request. It repeats nothing of the request.
func (s *Server) showRefusal(status int, message string) (page.Answer, error) {
	refused := page.Refused{Status: status, Message: message}
	body, err := s.render(refusalPage, refused.Title(), "", refused)
	return page.Answer{Status: status, Media: page.MediaHTML, Cache: page.Never, Body: body}, err
}
