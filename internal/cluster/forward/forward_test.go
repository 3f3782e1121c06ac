package forward_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// seen is what a handler sees of a request.
type seen struct {
	Method, Path, RawPath, Query, Host, Body string
	Header                                   http.Header
	Length                                   int64
	Secure, Loopback                         bool
}

func show(_ *node, w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	w.Header().Add("Set-Cookie", "a=1")
	w.Header().Add("Set-Cookie", "b=2")
	w.Header().Set("Etag", `"x"`)
	return edge.WriteJSON(w, http.StatusAccepted, seen{r.Method, r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.Host, string(body),
		r.Header, r.ContentLength, r.TLS != nil, strings.HasPrefix(r.RemoteAddr, "127.0.0.1:")})
}

// A handler of the owner sees the same request, and the client the same response, on whichever node the client calls.
func TestPassedRequestIsTheSame(t *testing.T) {
	s := newService(t, 2, show)
	for name, c := range map[string]struct {
		method, path, body string
		header             http.Header
	}{
		"get":      {"GET", "/red/a?x=1&x=2", "", nil},
		"head":     {"HEAD", "/red/a", "", nil},
		"post":     {"POST", "/red/a", `{"a":1}`, http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}},
		"empty":    {"POST", "/red/a", "", http.Header{"X-Idempotency-Key": {"k", "l"}}},
		"put":      {"PUT", "/red/a", "text", nil},
		"patch":    {"PATCH", "/red/a", "text", nil},
		"delete":   {"DELETE", "/red/a", "", nil},
		"options":  {"OPTIONS", "/red/a", "", nil},
		"escapes":  {"GET", "/red/a%2Fb%3a//c%20d?", "", nil},
		"nothing":  {"GET", "/red/", "", http.Header{"User-Agent": {""}, "Accept-Encoding": {"identity"}}},
		"proxied":  {"GET", "/red/", "", http.Header{"X-Forwarded-For": {"192.0.2.1", "192.0.2.2"}, "Connection": {"X-Forwarded-For"}}},
		"security": {"GET", "/red/", "", http.Header{"Authorization": {"Bearer x"}, "Cookie": {"a=b; c=d"}, "Origin": {"https://a.example"}}},
	} {
		var answers [2]got
		for i, n := range s.nodes {
			r, err := http.NewRequestWithContext(t.Context(), c.method, n.external.URL+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = "log.example"
			if c.header != nil {
				r.Header = c.header.Clone()
			}
			answer, err := n.external.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			answers[i] = got{answer.StatusCode, answer.Header, string(text), nil}
			answers[i].wantNode(t, s.nodes[0])
			answer.Header.Del("Date")
			answer.Header.Del(edge.RequestIDHeader)
		}
		local, passed := sight(t, answers[0]), sight(t, answers[1])
		delete(local.Header, "Connection") // of one connection
		if !reflect.DeepEqual(local, passed) {
			t.Errorf("%s: the request:\ngot  %+v\nwant %+v", name, passed, local)
		}
		answers[0].body, answers[1].body = "", ""
		if c.method != "HEAD" { // its length is that of the text that is not sent
			delete(answers[0].header, "Content-Length")
			delete(answers[1].header, "Content-Length")
		}
		if c.header["Connection"] == nil && !reflect.DeepEqual(answers[0], answers[1]) {
			t.Errorf("%s: the answer:\ngot  %+v\nwant %+v", name, answers[1], answers[0])
		}
	}
	if got := s.nodes[1].asked.Load(); got != 0 {
		t.Errorf("the node without the organization handled %d requests", got)
	}
}

