package serving

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
)

// loggedTransport logs why an ACME server gave no certificate. Package autocert returns such an error to the connection
// that needed the certificate, and nothing at all if it renews one in the background.
type loggedTransport struct {
	logger *slog.Logger
}

// noCertificate is the message of each such line, so that a logger can omit repetitions.
const noCertificate = "no certificate from the ACME server"

const (
	maxDocument = 64 << 10 // bytes of a response that are searched for a problem
	maxDetail   = 500      // bytes of a detail that are logged
)

// problem is a problem document (RFC 7807), and the part of an authorization that reports one.
type problem struct {
	Type       string    `json:"type"`
	Detail     string    `json:"detail"`
	Status     any       `json:"status"` // a number in a problem document, otherwise a word such as "invalid"
	Error      *problem  `json:"error"`
	Challenges []problem `json:"challenges"`
}

// RoundTrip implements http.RoundTripper.
func (t loggedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.logger.Warn(noCertificate, "server", r.URL.Host, "err", err)
		return nil, err
	}
	if !strings.Contains(response.Header.Get("Content-Type"), "json") {
		if response.StatusCode >= http.StatusBadRequest {
			t.logger.Warn(noCertificate, "server", r.URL.Host, "status", response.StatusCode)
		}
		return response, nil
	}
	read, err := io.ReadAll(io.LimitReader(response.Body, maxDocument))
	if err != nil {
		_ = response.Body.Close()
		t.logger.Warn(noCertificate, "server", r.URL.Host, "err", err)
		return nil, err
	}
	response.Body = &resumedBody{io.MultiReader(bytes.NewReader(read), response.Body), response.Body}
	if p := findProblem(response.StatusCode, read); p != nil {
		t.logger.Warn(noCertificate, "server", r.URL.Host, "status", response.StatusCode, "type", cut(p.Type), "detail", cut(p.Detail))
	}
	return response, nil
}

// findProblem returns the problem that a response reports, or nil. An expired nonce is not a problem: the client retries
// with a new one.
func findProblem(status int, document []byte) *problem {
	var p problem
	_ = json.Unmarshal(document, &p) // from another document, only the status is known
	switch {
	case status >= http.StatusBadRequest:
		if strings.HasSuffix(p.Type, ":badNonce") {
			return nil
		}
		return &p
	case p.Status != "invalid":
		return nil
	case p.Error != nil:
		return p.Error
	}
	for _, c := range p.Challenges {
		if c.Error != nil {
			return c.Error
		}
	}
	return &problem{Detail: "the authorization or the order is invalid"}
}

func cut(text string) string { return text[:min(len(text), maxDetail)] }

// resumedBody is a body whose beginning was read ahead.
type resumedBody struct {
	io.Reader
	io.Closer
}
