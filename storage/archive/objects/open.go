package objects

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// Options configure New and Open.
type Options struct {
	// Getenv returns an environment variable. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN contain
	// credentials. If nil, no variable is set.
	Getenv func(string) string
	// Roots are the trusted authorities of server certificates. If nil, the system's are used.
	Roots *x509.CertPool
	// Timeout bounds each attempt of a request. If zero, 30 s.
	Timeout time.Duration
	// Tries bounds the attempts of a request. If zero, 4.
	Tries int
	// Now is the clock for signatures. If nil, time.Now.
	Now func() time.Time
}

// Open calls New and Probe.
func Open(ctx context.Context, rawURL string, o Options) (Store, error) {
	s, err := New(rawURL, o)
	if err != nil {
		return nil, err
	}
	if err := Probe(ctx, s); err != nil {
		return nil, err
	}
	return s, nil
}

// New returns the store at a URL. It sends nothing to a server and writes nothing. Errors never contain the URL, because it
// may contain a secret by mistake. The forms are:
//
//	file:///folder
//	s3://bucket/prefix?region=eu-west-1
//	s3://bucket/prefix?endpoint=https://host:port
//
// Parameters are region (default at an endpoint: us-east-1), credentials (the path of a file with mode 0600, instead of the
// environment) and versions=expire, which means that a lifecycle rule of the bucket deletes replaced versions.
func New(rawURL string, o Options) (Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("objects: the store's URL is malformed")
	}
	if u.User != nil || u.Fragment != "" {
		return nil, errors.New("objects: the store's URL must not have a user, a password or a fragment")
	}
	switch u.Scheme {
	case "file":
		return openFolder(u)
	case "s3":
		return openBucket(u, o)
	}
	return nil, fmt.Errorf("objects: the store's URL has the scheme %q, want file or s3", u.Scheme)
}

func openFolder(u *url.URL) (Store, error) {
	if u.Host != "" || u.RawQuery != "" || !filepath.IsAbs(u.Path) || strings.Contains(u.Path, "\x00") {
		return nil, errors.New("objects: the URL of a folder must be file:/// with an absolute path and nothing else")
	}
	return NewFolder(filepath.Clean(u.Path))
}

func openBucket(u *url.URL, o Options) (Store, error) {
	a, err := parseAddress(u)
	if err != nil {
		return nil, err
	}
	s, err := newSender(a, o)
	if err != nil {
		return nil, fmt.Errorf("objects: %w", err)
	}
	return &Bucket{sender: s, expires: a.expires}, nil
}

// tlsConfig requires TLS 1.2 or newer.
func tlsConfig(roots *x509.CertPool) *tls.Config {
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
