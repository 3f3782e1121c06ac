package edge

import (
	"encoding"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/listener"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Media types of bodies.
const (
	MediaJSON   = "application/json"
	MediaNDJSON = "application/x-ndjson"
)

// firstRead bounds the memory that is allocated based on Content-Length.
const firstRead = 512 << 10

// ReadBody reads the body of a request within bounds. It returns fault.TooLarge if the body is
// longer, fault.TooSlow if it does not arrive in time, and fault.UnsupportedMedia
// if the Content-Type differs (parameters are ignored, except a charset other than UTF-8)
// or the Content-Encoding is not identity.
func ReadBody(r *http.Request, bounds Body) ([]byte, error) {
	body, err := readBounded(r, bounds.Max)
	if err != nil {
		return nil, err
	}
	return body, checkMedia(r.Header, bounds.Media)
}

func readBounded(r *http.Request, max int64) ([]byte, error) {
	if r.ContentLength > max {
		return nil, errTooLarge()
	}
	if c := listener.ContextOf(r.Context()); c != nil { // the client's time does not count
		c.Pause()
		defer c.Resume()
	}
	capacity := min(r.ContentLength, firstRead)
	if capacity < 0 {
		capacity = 4 << 10
	}
	body := make([]byte, 0, capacity+1) // one more, to reach the end without growing
	for {
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > max:
			return nil, errTooLarge()
		case errors.Is(err, io.EOF):
			return body, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, fault.Wrap(fault.TooSlow, "The body took too long to arrive", err)
		case err != nil:
			return nil, fault.Wrap(fault.Invalid, "The body could not be read", err)
		case len(body) == cap(body):
			body = append(body, 0)[:len(body)]
		}
	}
}

func errTooLarge() error { return fault.New(fault.TooLarge, "The body is too large") }

func checkMedia(h http.Header, want string) error {
	for _, coding := range h["Content-Encoding"] {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return fault.New(fault.UnsupportedMedia, "Content-Encoding must be identity")
		}
	}
	switch values := h["Content-Type"]; {
	case len(values) == 0 || len(values) == 1 && (values[0] == "" || values[0] == want):
		return nil
	case len(values) > 1:
		return fault.New(fault.UnsupportedMedia, "Content-Type must be "+want)
	}
	mediaType, parameters, err := mime.ParseMediaType(h["Content-Type"][0])
	charset, given := parameters["charset"]
	if err != nil || mediaType != want || given && !strings.EqualFold(charset, "utf-8") {
		return fault.New(fault.UnsupportedMedia, "Content-Type must be "+want)
	}
	return nil
}

// DecodeStrict decodes a strict I-JSON body into v. It returns fault.Invalid, with a message that names the member, if
// a member is unknown, repeated or of another type. A *fault.Error of an UnmarshalText or UnmarshalJSON method
// is returned unchanged.
func DecodeStrict(body []byte, v any) error {
	canonical, err := jcs.Canonicalize(body, jcs.MaxDepth)
	if err != nil {
		return err
	}
	err = json.Unmarshal(canonical, v, json.RejectUnknownMembers(true))
	var own *fault.Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	return fault.Wrap(fault.Invalid, decodeMessage(err), err)
}

// ParseMember parses the text of a member, for a page that builds a request from a form. Its errors are those of
// DecodeStrict.
func ParseMember(name, text string, into encoding.TextUnmarshaler) error {
	err := into.UnmarshalText([]byte(text))
	var own *fault.Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	return fault.Wrap(fault.Invalid, "Member "+quoteMemberName(name)+anotherForm, err)
}

// anotherForm ends the message about a member that cannot be decoded.
const anotherForm = " has another type or form"

func decodeMessage(err error) string {
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) || semantic.JSONPointer == "" {
		return "The body must be a JSON object"
	}
	member := "Member " + quoteMemberName(strings.TrimPrefix(string(semantic.JSONPointer), "/"))
	if errors.Is(err, json.ErrUnknownName) {
		return member + " is not known"
	}
	return member + anotherForm
}
