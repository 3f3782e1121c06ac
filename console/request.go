package console

import (
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// maxBody is the largest body, in bytes, of all calls but those with a policy.
const maxBody = 64 << 10

// request is a call of a person with the right to it.
type request struct {
	*http.Request
	who  *account.Session
	body edge.Body // bounds of the body

	byToken bool // a program asks, with a console token
}

func (r *request) readBody() ([]byte, error) { return edge.ReadBody(r.Request, r.body) }

// decodeBody reads a body of strict JSON into v.
func (r *request) decodeBody(v any) error {
	body, err := r.readBody()
	if err != nil {
		return err
	}
	return edge.DecodeStrict(body, v)
}

// decodeOptionalBody is decode for a body that may be left out.
func (r *request) decodeOptionalBody(v any) error {
	body, err := r.readBody()
	if err != nil || len(body) == 0 {
		return err
	}
	return edge.DecodeStrict(body, v)
}

// pathParameter returns a part of the path as the client meant it.
func (r *request) pathParameter(name string) string {
	value := chi.URLParam(r.Request, name)
	if r.URL.RawPath == "" {
		return value // of the decoded path
	}
	decoded, err := url.PathUnescape(value)
	if err != nil {
		return value
	}
	return decoded
}

// page is the part of a list that is wanted.
type page struct {
	after string // the last item of the page before, "" for the first page
	limit int
}

// parsePage reads ?after= and ?limit=.
func (r *request) parsePage() (page, error) {
	p, err := edge.ParsePage(r.Request)
	return page{p.After, p.Limit}, err
}

// cutPage shows one page of items that were found with one more than the page holds,
// and returns the `after` of the next page, nil for the last one.
func cutPage[T, S any](p page, found []T, name func(T) string, show func(T) S) (shown []S, next *string) {
	return edge.CutPage(edge.Page{After: p.after, Limit: p.limit}, found, name, show)
}
