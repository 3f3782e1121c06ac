package objectstest

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
)

// Proxy forwards requests to an S3 server and injects faults.
type Proxy struct {
	URL      string
	requests atomic.Int64
	fault    atomic.Pointer[Fault]
	next     http.Handler
}

// Fault handles request number n, counted from 1. It may call forward, which lets the server carry out the request.
type Fault func(n int64, w http.ResponseWriter, r *http.Request, forward http.Handler)

// NewProxy starts a proxy in front of the server at an endpoint. It is stopped when the test ends.
func NewProxy(t *testing.T, endpoint string) *Proxy {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{next: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // it is part of the signature
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}}
	server := httptest.NewUnstartedServer(p)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// Inject sets the fault and restarts the count of requests. If f is nil, all requests are forwarded.
func (p *Proxy) Inject(f Fault) {
	p.requests.Store(0)
	if f == nil {
		p.fault.Store(nil)
		return
	}
	p.fault.Store(&f)
}

// Requests returns the number of requests since Inject.
func (p *Proxy) Requests() int64 { return p.requests.Load() }

// ServeHTTP lets the fault or else the server respond.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := p.requests.Add(1)
	if f := p.fault.Load(); f != nil {
		(*f)(n, w, r, p.next)
		return
	}
	p.next.ServeHTTP(w, r)
}

// firstOnly injects a fault into the first request only.
func firstOnly(f http.HandlerFunc) Fault {
	return func(n int64, w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if n == 1 {
			f(w, r)
			return
		}
		forward.ServeHTTP(w, r)
	}
}

// always injects a fault into each request.
func always(f http.HandlerFunc) Fault {
	return func(_ int64, w http.ResponseWriter, r *http.Request, _ http.Handler) { f(w, r) }
}

// cut closes the connection without a response.
func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
