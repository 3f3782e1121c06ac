package web

import (
	"net/url"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/web/page"
)

// How many logs a page lists.
const (
	logsOnHome = 10
	logsOnPage = 100
)

// logsView is a page of the list of logs.
type logsView struct {
	Base      string
	Directory string // slug of the log that lists all others; "" if none
	Logs      []ListedLog
	Sized     bool   // the list contains sizes
	Next      string // address of the next page; "" at the end
}

// listLogs serves the list of logs. It answers 404 unless the operator enables the list.
func (s *Server) listLogs(r *request) (page.Answer, error) {
	v, err := s.readLogs(r, r.formValue("after"), logsOnPage)
	if err != nil {
		return page.Answer{}, err
	}
	body, err := s.render(logsPage, "Logs", "", v)
	return page.Answer{Media: page.MediaHTML, Cache: page.Revalidate, Body: body}, err
}

func (s *Server) readLogs(r *request, after string, limit int) (*logsView, error) {
	if s.options.Logs == nil {
		return nil, fault.New(fault.NotFound, "Not found")
	}
	found, next, err := s.options.Logs.ListLogs(r.Context(), after, limit)
	if err != nil {
		return nil, err
	}
	v := &logsView{Base: s.kit.Base, Directory: string(s.options.Logs.Directory()), Logs: found}
	v.Sized = len(found) > 0 && found[0].Key == ""
	if next != "" {
		v.Next = s.kit.Base + "/logs?after=" + url.QueryEscape(next)
	}
	return v, nil
}
