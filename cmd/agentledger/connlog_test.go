package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/http/listener"
)

// A panic that nothing recovers from but http.Server is logged as an error; what
// clients do wrong is not.
func TestPanicOfTheServerIsLogged(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out := new(lockedBuffer)
	bounded := listener.NewListener(l, 0)
	s := &server{failed: make(chan error, 1), listeners: []*listener.Listener{bounded}}
	s.serveListener(bounded, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oops-3") }),
		slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelInfo})))
	for _, request := range []string{"NONSENSE\r\n\r\n", livez} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, request)
		io.ReadAll(c) // to its end
		c.Close()
	}
	s.stopping.Store(true)
	if err := s.drainListeners(context.Background())[0]; err != nil {
		t.Error(err)
	}
	s.background.Wait()
	if got := out.String(); strings.Count(got, "level=") != 1 || !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "oops-3") {
		t.Errorf("logged: %s", got)
	}
}

// Every handler of every listener is behind the edge that turns a panic into an answer
// of 500: it shows by the request id.
func TestAllAnswersAreOfTheEdge(t *testing.T) {
	s := startHere(t, func(c *config.Serve) {})
	for _, url := range []string{
		s.mainURL() + "/livez", s.mainURL() + "/readyz", s.mainURL() + "/openapi.json", s.mainURL() + "/none",
		s.mainURL() + "/v1/public/orgs/none/transparency/head", s.mainURL() + "/v1/ingest/events", s.mainURL() + "/v1/console/agents",
		s.identityURL() + "/livez", s.identityURL() + "/readyz", s.identityURL() + "/v1/id/auth/me", s.identityURL() + "/none",
		listenerURL(s.listeners[2]) + "/metrics", listenerURL(s.listeners[2]) + "/debug/pprof/", listenerURL(s.listeners[2]) + "/debug/pprof/heap",
	} {
		r, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if len(r.Header.Get(edge.RequestIDHeader)) != 24 {
			t.Errorf("%s: %s without a request id", url, r.Status)
		}
	}
}
