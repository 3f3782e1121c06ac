package forward_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/log/takeover"
)

// tell responds with the node, and whether it handles the request instead of the owner.
func tell(n *node, w http.ResponseWriter, r *http.Request) error {
	text := n.view.self.ID.String()
	if takeover.StandsIn(r.Context()) {
		text += " stands in"
	}
	_, err := io.WriteString(w, text)
	return err
}

// If its owner is gone, a public read is handled by the node that received it, and by no other node before. Other
// requests wait for an owner. The other organization is not affected.
func TestAbsentOwner(t *testing.T) {
	for name, lose := range map[string]func(*service){
		"killed":     func(s *service) { s.nodes[0].kill() },
		"forgotten":  func(s *service) { s.passer().view.set(map[id.Tenant]cluster.Node{red: {}}) },
		"gives away": func(s *service) { s.nodes[0].view.drain() },
	} {
		s := newService(t, 3, tell)
		p := s.passer()
		p.ask(t.Context(), "GET", "/red/public", nil).want(t, 200, s.nodes[0].view.self.ID.String())
		lose(s)
		want := p.view.self.ID.String() + " stands in"
		for _, method := range []string{"GET", "HEAD"} {
			g := p.ask(t.Context(), method, "/red/public", nil)
			g.wantNode(t, p)
			if method == "HEAD" {
				want = ""
			}
			if g.want(t, 200, want); t.Failed() {
				t.Fatalf("%s: %s", name, method)
			}
		}
		p.ask(t.Context(), "GET", "/red/x", nil).want(t, 503, `"code":"overloaded"`)
		p.ask(t.Context(), "POST", "/red/public", strings.NewReader("abc")).want(t, 503, `"code":"overloaded"`)
		p.ask(t.Context(), "GET", "/blue/public", nil).want(t, 200, s.nodes[1].view.self.ID.String())
	}
}

// A node that may not own organizations yet does not have the anchors of the others, and handles no request for them.
func TestUnpreparedNodeStandsInForNobody(t *testing.T) {
	s := newService(t, 3, tell)
	s.nodes[0].kill()
	p := s.passer()
	p.view.mu.Lock()
	p.view.unprepared = true
	p.view.mu.Unlock()
	p.ask(t.Context(), "GET", "/red/public", nil).want(t, 503, `"code":"overloaded"`)
	p.view.set(map[id.Tenant]cluster.Node{red: {}})
	p.ask(t.Context(), "GET", "/red/public", nil).want(t, 503, `"code":"overloaded"`)
}

// An owner that does not start to respond is given up only by public reads, although it is not forgotten.
func TestSilentOwner(t *testing.T) {
	var s *service
	s = newService(t, 3, func(n *node, w http.ResponseWriter, r *http.Request) error {
		if n == s.nodes[0] && r.URL.Path == "/red/public" {
			<-r.Context().Done()
		}
		return tell(n, w, r)
	})
	p := s.passer()
	p.ask(t.Context(), "GET", "/red/x", nil).want(t, 200, s.nodes[0].view.self.ID.String()) // opens the connection
	p.proxy.HurryReaders(10*time.Second, 200*time.Millisecond)
	for range 2 {
		p.ask(t.Context(), "GET", "/red/public", nil).want(t, 200, p.view.self.ID.String()+" stands in")
	}
	if got := s.nodes[0].asked.Load(); got != 2 {
		t.Errorf("the silent node was asked %d times, want once", got-1)
	}
	p.proxy.HurryReaders(10*time.Second, 10*time.Second)
	p.ask(t.Context(), "GET", "/red/x", nil).want(t, 200, s.nodes[0].view.self.ID.String())
	s.move(red, s.nodes[1])
	p.ask(t.Context(), "GET", "/red/public", nil).want(t, 200, s.nodes[1].view.self.ID.String())
}

// An owner that accepts connections but sends nothing is also silent, and is not tried by the next read.
func TestSilentOwnerOfConnections(t *testing.T) {
	s := newService(t, 2, tell)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	p := s.passer()
	p.proxy.Hurry(10*time.Second, 1e9, 1e9, 1e9)
	p.proxy.HurryReaders(10*time.Second, 50*time.Millisecond)
	p.view.set(map[id.Tenant]cluster.Node{red: {ID: cluster.NewNodeID(), URL: "https://" + silent.Addr().String()}})
	want := p.view.self.ID.String() + " stands in"
	p.ask(t.Context(), "GET", "/red/public", nil).want(t, 200, want)
	_ = silent.Close()
	p.ask(t.Context(), "GET", "/red/public", nil).want(t, 200, want)
	p.ask(t.Context(), "GET", "/blue/public", nil).want(t, 200, p.view.self.ID.String())
}

// The next owner is used if there is one in time.
func TestPublicReadFindsTheNextOwner(t *testing.T) {
	s := newService(t, 3, tell)
	s.nodes[0].kill()
	p := s.passer()
	p.proxy.Hurry(60e9, 1e9, 1e9, 1e9)
	p.proxy.HurryReaders(60e9, 60e9)
	done := make(chan got)
	go func() { done <- p.ask(t.Context(), "GET", "/red/public", nil) }()
	eventually(t, "the request waits", func() bool { return p.proxy.InFlight() == 1 })
	s.move(red, s.nodes[1])
	(<-done).want(t, 200, s.nodes[1].view.self.ID.String())
}
