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
	// Getenv returns a variable of the environment; nil means that none is set. The variables
	// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN hold credentials.
	Getenv func(string) string
	// Roots are the authorities of server certificates; nil means the system's.
	Roots *x509.CertPool
	// Timeout bounds each try of a request. The default is 30 s.
	Timeout time.Duration
	// Tries bounds how often a request is sent. The default is 4.
	Tries int
	// Now is the clock of signatures. The default is time.Now.
	Now func() time.Time
}

// Open is New and Probe.
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

// New returns the store at a URL. It sends nothing to a server and writes nothing. The URL is never in an error,
// because it may hold a secret by mistake. The forms are:
//
//	file:///folder
//	s3://bucket/prefix?region=eu-west-1
//	s3://bucket/prefix?endpoint=https://host:port
//
// Parameters are region (us-east-1 at an endpoint), credentials (the path of a file with mode 0600, in place of the
// environment) and versions=expire, which says that a rule of the bucket deletes replaced versions.
func New(rawURL string, o Options) (Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("objects: the address of the store is no URL")
	}
	if u.User != nil || u.Fragment != "" {
		return nil, errors.New("objects: the address of the store has a user, a password or a fragment")
	}
	switch u.Scheme {
	case "file":
		return openFolder(u)
	case "s3":
		return openBucket(u, o)
	}
	return nil, fmt.Errorf("objects: the address of the store begins with %q, want file or s3", u.Scheme)
}

func openFolder(u *url.URL) (Store, error) {
	if u.Host != "" || u.RawQuery != "" || !filepath.IsAbs(u.Path) || strings.Contains(u.Path, "\x00") {
		return nil, errors.New("objects: want file:/// with an absolute path and nothing else")
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

// tlsConfig asks for TLS 1.2 or newer.
func tlsConfig(roots *x509.CertPool) *tls.Config {
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
