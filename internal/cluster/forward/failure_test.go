package forward_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/cluster/forward"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// passer is the node that gets the requests in these tests: the last one, which owns nothing.
func (s *service) passer() *node { return s.nodes[len(s.nodes)-1] }

// If the owner is dead, nothing was sent, and the client may retry. The other organization is not affected.
func TestDeadOwner(t *testing.T) {
	s := newService(t, 3, readAll)
	s.nodes[0].kill()
	for _, method := range []string{"GET", "POST", "DELETE"} {
		s.passer().ask(t.Context(), method, "/red/x", strings.NewReader("")).want(t, 503, `"code":"overloaded"`)
	}
	s.passer().ask(t.Context(), "POST", "/red/x", strings.NewReader("abc")).want(t, 503, `"code":"overloaded"`)
	s.passer().ask(t.Context(), "POST", "/blue/x", strings.NewReader("abc")).want(t, 200, "3")
}

// The wait ends although the dead owner is tried again in the meantime, and although the request itself has no
// deadline.
func TestWaitForDeadOwnerEnds(t *testing.T) {
	for name, lose := range map[string]func(*node){
		"killed": (*node).kill, "gives away": func(n *node) { n.view.drain() },
	} {
		s := newService(t, 3, readAll)
		s.passer().proxy.Hurry(2*forward.RetryAfter, 1e9, 1e9, 1e9)
		lose(s.nodes[0])
		done := make(chan error)
		go func() {
			r := httptest.NewRequest("POST", "/red/x", strings.NewReader("abc"))
			_, err := s.passer().proxy.Pass(httptest.NewRecorder(), r, &admission.Elsewhere{Tenant: red})
			done <- err
		}()
		select {
		case err := <-done:
			if !fault.Is(err, fault.Overloaded) {
				t.Errorf("%s: got %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: the request still waits", name)
		}
	}
}

// A request waits for the next owner: another node, or the node itself.
func TestOwnerComes(t *testing.T) {
	for name, next := range map[string]int{"another node": 1, "this node": 2} {
		s := newService(t, 3, readAll)
		s.passer().proxy.Hurry(60e9, 1e9, 1e9, 1e9)
		s.nodes[0].kill()
		for _, method := range []string{"POST", "PUT"} {
			s.move(red, s.nodes[0])
			done := make(chan got)
			go func() { done <- s.passer().ask(t.Context(), method, "/red/x", strings.NewReader("abc")) }()
			eventually(t, name, func() bool { return s.passer().proxy.InFlight() == 1 })
			s.move(red, s.nodes[next])
			g := <-done
			g.want(t, 200, "3")
			g.wantNode(t, s.nodes[next])
		}
		if got := s.nodes[next].asked.Load(); got != 2 {
			t.Errorf("%s: handled %d times, want 2", name, got)
		}
	}
}

// Without any owner, the deadline of the request ends the wait.
func TestNoOwner(t *testing.T) {
	s := newService(t, 2, hello)
	for _, n := range s.nodes {
		n.view.set(map[id.Tenant]cluster.Node{red: {}})
		n.ask(t.Context(), "GET", "/red/x", nil).want(t, 503, `"code":"overloaded"`)
	}
}

// If an owner dies while it handles a request, the outcome is unknown, except for requests without effects, which are
// sent to the next owner.
func TestOwnerDiesWithRequest(t *testing.T) {
	for name, c := range map[string]struct {
		method, body string
		status       int
		want         string
	}{
		"read":   {"GET", "", 200, "GET /red/x"},
		"head":   {"HEAD", "", 200, ""},
		"write":  {"POST", "abc", 503, `"code":"outcome_unknown"`},
		"empty":  {"POST", "", 503, `"code":"outcome_unknown"`},
		"delete": {"DELETE", "", 503, `"code":"outcome_unknown"`},
	} {
		var s *service
		var die sync.Once
		s = newService(t, 3, func(n *node, w http.ResponseWriter, r *http.Request) error {
			_, _ = io.Copy(io.Discard, r.Body) // so that the server sees the end of the connection
			if n == s.nodes[0] {
				die.Do(func() {
					go n.kill()
					s.move(red, s.nodes[1])
				})
				<-r.Context().Done()
				return r.Context().Err()
			}
			return hello(n, w, r)
		})
		s.passer().ask(t.Context(), c.method, "/red/x", strings.NewReader(c.body)).want(t, c.status, c.want)
		if got := s.nodes[1].asked.Load() == 1; got != (c.status == 200) {
			t.Errorf("%s: the next owner handled it: %v", name, got)
		}
	}
}

// An owner that stalls is given up when another node owns the organization.
func TestOwnerStandsStill(t *testing.T) {
	for name, c := range map[string]struct {
		method, body string
		status       int
		want         string
	}{
		"read":  {"GET", "", 200, "GET /red/x"},
		"write": {"POST", "abc", 503, `"code":"outcome_unknown"`},
	} {
		var s *service
		s = newService(t, 3, func(n *node, w http.ResponseWriter, r *http.Request) error {
			_, _ = io.Copy(io.Discard, r.Body) // so that the server sees the end of the connection
			if n == s.nodes[0] {
				s.move(red, s.nodes[1])
				<-r.Context().Done()
				return r.Context().Err()
			}
			return hello(n, w, r)
		})
		s.passer().ask(t.Context(), c.method, "/red/x", strings.NewReader(c.body)).want(t, c.status, c.want)
		if got := s.nodes[1].asked.Load() == 1; got != (c.status == 200) {
			t.Errorf("%s: the next owner handled it: %v", name, got)
		}
	}
}

// Work that was done before the organization moved is reported by the node that did it.
func TestOwnerFinishesAfterMove(t *testing.T) {
	var s *service
	s = newService(t, 3, func(n *node, w http.ResponseWriter, r *http.Request) error {
		s.move(red, s.nodes[1])
		return hello(n, w, r)
	})
	g := s.passer().ask(t.Context(), "POST", "/red/x", strings.NewReader("abc"))
	g.want(t, 200, "POST /red/x")
	g.wantNode(t, s.nodes[0])
}

// The client of a response that is cut off detects it, with and without a length. A short response is asked for again.
func TestOwnerDiesWithAnswer(t *testing.T) {
	first := strings.Repeat("half", 4<<10) // more than package http keeps back
	for _, test := range []struct {
		length, first string
		next          bool
	}{{"", first, false}, {"40000", first, false}, {"100", "half", true}} {
		begun := make(chan struct{}) // the client has a part of the response
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotFirstResponseByte: func() { close(begun) }})
		var s *service
		s = newService(t, 3, func(n *node, w http.ResponseWriter, r *http.Request) error {
			if n != s.nodes[0] {
				return hello(n, w, r)
			}
			if test.length != "" {
				w.Header().Set("Content-Length", test.length)
			}
			_, _ = io.WriteString(w, test.first)
			_ = http.NewResponseController(w).Flush()
			if !test.next {
				select {
				case <-begun:
				case <-r.Context().Done():
				}
			}
			s.move(red, s.nodes[1])
			n.kill()
			<-r.Context().Done()
			return errors.New("killed")
		})
		g := s.passer().ask(ctx, "GET", "/red/x", nil)
		if test.next {
			g.want(t, 200, "GET /red/x")
			g.wantNode(t, s.nodes[1])
		} else if g.err == nil {
			t.Errorf("length %q: got %d %q as if it were whole", test.length, g.status, g.body)
		}
	}
}

