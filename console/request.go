package console

import (
	"net/http"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// maxBody is the maximum body size, in bytes, of all calls except calls with a policy.
const maxBody = 64 << 10

// request is a call of a caller who has the required permission.
type request struct {
	*http.Request
	*Caller
	body edge.Body // bounds of the body
}

// ReadBody reads the body within the bounds of the route.
func (r *request) ReadBody() ([]byte, error) { return edge.ReadBody(r.Request, r.body) }

// DecodeBody decodes a body of strict JSON into v.
func (r *request) DecodeBody(v any) error {
	body, err := r.ReadBody()
	if err != nil {
		return err
	}
	return edge.DecodeStrict(body, v)
}

// DecodeOptionalBody is DecodeBody for a body that may be absent.
func (r *request) DecodeOptionalBody(v any) error {
	body, err := r.ReadBody()
	if err != nil || len(body) == 0 {
		return err
	}
	return edge.DecodeStrict(body, v)
}

// PathParameter returns a decoded path parameter.
func (r *request) PathParameter(name string) string { return edge.PathParameter(r.Request, name) }

// answer is the result of a call: a value to send as JSON, no content, or a stream.
type answer struct {
	Status int
	Body   any // nil: no content
	Stream *stream
}

// jsonAnswer returns an answer with body as JSON, or without content if body is nil.
func jsonAnswer(status int, body any) answer { return answer{Status: status, Body: body} }

// okAnswer answers with 200 and body unless err is set.
func okAnswer(body any, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, body), nil
}

// createdAnswer answers with 201 and body unless err is set.
func createdAnswer(body any, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusCreated, body), nil
}

// acceptedAnswer answers with 202 and body unless err is set.
func acceptedAnswer(body any, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusAccepted, body), nil
}

// noContent answers with 204 unless err is set.
func noContent(err error) (answer, error) { return answer{Status: http.StatusNoContent}, err }

func (a answer) write(w http.ResponseWriter) error {
	if a.Body == nil {
		edge.WriteNoContent(w)
		return nil
	}
	return edge.WriteJSON(w, a.Status, a.Body)
}
