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

// request is a request and the organization that its path names.
type request struct {
	*http.Request
	slug   id.Slug    // "" when none is named by it
	tenant id.Tenant  // id.Service when none is named
	known  *log.State // that has the tile which is named, of an organization that another node owns; else nil

	query url.Values // nil for tiles, whose URLs have no query
}

// origin returns the origin of the log that the query names, or "" if it names none.
func (r *request) origin() id.Origin { return id.Origin(r.query.Get("origin")) }

// slugOfPath returns the slug that the path of a request names, "" for none.
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

// idPrefix begins the paths that name an organization by its id.
const idPrefix = "/o/"

// organizationOfPath returns the organization id that the path of a request names, "" for none.
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

// tilePath returns the path of a request from tile/ on, as it was sent; "" without one.
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

// findOrganization fills in the organization, by the slug that the path names, by its id, or by its
// agent.
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

// bySlug returns the state of the ledger that the path names by a slug: the newest of
// the organization, or the one whose origin the query gives.
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

// byID returns the state of the ledger that the path names by organization id, and
// from the second of a line on by its number.
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

// tenantByID returns the handle of the organization that the path names by its id,
// in its one spelling.
func (s *Server) tenantByID(r *http.Request) (id.Tenant, error) {
	text := organizationOfPath(r)
	organization, err := id.ParseOrganization(text)
	if err != nil || organization.String() != text {
		return 0, errNotFound()
	}
	return s.orgs.ByID(r.Context(), organization)
}

// provableBySlug is bySlug for answers that are made from entries or the tree.
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
