package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/web/page"
)

// homeView is the content of the service's home page.
type homeView struct {
	PublicURL string
	Reason    string // why the service is unhealthy; "" if it is healthy
	Logs      *logsView
}

// showHome serves the home page of the service. It omits the list of logs if it cannot be read.
func (s *Server) showHome(r *request) (page.Answer, error) {
	v := homeView{PublicURL: s.kit.Public}
	if s.options.Health != nil {
		v.Reason = s.options.Health(r.Context())
	}
	if found, err := s.readLogs(r, "", logsOnHome); err == nil {
		v.Logs = found
	}
	body, err := s.render(homePage, "Transparency log of AI agents", "", v)
	return page.Answer{Media: page.MediaHTML, Cache: page.Revalidate, Body: body}, err
}

// showCheck serves the page that checks a reader's file.
func (s *Server) showCheck(*request) (page.Answer, error) {
	file, err := s.offline()
	if err != nil {
		return page.Answer{}, err
	}
	body, err := s.render(checkPage, "Check a document", checkScript, file.sha256)
	return page.Answer{Media: page.MediaHTML, Cache: page.Revalidate, Body: body}, err
}

// eventURL returns the path of an event.
func (s *Server) eventURL(slug id.Slug, event string) string {
	return s.kit.Base + "/v1/public/orgs/" + url.PathEscape(string(slug)) + "/verify/" + url.PathEscape(event)
}

// findEvent serves find: it redirects to the event of a log with a given ID, index (if the text has only digits) or
// event hash. An event ID takes precedence. If the text is empty, it redirects to the log's home page.
func (s *Server) findEvent(r *request) (page.Answer, error) {
	name := r.formValue("event")
	if r.slug != "" && name == "" {
		return page.Answer{Status: http.StatusSeeOther, Cache: page.Never, Location: s.logURL(r.slug)}, nil
	}
	if r.slug == "" {
		return page.Answer{}, fault.New(fault.Invalid, "Give the name of a log, and an event ID, index or event hash")
	}
	_, err := s.log.EventBundle(r.Context(), r.tenant, r.slug, name, "")
	if fault.Is(err, fault.NotFound) {
		name, err = s.findByPlace(r, name)
	}
	if err != nil {
		return page.Answer{}, err
	}
	return page.Answer{Status: http.StatusSeeOther, Cache: page.Never, Location: s.eventURL(r.slug, name)}, nil
}

// findByPlace returns the ID of the event with an index or an event hash.
func (s *Server) findByPlace(r *request, name string) (string, error) {
	at, isIndex := parseIndex(name)
	if hash, err := id.ParseHash(strings.ToLower(name)); err == nil && !isIndex && s.options.Hashes != nil {
		if at, err = s.options.Hashes.IndexOf(r.Context(), r.tenant, hash); err != nil {
			return "", err
		}
		isIndex = true
	}
	if !isIndex {
		return "", errNotFound()
	}
	found, err := s.log.EventAt(r.Context(), r.tenant, at)
	return string(found), err
}

// parseIndex parses a log index: decimal digits without leading zeros.
func parseIndex(text string) (id.Index, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return id.Index(n), err == nil && id.Index(n) < tlog.MaxSize && strconv.FormatUint(n, 10) == text
}
