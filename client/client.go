// Package client calls an agentledger service over HTTP. It signs events, sends them,
// asks for policy decisions and approvals, and reads the public log. Package client/guard
// runs actions at most once, and package client/runs reports runs of tools that hold no
// key.
//
// Invariants:
//   - An event is sent again only as the same bytes with the same event_id and
//     Idempotency-Key, so that it is stored once however often it is sent.
//   - Only lost connections, time-outs (408 among them) and 502, 503 and 504 are tried
//     again. Any other answer of status 4xx is returned at once as an *Error.
//   - Private keys and tokens never appear in errors, nor where a Client or a
//     Signer is printed.
//   - A Log returns only data that it has checked under the caller's key.
//   - There is no background work: nothing runs after a method has returned.
//
// A Client, a Log, a Tiles and a Signer may be used by several goroutines. Errors of all
// calls are described at Client.Call. The package is stable in the sense of README,
// section Stability.
package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/secret"
)

// Defaults of Config.
const (
	// ServiceVersion is the API version that this package is written for.
	ServiceVersion = "2026-05-18"
	// DefaultTimeout bounds one try of a request.
	DefaultTimeout = 30 * time.Second
)

// Config configures a Client. BaseURL is the only required field.
type Config struct {
	// BaseURL is the address of the service: http or https, a host, optionally a path.
	BaseURL string
	// Token is the ingest key. If empty, only the public calls work. One trailing line end is removed.
	Token string
	// HTTP sends the requests. nil means a new client with its own connection pool. It
	// does not follow redirects, so a token is sent to BaseURL only.
	HTTP *http.Client
	// Timeout bounds one try, answer included; 0 means DefaultTimeout. The context bounds
	// all tries together.
	Timeout time.Duration
	// Retry configures the tries after a failure.
	Retry Retry
	// ServiceVersion is the value of the header of that name; "" means the
	// constant ServiceVersion.
	ServiceVersion string
}

// Client calls one service. It is made by New.
type Client struct {
	base    string // without a slash at the end
	token   string
	version string
	timeout time.Duration
	retry   Retry
	http    *http.Client
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
		retry: c.Retry.withDefaults(), http: c.HTTP}
	if out.version == "" {
		out.version = ServiceVersion
	}
	if out.timeout <= 0 {
		out.timeout = DefaultTimeout
	}
	if out.http == nil {
		out.http = newHTTPClient()
	}
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

// newHTTPClient returns a client that keeps as many connections as callers use.
func newHTTPClient() *http.Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// CloseIdle closes the connections that no request is using.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// Format names the service, for every verb; the token is not shown.
func (c Client) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "client of %s", c.base) }