// An owner that stalls during its response is given up, even before the first part.
func TestOwnerStandsStillWithAnswer(t *testing.T) {
	for _, first := range []string{"", "half"} {
		held := make(chan struct{})
		s := newService(t, 2, func(_ *node, w http.ResponseWriter, r *http.Request) error {
			_, _ = io.WriteString(w, first)
			_ = http.NewResponseController(w).Flush()
			if strings.HasPrefix(r.URL.Path, "/red") {
				<-held
			}
			return nil
		})
		s.nodes[1].proxy.HurryAnswers(50 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if g := s.nodes[1].ask(ctx, "GET", "/red/x", nil); g.err == nil || ctx.Err() != nil {
			t.Errorf("first part %q: got %d %q, %v", first, g.status, g.body, g.err)
		}
		s.nodes[1].ask(t.Context(), "GET", "/blue/x", nil).want(t, 200, first)
		cancel()
		close(held)
	}
}

// If the client disconnects, the owner does not accept an incomplete body. Of a small body it sees nothing.
func TestBodyIsCutOff(t *testing.T) {
	for length, asked := range map[int]int64{10: 0, 1 << 20: 1} {
		s := newService(t, 2, readAll)
		c, err := net.Dial("tcp", s.nodes[1].external.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(c, "POST /red/x HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", length, strings.Repeat("x", length-1))
		eventually(t, "the request is handled", func() bool {
			return s.nodes[1].proxy.InFlight() == 1 && s.nodes[0].asked.Load() == asked
		})
		_ = c.(*net.TCPConn).CloseWrite()
		answer, err := io.ReadAll(c)
		if err != nil || strings.Contains(string(answer), "200 OK") || !strings.Contains(string(answer), "The body could not be read") {
			t.Errorf("%d bytes: got %q, %v", length, answer, err)
		}
		_ = c.Close()
	}
}

// A client cannot reach the internal listener, and cannot act as a node on the other listeners.
func TestHeadersOfStrangers(t *testing.T) {
	s := newService(t, 2, show)
	forged := http.Header{"Agentledger-Hop-Remote": {"192.0.2.9:1"}, "agentledger-hop-secure": {"1"},
		"Agentledger-Hop-Repeat-Idempotency-Key": {"forged"}, "Agentledger-Hop-New": {"x"}}
	for _, n := range s.nodes {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", n.external.URL+"/red/x", nil)
		r.Header = forged.Clone()
		answer, err := n.external.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		g := sight(t, got{body: string(text)})
		if g.Secure || !g.Loopback || g.Header.Get("Idempotency-Key") != "" || strings.Contains(string(text), "192.0.2.9") ||
			strings.Contains(strings.ToLower(string(text)), "agentledger-hop") {
			t.Errorf("the handler saw %s", text)
		}
		if answer.StatusCode != 202 {
			t.Errorf("got %d", answer.StatusCode)
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", s.nodes[0].internal.URL+"/red/x", nil)
	r.Header = forged
	strange := &http.Transport{TLSClientConfig: insecure()}
	defer strange.CloseIdleConnections()
	if answer, err := strange.RoundTrip(r); err == nil {
		t.Errorf("the internal listener answered a stranger: %d", answer.StatusCode)
		_ = answer.Body.Close()
	}
	if got := s.nodes[0].asked.Load(); got != 2 {
		t.Errorf("handled %d requests, want 2", got)
	}
}

// A request of a node without the headers of a hop is rejected.
func TestInternalListenerTakesHopsAlone(t *testing.T) {
	s := newService(t, 2, hello)
	r, _ := http.NewRequestWithContext(t.Context(), "GET", s.nodes[0].internal.URL+"/red/x", nil)
	answer, err := s.transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden || s.nodes[0].asked.Load() != 0 {
		t.Errorf("got %d", answer.StatusCode)
	}
}

// Each of a thousand concurrent requests gets one response.
func TestManyAtOnce(t *testing.T) {
	s := newService(t, 3, readAll)
	s.passer().proxy.Hurry(60e9, 60e9, 60e9, 60e9)
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			path := []string{"/red/x", "/blue/x"}[i%2]
			s.passer().ask(t.Context(), "POST", path, strings.NewReader("abc")).want(t, 200, "3")
		})
	}
	all.Wait()
	if red, blue := s.nodes[0].asked.Load(), s.nodes[1].asked.Load(); red != 500 || blue != 500 {
		t.Errorf("handled %d and %d requests, want 500 each", red, blue)
	}
}

// Requests of an organization without an owner are limited, so that they leave capacity for the other one.
func TestBound(t *testing.T) {
	s := newService(t, 3, hello, forward.Options{MaxPassed: 10, MaxPassedOrganization: 5})
	p := s.passer()
	p.proxy.Hurry(60e9, 1e9, 1e9, 1e9)
	s.nodes[0].kill()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() { p.ask(ctx, "GET", "/red/x", nil) })
	}
	eventually(t, "five wait", func() bool { return p.proxy.InFlight() == 5 })
	p.ask(t.Context(), "GET", "/red/x", nil).want(t, 503, "Too many requests of this organization")
	p.ask(t.Context(), "GET", "/blue/x", nil).want(t, 200, "GET /blue/x")
	cancel()
	all.Wait()
	eventually(t, "none waits", func() bool { return p.proxy.InFlight() == 0 })
}

