package web

import (
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/web/page"
)

// badgeView is the content of a badge: a small page that other websites show in a frame.
type badgeView struct {
	Name    string
	LogURL  string
	Prefix  string // of the log's transparency calls
	Origin  id.Origin
	Theme   string // light or dark; "" for that of the reader's system
	Assets  string
	Script  string
	Modules []string
}

// showBadge serves the badge of a log. It is the only page that other sites may frame: it has no form, and it shows nothing
// that depends on who reads it.
func (s *Server) showBadge(r *request) (page.Answer, error) {
	if r.slug == "" {
		return page.Answer{}, errNotFound()
	}
	v := badgeView{LogURL: s.logURL(r.slug), Prefix: s.transparencyURL(r.slug), Theme: r.formValue("theme"),
		Assets: s.kit.Base + "/assets/" + s.kit.Assets.Folder, Script: badgeScript, Modules: s.kit.Assets.Modules(badgeScript)}
	if v.Theme != "" && v.Theme != "light" && v.Theme != "dark" {
		return page.Answer{}, fault.New(fault.Invalid, "theme must be light or dark")
	}
	head, err := s.log.LogHead(r.Context(), r.tenant, r.slug)
	if err == nil {
		v.Origin = head.Origin
		v.Name, err = s.nameOrganization(r)
	}
	if err != nil {
		return page.Answer{}, err
	}
	body, err := s.views.Execute(badgePage, "badge", v)
	return page.Answer{Media: page.MediaHTML, Cache: page.Revalidate, Framed: true, Body: body}, err
}
