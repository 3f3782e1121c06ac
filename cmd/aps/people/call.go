package people

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/http/header"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// Refusal is a response of the service other than success.
type Refusal struct {
	Status  int
	Message string // printable
	Code    string

	RetryAfter time.Duration // 0 if the service did not ask to wait
}

// Error implements error.
func (r *Refusal) Error() string { return fmt.Sprintf("%d %s", r.Status, r.Message) }

// session makes calls for one user or with one token.
type session struct {
	base   string // URL of the service
	cookie *http.Cookie
	token  string
	stored bool // by aps login
	http   *http.Client
}

const (
	callTime         = 30 * time.Second
	maxConsoleAnswer = 64 << 20 // maximum size of a response in bytes
)

// newSession returns a session that follows no redirects, because a cookie belongs to one service.
func newSession(base string) *session {
	return &session{base: strings.TrimRight(base, "/"), http: &http.Client{Timeout: callTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func (s *session) callConsole(ctx context.Context, method, path string, body, answer any) error {
	_, err := s.call(ctx, method, s.base+"/v1/console"+path, body, answer)
	return err
}

// call sends body as JSON, decodes the response into answer, and returns the received cookies.
func (s *session) call(ctx context.Context, method, address string, body, answer any) ([]*http.Cookie, error) {
	sent, err := encodeBody(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(sent))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	s.authorize(r)
	response, err := s.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxConsoleAnswer))
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, readRefusal(response, text)
	}
	switch answer := answer.(type) {
	case nil:
	case *rawText:
		*answer = text
	default:
		err = json.Unmarshal(text, answer)
	}
	return response.Cookies(), err
}

// authorize adds the credential of the session to a request.
func (s *session) authorize(r *http.Request) {
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	if s.cookie != nil {
		r.AddCookie(s.cookie)
	}
}

// encodeBody returns JSON text unchanged.
func encodeBody(body any) ([]byte, error) {
	switch b := body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return b, nil
	}
	return json.Marshal(body)
}

// readRefusal returns the refusal in a response. It shows nothing of a proxy's page.
func readRefusal(response *http.Response, text []byte) error {
	var told struct {
		Error string `json:"error"`
		Code  string `json:"code"`
	}
	_ = json.Unmarshal(text, &told)
	return &Refusal{Status: response.StatusCode, Message: textcheck.Printable(told.Error), Code: told.Code,
		RetryAfter: header.RetryAfter(response.Header, time.Now())}
}

// isRefusal reports whether err is a refusal with a status.
func isRefusal(err error, status int) bool {
	refused, ok := errors.AsType[*Refusal](err)
	return ok && refused.Status == status
}

// hostOf returns the part of a URL that a saved session belongs to.
func hostOf(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "", errors.New("--url must be the base URL of a service")
	}
	return strings.ToLower(u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/")), nil
}