// Unauthenticated readers of a public log whose responses take long leave half of the capacity to agents.
func TestBoundOfPublicReads(t *testing.T) {
	held := make(chan struct{})
	s := newService(t, 2, func(n *node, w http.ResponseWriter, r *http.Request) error {
		if r.Method == "GET" && r.URL.Path == "/red/public" {
			<-held
		}
		return hello(n, w, r)
	}, forward.Options{MaxPassed: 40, MaxPassedOrganization: 10})
	p := s.passer()
	p.view.set(map[id.Tenant]cluster.Node{blue: s.nodes[0].view.self})
	s.nodes[0].view.set(map[id.Tenant]cluster.Node{blue: s.nodes[0].view.self})
	p.proxy.HurryReaders(60e9, 60e9)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() { p.ask(t.Context(), "GET", "/red/public", nil).want(t, 200, "GET /red/public") })
	}
	eventually(t, "five wait", func() bool { return p.proxy.InFlight() == 5 })
	p.ask(t.Context(), "GET", "/red/public", nil).want(t, 503, "Too many requests of this organization")
	p.ask(t.Context(), "POST", "/red/x", strings.NewReader("abc")).want(t, 200, "POST /red/x")
	p.ask(t.Context(), "GET", "/blue/public", nil).want(t, 200, "GET /blue/public")
	close(held)
	all.Wait()
	p.ask(t.Context(), "GET", "/red/public", nil).want(t, 200, "GET /red/public")
}

// An owner that responds before it has read a large body is heard at once, even if the sender does not continue.
func TestEarlyAnswer(t *testing.T) {
	s := newService(t, 2, func(_ *node, _ http.ResponseWriter, r *http.Request) error {
		_, _ = r.Body.Read(make([]byte, 1))
		return errConflict
	})
	c, err := net.Dial("tcp", s.nodes[1].external.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(c, "POST /red/x HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n"+strings.Repeat("x", 1000))
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusConflict {
		t.Errorf("got %d", answer.StatusCode)
	}
	eventually(t, "the request is over", func() bool { return s.nodes[1].proxy.InFlight() == 0 })
	s.nodes[1].ask(t.Context(), "POST", "/red/x", strings.NewReader("x")).want(t, 409, `{"error":"No"}`)
}
