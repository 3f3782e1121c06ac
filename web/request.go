package web

import (
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/web/page"
)

// request is a request and the organization in its path.
type request struct {
	*http.Request
	slug   id.Slug   // "" if the path contains none
	tenant id.Tenant // id.Service if the path contains none
}

// pathParameter returns a decoded path parameter.
func (r *request) pathParameter(name string) string { return edge.PathParameter(r.Request, name) }

// formValue returns a query parameter, or "" if it is absent.
func (r *request) formValue(name string) string { return r.URL.Query().Get(name) }

// call is one request of the surface and its answer.
type call struct {
	request
	server *Server
	get    getter
	w      http.ResponseWriter
	answer page.Answer
}

// Identify implements admission.Call.
func (c *call) Identify() (admission.Tenant, error) {
	c.slug = id.Slug(c.pathParameter("slug"))
	if c.slug == "" {
		c.slug = id.Slug(c.formValue("log"))
	}
	var err error
	if c.slug != "" {
		c.tenant, err = c.server.orgs.BySlug(c.Context(), c.slug)
	}
	if err == nil {
		err = c.server.edge.CheckReader(c.Context(), c.tenant)
	}
	return admission.Tenant{ID: c.tenant, Public: true}, err
}

// Handle implements admission.Call.
func (c *call) Handle() (err error) {
	c.answer, err = c.get(&c.request)
	return err
}

// Send implements admission.Sender. It flushes, because most of a page's time is spent on slow readers, and the page
// holds its slot until then.
func (c *call) Send() error {
	c.answer.WriteTo(c.w, c.Request)
	_ = http.NewResponseController(c.w).Flush()
	return nil
}

func errNotFound() error { return fault.New(fault.NotFound, "Not found") }
