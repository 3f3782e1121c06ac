package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/openapitest"
)

// traffic is the traffic of the real servers under test.
var traffic = openapitest.Of("service")

// watched returns the address of a proxy that checks requests and responses against openapi.json. A connection that
// breaks behind it also breaks in front of it. Benchmarks get the address itself.
func watched(t testing.TB, to string) string {
	t.Helper()
	if _, timed := t.(*testing.B); timed {
		return to
	}
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	proxy := &httputil.ReverseProxy{
		Transport:    &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second}, // before the server ends them
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     quiet,
	}
	front := httptest.NewUnstartedServer(traffic.Watch(t, proxy))
	front.Config.ErrorLog = quiet
	front.Start()
	t.Cleanup(front.Close)
	return front.URL
}
