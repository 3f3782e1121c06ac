package web

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/web/page"
)

// homeView is the content of the service's home.
type homeView struct{ PublicURL string }

// showHome serves the home of the service.
func (s *Server) showHome(*request) (page.Answer, error) {
	body, err := s.render(homePage, "Transparency log of AI agents", "", homeView{s.kit.Public})
	return page.Answer{Media: page.MediaHTML, Cache: page.Revalidate, Body: body}, err
}

// showCheck serves the page that checks a file of the reader.
func (s *Server) showCheck(*request) (page.Answer, error) {
	body, err := s.render(checkPage, "Check a document", checkScript, s.offline.sha256)
	return page.Answer{Media: page.MediaHTML, Cache: page.Revalidate, Body: body}, err
}

// eventURL returns the path of an event.
func (s *Server) eventURL(slug id.Slug, event string) string {
	return s.kit.Base + "/v1/public/orgs/" + url.PathEscape(string(slug)) + "/verify/" + url.PathEscape(event)
}

// findEvent serves find: it leads to the event of a log that has an id or, with digits alone,
// an index. Digits that are the id of an event are that id.
func (s *Server) findEvent(r *request) (page.Answer, error) {
	name := r.formValue("event")
	if r.slug == "" || name == "" {
		return page.Answer{}, fault.New(fault.Invalid, "Give the name of a log, and an event id or index")
	}
	_, err := s.log.EventBundle(r.Context(), r.tenant, r.slug, name, "")
	if at, isIndex := parseIndex(name); isIndex && fault.Is(err, fault.NotFound) {
		var found id.Event
		found, err = s.log.EventAt(r.Context(), r.tenant, at)
		name = string(found)
	}
	if err != nil {
		return page.Answer{}, err
	}
	return page.Answer{Status: http.StatusSeeOther, Cache: page.Never, Location: s.eventURL(r.slug, name)}, nil
}

// parseIndex reads a log index: decimal digits without leading zeros.
func parseIndex(text string) (id.Index, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return id.Index(n), err == nil && id.Index(n) < tlog.MaxSize && strconv.FormatUint(n, 10) == text
}
