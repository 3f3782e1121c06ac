package publicapi

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/fault"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// param returns a part of the path. The router matches the path as it was sent
// when that is spelled in another way than Go would, and then hands out parts
// that are still escaped.
func param(r *http.Request, name string) string {
	value := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return value
	}
	if plain, err := url.PathUnescape(value); err == nil {
		return plain
	}
	return ""
}

// bySlug returns the state of the ledger that the path names by a slug: the newest of
// the organization, or the one whose origin the query gives.
func (s *Server) bySlug(r *http.Request) (id.Slug, *log.State, error) {
	slug := id.Slug(param(r, "slug"))
	t, err := s.orgs.BySlug(r.Context(), slug)
	if err != nil {
		return "", nil, err
	}
	state, err := s.ledgers.State(r.Context(), t)
	if err != nil || r.URL.RawQuery == "" {
		return slug, state, err
	}
	q, err := readQuery(r)
	if err != nil {
		return "", nil, err
	}
	state, err = s.ofOrigin(r.Context(), state, q)
	return slug, state, err
}

// byID returns the state of the ledger that the path names by organization id, and
// from the second of a line on by its number.
func (s *Server) byID(r *http.Request) (*log.State, error) {
	t, err := s.tenantByID(r)
	if err != nil {
		return nil, err
	}
	state, err := s.ledgers.State(r.Context(), t)
	if err != nil {
		return nil, err
	}
	return s.ofNumber(r, state)
}

// tenantByID returns the handle of the organization that the path names by its id,
// in its one spelling.
func (s *Server) tenantByID(r *http.Request) (id.Tenant, error) {
	text := chi.URLParam(r, "organization")
	organization, err := id.ParseOrganization(text)
	if err != nil || organization.String() != text {
		return 0, notFound()
	}
	return s.orgs.ByID(r.Context(), organization)
}

// provableBySlug is bySlug for answers that are made from entries or the tree.
func (s *Server) provableBySlug(r *http.Request) (id.Slug, *log.State, error) {
	slug, state, err := s.bySlug(r)
	if err != nil {
		return "", nil, err
	}
	return slug, state, state.Provable()
}

// provableByID is byID for tiles.
func (s *Server) provableByID(r *http.Request) (*log.State, error) {
	state, err := s.byID(r)
	if err != nil {
		return nil, err
	}
	return state, state.Provable()
}

// query is the parameters of a request, each at most once.
type query url.Values

func readQuery(r *http.Request) (query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.New(fault.Invalid, "The query is malformed")
	}
	for _, v := range values {
		if len(v) > 1 {
			return nil, fault.New(fault.Invalid, "A query parameter is given twice")
		}
	}
	return query(values), nil
}

func (q query) has(name string) bool { return len(q[name]) > 0 }

func (q query) text(name string) string { return url.Values(q).Get(name) }

// index reads a log index or tree size: decimal digits without leading zeros.
func (q query) index(name string, absent id.Index) (id.Index, error) {
	if !q.has(name) {
		return absent, nil
	}
	n, err := strconv.ParseUint(q.text(name), 10, 64)
	if err != nil || id.Index(n) > tlog.MaxSize || strconv.FormatUint(n, 10) != q.text(name) {
		return 0, fault.New(fault.Invalid, name+" must be a whole number in decimal digits")
	}
	return id.Index(n), nil
}
