package oidc

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"time"
)

const (
	maxResponse  = 1 << 20 // bytes
	responseTime = 10 * time.Second
)

var errTooLarge = errors.New("response of the provider is too large")

// newBoundedClient returns a client that does not follow redirects, so that discovery documents and tokens come only
// from the configured server.
func newBoundedClient(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     boundedTransport{transport},
		Timeout:       responseTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// boundedTransport limits the size of response bodies.
type boundedTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = &boundedBody{ReadCloser: response.Body, remaining: maxResponse}
	}
	return response, err
}

// boundedBody returns errTooLarge after remaining bytes.
type boundedBody struct {
	io.ReadCloser
	remaining int
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.remaining)])
	b.remaining -= n
	return n, err
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
