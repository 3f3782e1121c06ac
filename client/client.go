// Package client calls an agentledger service over HTTP. It signs events, sends them, asks for
// policy decisions and approvals, and reads the public log. Package client/guard runs actions at
// most once, and package client/runs reports runs of tools without a key.
//
// Invariants:
//   - An event is only ever sent again as the same bytes with the same event_id and
//     Idempotency-Key, so it is stored once however often it is sent.
//   - Only lost connections, timeouts (including 408) and 502, 503 and 504 are retried, and 429 to
//     an event unless it is plan_limit. Any other 4xx answer is returned at once as an *Error.
//   - Events of concurrent Sends that wait for a request share the next one (gather.go).
//   - Private keys and tokens never appear in errors, nor in the output of printing a Client or a
//     Signer.
//   - A Log returns only data that it has checked under the caller's key.
//   - There is no background work: nothing is sent for a call that has returned.
//
// A Client, a Log, a Tiles and a Signer are safe for concurrent use. Client.Call documents the
// errors of all calls. The package is stable in the sense of README, section Stability.
package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/secret"
)

// Defaults of Config.
const (
	// ServiceVersion is the API version that this package implements.
	ServiceVersion = "2026-05-18"
	// DefaultTimeout is the default of Config.Timeout.
	DefaultTimeout = 30 * time.Second
)

// Config configures a Client. BaseURL is the only required field.
type Config struct {
	// BaseURL is the address of the service: http or https, a host, and optionally a path.
	BaseURL string
	// Token is the ingest key. If empty, only the public calls work. A single trailing line end is
	// removed.
	Token string
	// HTTP sends the requests. If nil, the client creates one with its own connection pool that
	// does not follow redirects, so a token is only sent to BaseURL.
	HTTP *http.Client
	// Timeout limits one try, including the answer. If zero, DefaultTimeout applies. The context
	// limits all tries together.
	Timeout time.Duration
	// Retry configures retries after a failure.
	Retry Retry
	// ServiceVersion is the value of the header of that name. If "", it is the constant
	// ServiceVersion.
	ServiceVersion string
	// SubjectToken returns the token by which the service verifies on_behalf_of of the events that a call sends: a JWT of at most
	// 8 KiB whose issuer is that of the ingest key. It gets the context of the call, and is called before each attempt to send. If it
	// returns "", no token is sent; if it returns an error, nothing is sent. In a batch, the token verifies the events of its
	// subject. If it is set, Send makes a request for each event. It may be nil.
	SubjectToken func(ctx context.Context) (string, error)
}

// Client calls one service. Create it with New.
type Client struct {
	base    string // without a trailing slash
	token   string
	version string
	timeout time.Duration
	retry   Retry
	http    *http.Client
	subject func(ctx context.Context) (string, error) // may be nil

	gatherer *gatherer // of the events of Send
}

// New checks a configuration and returns a client. It does no I/O.
func New(c Config) (*Client, error) {
	base, err := parseBaseURL(c.BaseURL)
	if err != nil {
		return nil, err
	}
	c.Token = secret.TrimLineEnd(c.Token)
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("token: must be visible ASCII without spaces and line ends")
	}
	out := &Client{base: base, token: c.Token, version: c.ServiceVersion, timeout: c.Timeout,
		retry: c.Retry.withDefaults(), http: c.HTTP, subject: c.SubjectToken}
	if out.version == "" {
		out.version = ServiceVersion
	}
	if out.timeout <= 0 {
		out.timeout = DefaultTimeout
	}
	if out.http == nil {
		out.http = newHTTPClient()
	}
	out.gatherer = &gatherer{try: out.sendGathered, traces: make(map[id.Trace]bool)}
	return out, nil
}

func parseBaseURL(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", errors.New("base URL: must be http or https with a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("base URL: must not have user, query or fragment")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// newHTTPClient returns a client that keeps as many idle connections as callers use.
func newHTTPClient() *http.Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// CloseIdle closes the idle connections.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// Format writes the address of the service for every verb, never the token.
func (c Client) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "client of %s", c.base) }
