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

// Proxy passes requests on to a server of S3 and injects faults.
type Proxy struct {
	URL      string
	requests atomic.Int64
	fault    atomic.Pointer[Fault]
	next     http.Handler
}

// Fault handles the request of that number, from 1. It may call forward, which lets the server carry it out.
type Fault func(n int64, w http.ResponseWriter, r *http.Request, forward http.Handler)

// NewProxy starts a proxy in front of the server at an endpoint. It ends with the test.
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

// Inject sets the fault and counts requests from 0 again; nil passes all requests on.
func (p *Proxy) Inject(f Fault) {
	p.requests.Store(0)
	if f == nil {
		p.fault.Store(nil)
		return
	}
	p.fault.Store(&f)
}

// Requests returns how many requests have come since Inject.
func (p *Proxy) Requests() int64 { return p.requests.Load() }

// ServeHTTP lets the fault answer, or the server.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := p.requests.Add(1)
	if f := p.fault.Load(); f != nil {
		(*f)(n, w, r, p.next)
		return
	}
	p.next.ServeHTTP(w, r)
}

// firstOnly injects a fault into the first request alone.
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

// cut ends the connection without an answer.
func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
