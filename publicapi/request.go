package publicapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/log"
)

// request is a request and the organization in its path.
type request struct {
	*http.Request
	slug   id.Slug    // "" if the path has none
	tenant id.Tenant  // id.Service if the path names no organization
	known  *log.State // a state with the requested tile, if another node owns the organization; otherwise nil

	query url.Values // nil for tiles, whose URLs have no query
}

// origin returns the origin of the log that the query names, or "" if it names none.
func (r *request) origin() id.Origin { return id.Origin(r.query.Get("origin")) }

// slugOfPath returns the slug in the path of a request, or "".
func slugOfPath(r *http.Request) id.Slug {
	if r.URL.RawPath != "" {
		return id.Slug(edge.PathParameter(r, "slug"))
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, slugPrefix); ok {
		slug, _, _ := strings.Cut(rest, "/")
		return id.Slug(slug)
	}
	return ""
}

// idPrefix is the prefix of paths with an organization's ID.
const idPrefix = "/o/"

// organizationOfPath returns the organization ID in the path of a request, or "".
func organizationOfPath(r *http.Request) string {
	if r.URL.RawPath != "" {
		return chi.URLParam(r, "organization")
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, idPrefix); ok {
		organization, _, _ := strings.Cut(rest, "/")
		return organization
	}
	return ""
}

// tilePath returns the part of a request's path that starts with tile/, as it was sent, or "".
func tilePath(r *http.Request) string {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	if begin := strings.Index(path, "/tile/"); begin >= 0 {
		return path[begin+1:]
	}
	return ""
}

// findOrganization sets the organization, by the slug, the organization ID or the agent in the path.
func (s *Server) findOrganization(r *request) (err error) {
	r.slug = slugOfPath(r.Request)
	switch {
	case r.slug != "":
		r.tenant, err = s.orgs.BySlug(r.Context(), r.slug)
	case organizationOfPath(r.Request) != "":
		r.tenant, err = s.tenantByID(r.Request)
	case chi.URLParam(r.Request, "agent") != "":
		r.tenant, err = s.agents.Owner(r.Context(), id.Agent(edge.PathParameter(r.Request, "agent")))
	}
	return err
}

// bySlug returns the state of the ledger of a path with a slug: the newest one of
// the organization, or the one whose origin the query has.
func (s *Server) bySlug(r *request) (*log.State, error) {
	if r.tenant == id.Service { // a path with an empty slug
		return nil, errNotFound()
	}
	state, err := s.ledgers.State(r.Context(), r.tenant)
	if err != nil {
		return nil, err
	}
	return s.findByOrigin(r.Context(), state, r.origin())
}

// byID returns the state of the ledger of a path with an organization ID and, from the second ledger of a line on, a
// number.
func (s *Server) byID(r *request) (*log.State, error) {
	if r.tenant == id.Service {
		return nil, errNotFound()
	}
	if r.known != nil {
		return r.known, nil
	}
	state, err := s.ledgers.State(r.Context(), r.tenant)
	if err != nil {
		return nil, err
	}
	return s.findByNumber(r, state)
}

// tenantByID returns the tenant of the organization ID in a path. It accepts only the canonical spelling.
func (s *Server) tenantByID(r *http.Request) (id.Tenant, error) {
	text := organizationOfPath(r)
	organization, err := id.ParseOrganization(text)
	if err != nil || organization.String() != text {
		return 0, errNotFound()
	}
	return s.orgs.ByID(r.Context(), organization)
}

// provableBySlug is bySlug for responses that depend on entries or the tree.
func (s *Server) provableBySlug(r *request) (*log.State, error) {
	state, err := s.bySlug(r)
	if err != nil {
		return nil, err
	}
	return state, state.Provable()
}

// provableByID is byID for tiles.
func (s *Server) provableByID(r *request) (*log.State, error) {
	state, err := s.byID(r)
	if err != nil {
		return nil, err
	}
	return state, state.Provable()
}