func sight(t *testing.T, g got) (s seen) {
	t.Helper()
	if g.body != "" {
		if err := json.Unmarshal([]byte(g.body), &s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// The owner sees the address of the client rather than of the passing node, and whether the client used TLS.
func TestClientAddressIsKept(t *testing.T) {
	s := newService(t, 2, func(_ *node, w http.ResponseWriter, r *http.Request) error {
		return edge.WriteJSON(w, http.StatusOK, fmt.Sprint(r.RemoteAddr, " ", r.TLS != nil))
	})
	for i, n := range s.nodes {
		for url, secure := range map[string]bool{"http://log.example/red/a": false, "https://log.example/red/a": true} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", url, nil)
			r.RemoteAddr = "203.0.113.7:4711"
			w := httptest.NewRecorder()
			n.external.Config.Handler.ServeHTTP(w, r)
			if got, want := w.Body.String(), fmt.Sprintf("\"203.0.113.7:4711 %t\"", secure); strings.TrimSpace(got) != want {
				t.Errorf("node %d: got %d %s, want %s", i, w.Code, got, want)
			}
		}
	}
}

// Each organization is served by its owner, on every node, including errors.
func TestOwnersAnswer(t *testing.T) {
	s := newService(t, 3, func(n *node, w http.ResponseWriter, r *http.Request) error {
		if r.Method == "POST" {
			return errConflict
		}
		return hello(n, w, r)
	})
	for _, n := range s.nodes {
		for i, path := range []string{"/red/x", "/blue/x"} {
			g := n.ask(t.Context(), "GET", path, nil)
			g.want(t, 200, "GET "+path)
			g.wantNode(t, s.nodes[i])
			g = n.ask(t.Context(), "POST", path, strings.NewReader("x"))
			g.want(t, 409, `{"error":"No"}`)
			g.wantNode(t, s.nodes[i])
		}
	}
	if got := s.nodes[2].asked.Load(); got != 0 {
		t.Errorf("the node without organizations handled %d requests", got)
	}
}

// Large bodies pass in both directions, with and without a length.
func TestLargeBodies(t *testing.T) {
	s := newService(t, 2, func(_ *node, w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = w.Write(body)
		}
		return err
	})
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // 8 MiB
	for name, body := range map[string]io.Reader{"length": bytes.NewReader(want), "chunks": io.MultiReader(bytes.NewReader(want))} {
		if g := s.nodes[1].ask(t.Context(), "POST", "/red/x", body); g.err != nil || g.status != 200 || g.body != string(want) {
			t.Errorf("%s: got %d, %d bytes, %v", name, g.status, len(g.body), g.err)
		}
	}
}

// Each part of a streamed response arrives before the next one is generated.
func TestStreamedAnswer(t *testing.T) {
	next := make(chan struct{})
	s := newService(t, 2, func(_ *node, w http.ResponseWriter, _ *http.Request) error {
		for i := range 3 {
			_, _ = fmt.Fprintln(w, i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
		return nil
	})
	answer, err := s.nodes[1].external.Client().Get(s.nodes[1].external.URL + "/red/x")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for i := range 3 {
		part := make([]byte, 2)
		if _, err := io.ReadFull(answer.Body, part); err != nil || string(part) != fmt.Sprintln(i) {
			t.Errorf("part %d: got %q, %v", i, part, err)
		}
		next <- struct{}{}
	}
}

// A client that disconnects ends the work of the owner.
func TestClientIsGone(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	s := newService(t, 2, func(_ *node, _ http.ResponseWriter, r *http.Request) error {
		_, _ = io.Copy(io.Discard, r.Body)
		close(begun)
		<-r.Context().Done()
		close(ended)
		return r.Context().Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if g := s.nodes[1].ask(ctx, "POST", "/red/x", strings.NewReader("x")); g.err == nil {
		t.Errorf("got %d", g.status)
	}
	<-ended
	eventually(t, "the request is over", func() bool { return s.nodes[1].proxy.InFlight() == 0 })
}

// Two nodes that consider each other the owner reject a request, and neither handles it.
func TestNoLoop(t *testing.T) {
	s := newService(t, 2, hello)
	a, b := s.nodes[0], s.nodes[1]
	a.view.set(map[id.Tenant]cluster.Node{red: b.view.self})
	b.view.set(map[id.Tenant]cluster.Node{red: a.view.self})
	for _, method := range []string{"GET", "POST", "DELETE"} {
		for _, n := range s.nodes {
			g := n.ask(t.Context(), method, "/red/x", strings.NewReader(strings.Repeat("x", len(method)-3)))
			g.want(t, 503, `"code":"overloaded"`)
			if got := g.header.Get("Retry-After"); got != "1" {
				t.Errorf("Retry-After: got %q", got)
			}
			for name := range g.header {
				if strings.HasPrefix(name, "Agentledger-Hop-") {
					t.Errorf("the client got %s", name)
				}
			}
		}
	}
	if got := a.asked.Load() + b.asked.Load(); got != 0 {
		t.Errorf("%d requests were handled", got)
	}
	b.ask(t.Context(), "GET", "/blue/x", nil).want(t, 200, "GET /blue/x")
}

// The receiving node waits for its own view to have the lease that the sender saw.
func TestReceiverLearnsLater(t *testing.T) {
	s := newService(t, 2, readAll)
	a, b := s.nodes[0], s.nodes[1]
	b.proxy.Hurry(5e9, 5e9, 5e9, 5e9)
	a.view.set(map[id.Tenant]cluster.Node{red: b.view.self})
	done := make(chan got)
	go func() { done <- a.ask(t.Context(), "POST", "/red/x", strings.NewReader("abc")) }()
	eventually(t, "the request is at the other node", func() bool { return b.proxy.InFlight() == 1 })
	b.view.set(map[id.Tenant]cluster.Node{red: b.view.self})
	g := <-done
	g.want(t, 200, "3")
	g.wantNode(t, b)
}

// A node that has left the cluster passes requests to the last owners that it knew, and does not wait for others.
func TestNodeThatHasLeft(t *testing.T) {
	s := newService(t, 3, tell)
	a, b, c := s.nodes[0], s.nodes[1], s.nodes[2]
	c.proxy.Hurry(time.Hour, 5e9, 5e9, 5e9)
	c.view.leave()
	c.ask(t.Context(), "POST", "/red/x", strings.NewReader("abc")).want(t, 200, a.view.self.ID.String())
	a.view.set(map[id.Tenant]cluster.Node{red: b.view.self}) // moves without notification
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	for _, method := range []string{"POST", "GET", "DELETE"} {
		c.ask(ctx, method, "/red/x", strings.NewReader("abc")).want(t, 503, `"code":"overloaded"`)
	}
	c.ask(ctx, "GET", "/red/public", nil).want(t, 200, c.view.self.ID.String()+" stands in")
	c.ask(ctx, "GET", "/blue/x", nil).want(t, 200, b.view.self.ID.String())
}
