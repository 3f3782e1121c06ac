// Package serving runs the listeners of the service: it opens them, serves their handlers within the configured bounds,
// reports their addresses, and drains them. It gets TLS certificates from files or from an ACME server (RFC 8555).
//
// Invariants:
//
//   - Each listener has a bounded number of connections, and closes those of slow senders and slow readers.
//   - With certificates a listener accepts TLS only, in version 1.2 or later. Bounds and deadlines apply to the
//     decrypted data.
//   - Private keys are in memory and in the files of the operator, and never in the log.
//   - HTTP/1.1 is the only protocol, because connections are bounded by the requests that they carry.
//   - A drained listener has answered each request that it accepted, unless the drain was aborted.
package serving

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentledger/agentledger/internal/http/listener"
	"github.com/agentledger/agentledger/internal/telemetry"
)

// MaxHeader bounds the headers of a request, in bytes. Package http adds 4 KiB to it.
const MaxHeader = 16 << 10

// Times bounds the parts of a request on each connection. Zero means no bound.
type Times struct {
	Header time.Duration // until the headers have arrived
	Body   time.Duration // until the body has arrived
	Answer time.Duration // until the response is sent
	Idle   time.Duration // between two requests
}

// Surface configures a listener. If Address is "", it is not opened.
type Surface struct {
	Name        string // for operators
	Setting     string // of the address, for errors; if "", the listener's name
	Address     string // HOST:PORT, or unix:PATH for a socket with mode 0660
	Handler     http.Handler
	Connections int               // maximum number of connections; if zero, no bound
	Certificate CertificateSource // if nil, plain HTTP
	Protocols   []string          // ALPN protocols in addition to HTTP/1.1
	TLS         *tls.Config       // replaces Certificate, for a listener that authenticates clients
	Header      int               // maximum size of a request's headers, in bytes; if zero, MaxHeader
}

// strangers returns how many of the connections of a listener that authenticates clients may have no completed
// handshake.
func (s Surface) strangers() int {
	switch {
	case s.TLS == nil:
		return 0
	case s.Connections == 0: // no bound
		return maxStrangers
	}
	return min(maxStrangers, s.Connections/4)
}

const maxStrangers = 256

// nextRequestTime is how long a drain waits for the next request of a connection after a response.
const nextRequestTime = 250 * time.Millisecond

// Set contains the open listeners of a service.
type Set struct {
	Failed chan error // receives the errors of listeners that ended unexpectedly

	times      Times
	logger     *slog.Logger
	open       []*opened
	draining   atomic.Bool
	background sync.WaitGroup
}

// opened is one listener with its server.
type opened struct {
	*listener.Listener
	name    string
	secure  bool
	surface Surface
	http    *http.Server // nil before serve
}

// Open opens listeners, and serves them once all are open. If one fails, the caller must call Drain to close the others.
func Open(surfaces []Surface, times Times, logger *slog.Logger) (*Set, error) {
	s := &Set{Failed: make(chan error, len(surfaces)), times: times, logger: logger}
	for _, surface := range surfaces {
		if surface.Address == "" {
			continue
		}
		l, err := listen(surface)
		if err != nil {
			return s, fmt.Errorf("%s: %w", cmp.Or(surface.Setting, surface.Name), err)
		}
		strangers := surface.strangers()
		bounded := listener.NewListener(l, max(0, surface.Connections-strangers))
		bounded.Unused, bounded.Spare = times.Idle, listener.SpareConnections(surface.Connections)
		bounded.Next = nextRequestTime
		bounded.Strangers = strangers
		s.open = append(s.open, &opened{Listener: bounded, name: surface.Name,
			secure: surface.Certificate != nil || surface.TLS != nil, surface: surface})
	}
	for _, o := range s.open {
		s.serve(o)
	}
	return s, nil
}

func listen(s Surface) (net.Listener, error) {
	l, err := listenPlain(s.Address)
	switch {
	case err != nil:
		return nil, err
	case s.TLS != nil:
		return tls.NewListener(l, s.TLS), nil
	case s.Certificate == nil:
		return l, nil
	}
	return tls.NewListener(l, TLSConfig(s.Certificate, s.Protocols...)), nil
}

// serve serves a listener in the background.
func (s *Set) serve(o *opened) {
	o.http = &http.Server{
		Handler: o.surface.Handler, ReadHeaderTimeout: s.times.Header, ReadTimeout: s.times.Body,
		WriteTimeout: s.times.Answer, IdleTimeout: s.times.Idle, ConnState: o.ConnState,
		MaxHeaderBytes: cmp.Or(o.surface.Header, MaxHeader),
		ErrorLog:       slog.NewLogLogger(telemetry.NewConnectionHandler(s.logger.Handler()), slog.LevelDebug),
	}
	s.background.Go(func() {
		if err := o.http.Serve(o.Listener); !errors.Is(err, http.ErrServerClosed) && !s.draining.Load() {
			s.Failed <- fmt.Errorf("serve: %w", err)
		}
	})
}

// Each calls f with the name of each listener and its connections.
func (s *Set) Each(f func(name string, l *listener.Listener)) {
	for _, o := range s.open {
		f(o.name, o.Listener)
	}
}

// Drain ends the connections of all listeners, each after the response to its request. If connections are still open when
// ctx ends, it closes them and returns an error.
func (s *Set) Drain(ctx context.Context) error {
	s.draining.Store(true)
	errs := make([]error, len(s.open))
	var group sync.WaitGroup
	for i, o := range s.open {
		if o.http == nil { // Open failed
			errs[i] = o.Close()
			continue
		}
		group.Go(func() {
			err := o.Listener.Drain(ctx)
			if err = errors.Join(err, o.http.Shutdown(ctx)); err != nil {
				errs[i] = errors.Join(fmt.Errorf("drain: %w", err), o.http.Close())
			}
		})
	}
	group.Wait()
	s.background.Wait()
	return errors.Join(errs...)
}

// URL returns a URL with which programs on this machine reach the listener with a name, or "" if there is none.
func (s *Set) URL(name string) string {
	for _, o := range s.open {
		if o.name == name {
			return o.url()
		}
	}
	return ""
}

func (o *opened) url() string {
	scheme := "http://"
	if o.secure {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(o.Addr().String())
	if err != nil {
		return "unix:" + o.Addr().String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + net.JoinHostPort(strings.TrimSpace(host), port)
}
