// Package egress makes all outgoing calls of the service to addresses that tenants or operators configure, such as
// witnesses and webhook receivers. It hides the checks of addresses from callers, which only see a response or an error.
//
// Invariants:
//
//   - The address of each connection is checked after the name is resolved and before a
//     byte is sent, so DNS rebinding has no effect. Only
//     public addresses and the networks that the operator allows are reached.
//   - The scheme is https. http is allowed only for the operator's networks.
//   - Redirects are not followed, proxies are not used, and cookies are not stored.
//   - A call ends in time, and at most MaxAnswer bytes of a response's body are read.
//   - Errors contain no URL, because a URL may contain a secret.
package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Errors of a call, in addition to network errors.
var (
	// ErrRefused means that the address is not allowed. Retrying does not help until
	// the address or the settings change.
	ErrRefused = errors.New("the address is not allowed")
	// ErrTooLarge means that the response is larger than MaxAnswer. Status and header are returned.
	ErrTooLarge = errors.New("the response is too large")
)

// maxHeader bounds the header of a response, in bytes.
const maxHeader = 16 << 10

// Options configure New.
type Options struct {
	Allow     []netip.Prefix // private networks that may be called, also with http
	Timeout   time.Duration  // of a whole call; if zero, 10 s
	MaxAnswer int64          // maximum size of a response's body, in bytes; if zero, 64 KiB

	Resolver *net.Resolver  // if nil, the system's
	Roots    *x509.CertPool // trusted authorities; if nil, the system's
}

// Client makes calls. All methods may be called concurrently.
type Client struct {
	guard     guard
	timeout   time.Duration
	maxAnswer int64
	secure    *http.Client // https, to public and allowed addresses
	plain     *http.Client // http, to allowed addresses
}

// New returns a client.
func New(o Options) *Client {
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.MaxAnswer == 0 {
		o.MaxAnswer = 64 << 10
	}
	g := newAddressGuard(o.Allow)
	return &Client{
		guard: g, timeout: o.Timeout, maxAnswer: o.MaxAnswer,
		secure: newHTTPClient(o, g.isReachable), plain: newHTTPClient(o, g.allowsAddress),
	}
}

// newHTTPClient returns a client that connects only to addresses for which may returns true.
func newHTTPClient(o Options, may func(netip.Addr) bool) *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second, Resolver: o.Resolver, ControlContext: checkConnection(may)}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:     dialer.DialContext,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots},
			// A short body could decompress to a long one, and responses are short.
			DisableCompression:     true,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    5 * time.Second,
			IdleConnTimeout:        time.Minute,
			MaxIdleConns:           256,
			MaxIdleConnsPerHost:    4,
			MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Answer is the response to a call.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// CheckURL returns ErrRefused unless the address is an absolute https URL (or http in the
// allowed networks) with a host and without user and fragment. The addresses
// of a name are checked only by a call.
func (c *Client) CheckURL(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("check address: not a URL: %w", ErrRefused)
	}
	return c.checkParsedURL(u)
}

func (c *Client) checkParsedURL(u *url.URL) error {
	if u.Host == "" || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return fmt.Errorf("check address: parts of the URL: %w", ErrRefused)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || len(c.guard.allow) == 0) {
		return fmt.Errorf("check address: scheme: %w", ErrRefused)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return nil // a name
	}
	if u.Scheme == "http" && !c.guard.allowsAddress(ip) || !c.guard.isReachable(ip) {
		return fmt.Errorf("check address: not a public address: %w", ErrRefused)
	}
	return nil
}

// Post sends body and returns the response, whatever its status is.
func (c *Client) Post(ctx context.Context, address string, header http.Header, body []byte) (Answer, error) {
	return c.sendRequest(ctx, http.MethodPost, address, header, body)
}

// Get is Post without a body.
func (c *Client) Get(ctx context.Context, address string, header http.Header) (Answer, error) {
	return c.sendRequest(ctx, http.MethodGet, address, header, nil)
}

func (c *Client) sendRequest(
	ctx context.Context, method, address string, header http.Header, body []byte,
) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return Answer{}, fmt.Errorf("call out: not a URL: %w", ErrRefused)
	}
	if err := c.checkParsedURL(r.URL); err != nil {
		return Answer{}, fmt.Errorf("call out: %w", err)
	}
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("User-Agent", "agentledger")
	answer, err := c.httpClientFor(r.URL).Do(r)
	if err != nil {
		return Answer{}, fmt.Errorf("call out: %w", withoutURL(err))
	}
	defer answer.Body.Close()
	return c.readAnswer(answer)
}

func (c *Client) httpClientFor(u *url.URL) *http.Client {
	if u.Scheme == "http" {
		return c.plain
	}
	return c.secure
}

func (c *Client) readAnswer(answer *http.Response) (Answer, error) {
	if answer.ContentLength > c.maxAnswer {
		return Answer{Status: answer.StatusCode, Header: answer.Header}, fmt.Errorf("call out: %w", ErrTooLarge)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, c.maxAnswer+1))
	if err != nil {
		return Answer{}, fmt.Errorf("call out: read response: %w", err)
	}
	if int64(len(body)) > c.maxAnswer {
		return Answer{Status: answer.StatusCode, Header: answer.Header}, fmt.Errorf("call out: %w", ErrTooLarge)
	}
	return Answer{Status: answer.StatusCode, Header: answer.Header, Body: body}, nil
}

// withoutURL removes the layer of an error that contains the URL.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
