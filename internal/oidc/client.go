package oidc

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"time"
)

const (
	maxAnswer  = 1 << 20          // bytes of one answer of a provider
	answerTime = 10 * time.Second // for one answer
)

var errTooLarge = errors.New("answer of the provider: too large")

// newBoundedClient returns a client that follows no redirect, because neither a discovery
// document nor a token comes from another place than the configured one.
func newBoundedClient(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     boundedTransport{transport},
		Timeout:       answerTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// boundedTransport bounds the bodies of answers.
type boundedTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = &boundedBody{ReadCloser: answer.Body, left: maxAnswer}
	}
	return answer, err
}

// boundedBody ends with errTooLarge behind maxAnswer bytes.
type boundedBody struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
