package call

import (
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// MaxBody is the largest body, in bytes, of all calls but those with a policy.
const MaxBody = 64 << 10

// Request is a call of a person with the right to it.
type Request struct {
	*http.Request
	Who     *account.Session
	ByToken bool // a program asks, with a console token

	body edge.Body // bounds of the body
}

// ReadBody reads the body within the bounds of the route.
func (r *Request) ReadBody() ([]byte, error) { return edge.ReadBody(r.Request, r.body) }

// DecodeBody reads a body of strict JSON into v.
func (r *Request) DecodeBody(v any) error {
	body, err := r.ReadBody()
	if err != nil {
		return err
	}
	return edge.DecodeStrict(body, v)
}

// DecodeOptionalBody is DecodeBody for a body that may be left out.
func (r *Request) DecodeOptionalBody(v any) error {
	body, err := r.ReadBody()
	if err != nil || len(body) == 0 {
		return err
	}
	return edge.DecodeStrict(body, v)
}

// PathParameter returns a part of the path as the client meant it.
func (r *Request) PathParameter(name string) string {
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

// ParsePage reads ?after= and ?limit=.
func (r *Request) ParsePage() (edge.Page, error) { return edge.ParsePage(r.Request) }

// Answer is the result of a call: a value for JSON, nothing, or a stream.
type Answer struct {
	Status int
	Body   any // nil: no content
	Stream *Stream
}

// JSON returns an answer with a body of JSON, or none for nil.
func JSON(status int, body any) Answer { return Answer{Status: status, Body: body} }

// OK answers with 200 and body, unless there is an error.
func OK(body any, err error) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	return JSON(http.StatusOK, body), nil
}

// NoContent answers with 204, unless there is an error.
func NoContent(err error) (Answer, error) { return Answer{Status: http.StatusNoContent}, err }

func (a Answer) write(w http.ResponseWriter) error {
	if a.Body == nil {
		edge.WriteNoContent(w)
		return nil
	}
	return edge.WriteJSON(w, a.Status, a.Body)
}
