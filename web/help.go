package web

import (
	"sync"

	"github.com/agentledger/agentledger/docs"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/http/header"
	"github.com/agentledger/agentledger/web/help"
	"github.com/agentledger/agentledger/web/page"
)

// Paths of the pages that explain the service. They are the same for everybody, as long as the process runs.
const (
	helpPath     = "/help"
	apiPath      = helpPath + "/api"
	runbooksPath = helpPath + "/runbooks"
)

// apiView is the list of all calls.
type apiView struct {
	*help.Reference
	Public string
}

// helpFrame returns a page of the help, with the tab of a path.
func (s *Server) helpFrame(tab, name, title string, content any) page.Frame {
	f := page.Frame{Name: name, Title: title, Page: content}
	for _, l := range []page.Link{{Title: "Verify", URL: helpPath}, {Title: "HTTP interface", URL: apiPath},
		{Title: "Runbooks", URL: runbooksPath}} {
		f.Tabs = append(f.Tabs, page.Link{Title: l.Title, URL: s.kit.Base + l.URL, Current: l.URL == tab})
	}
	return f
}

// verifyFrames returns the page for readers who have a link or a file.
func (s *Server) verifyFrames() (map[string]page.Frame, error) {
	return map[string]page.Frame{"": s.helpFrame(helpPath, helpPage, "How to verify", s.kit.Public)}, nil
}

// runbookFrames returns the page for operators with an alert.
func (s *Server) runbookFrames() (map[string]page.Frame, error) {
	runbooks, err := help.ReadRunbooks(docs.Runbooks)
	if err != nil {
		return nil, err
	}
	return map[string]page.Frame{"": s.helpFrame(runbooksPath, runbooksPage, "Runbooks", runbooks)}, nil
}

// apiFrames returns the list of all calls, and a page for each area.
func (s *Server) apiFrames() (map[string]page.Frame, error) {
	reference, err := help.ReadReference(edge.OpenAPI())
	if err != nil {
		return nil, err
	}
	frames := map[string]page.Frame{"": s.helpFrame(apiPath, apiPage, "HTTP interface", apiView{reference, s.kit.Public})}
	for _, area := range reference.Areas {
		f := s.helpFrame(apiPath, areaPage, "Calls: "+area.Name, area)
		f.Parents = []page.Link{{Title: "HTTP interface", URL: s.kit.Base + apiPath}}
		frames[area.Name] = f
	}
	return frames, nil
}

// renderedPage is a page and its compressed form.
type renderedPage struct{ plain, gzip []byte }

// once returns the getter of pages by the area in their path, "" for none. They are rendered at the first request: the
// reference takes about 100 ms, and most processes are never asked for it.
func (s *Server) once(frames func() (map[string]page.Frame, error)) getter {
	rendered := sync.OnceValues(func() (map[string]renderedPage, error) {
		all, err := frames()
		if err != nil {
			return nil, err
		}
		pages := make(map[string]renderedPage)
		for area, f := range all {
			body, err := s.views.Render(f)
			if err != nil {
				return nil, err
			}
			pages[area] = renderedPage{body, page.Compress(body)}
		}
		return pages, nil
	})
	return func(r *request) (page.Answer, error) {
		pages, err := rendered()
		if err != nil {
			return page.Answer{}, err
		}
		found, ok := pages[r.pathParameter("area")]
		if !ok {
			return page.Answer{}, errNotFound()
		}
		answer := page.Answer{Media: page.MediaHTML, Cache: page.Revalidate, Vary: "Accept-Encoding", Body: found.plain}
		if header.WantsGzip(r.Header["Accept-Encoding"]) {
			answer.Body, answer.Coding = found.gzip, header.Gzip
		}
		return answer, nil
	}
}
