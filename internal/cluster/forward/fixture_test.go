package forward_test

import (
	"context"
	"crypto/tls"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/cluster/forward"
	"github.com/agentledger/agentledger/internal/http/edge"
)

const (
	red  id.Tenant = 1
	blue id.Tenant = 2
)

// maxHeader is the limit of headers at the listeners that clients can reach, in bytes.
const maxHeader = 16 << 10

// view is a cluster in which the test determines who owns an organization.
type view struct {
	self cluster.Node

	mu     sync.Mutex
	drains bool // the node gives its organizations away
	left   bool // the node has left, and learns nothing more

	unprepared bool // the node does not have the anchors of others yet

	epoch   cluster.Epoch
	owners  map[id.Tenant]cluster.Node
	changed chan struct{}
}

func newView() *view {
	return &view{self: cluster.Node{ID: cluster.NewNodeID()}, owners: map[id.Tenant]cluster.Node{},
		changed: make(chan struct{})}
}

// Owner implements forward.View.
func (v *view) Owner(t id.Tenant) cluster.Owner {
	v.mu.Lock()
	defer v.mu.Unlock()
	owner := v.owners[t]
	return cluster.Owner{Epoch: v.epoch, Node: owner, Mine: owner.ID == v.self.ID && !v.drains,
		Changed: v.changed, Left: v.left, Prepared: !v.unprepared}
}

// Self implements forward.View.
func (v *view) Self() cluster.Node { return v.self }

func (v *view) stay() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drains = false
}

func (v *view) drain() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drains = true
}

func (v *view) leave() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.left = true
}

func (v *view) set(owners map[id.Tenant]cluster.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.Copy(v.owners, owners)
	v.epoch++
	close(v.changed)
	v.changed = make(chan struct{})
}

// node is a node of a service with the organizations Red and Blue, chosen by the first part of the path.
type node struct {
	view     *view
	proxy    *forward.Proxy
	external *httptest.Server
	internal *httptest.Server
	asked    atomic.Int64 // requests that were handled
}

// service is a group of nodes with one handler.
type service struct {
	t         testing.TB
	nodes     []*node
	transport *http.Transport // to internal listeners
	handle    func(n *node, w http.ResponseWriter, r *http.Request) error
}

// newService returns nodes; the first one owns Red and the second Blue.
func newService(t testing.TB, count int, handle func(*node, http.ResponseWriter, *http.Request) error,
	options ...forward.Options) *service {
	t.Helper()
	identity, err := cluster.NewIdentity([32]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, handle: handle, transport: &http.Transport{TLSClientConfig: identity.Client()}}
	t.Cleanup(s.transport.CloseIdleConnections)
	for range count {
		s.nodes = append(s.nodes, s.newNode(identity, options...))
	}
	for _, n := range s.nodes {
		n.view.set(map[id.Tenant]cluster.Node{red: s.nodes[0].view.self, blue: s.nodes[1].view.self})
	}
	return s
}

func (s *service) newNode(identity *cluster.Identity, options ...forward.Options) *node {
	n := &node{view: newView()}
	transport := forward.NewTransport(identity.Client())
	s.t.Cleanup(transport.CloseUnused)
	var o forward.Options
	for _, o = range options {
	}
	o.View, o.Transport = n.view, transport
	n.proxy = forward.New(o)
	n.proxy.Hurry(300*time.Millisecond, 100*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond)
	n.proxy.HurryReaders(20*time.Millisecond, 10*time.Second)
	e := &edge.Edge{Passer: n.proxy, Bound: edge.NewBound(time.Minute)}
	surface := e.Handle(func(w http.ResponseWriter, r *http.Request) error {
		t := red
		if strings.HasPrefix(r.URL.Path, "/blue") {
			t = blue
		}
		check := e.CheckOwner
		if strings.HasSuffix(r.URL.Path, "/public") {
			check = e.CheckReader
		}
		if err := check(r.Context(), t); err != nil {
			return err
		}
		n.asked.Add(1)
		return s.handle(n, w, r)
	})
	n.external = httptest.NewUnstartedServer(n.proxy.Expose(surface))
	n.external.Config.MaxHeaderBytes = maxHeader
	n.external.Start()
	n.internal = httptest.NewUnstartedServer(n.proxy.Receive(surface))
	n.internal.Config.MaxHeaderBytes = forward.HeaderBytes(maxHeader)
	n.internal.TLS = identity.Server()
	n.internal.StartTLS()
	n.view.self.URL = n.internal.URL
	s.t.Cleanup(func() {
		n.external.CloseClientConnections()
		n.internal.CloseClientConnections()
		n.external.Close()
		n.internal.Close()
	})
	return n
}

// kill ends a node as kill -9 does: connections break, and no new one is accepted.
func (n *node) kill() {
	_ = n.internal.Listener.Close()
	n.internal.CloseClientConnections()
}

// move makes a node the owner of an organization in all views.
func (s *service) move(t id.Tenant, to *node) {
	for _, n := range s.nodes {
		n.view.set(map[id.Tenant]cluster.Node{t: to.view.self})
	}
}

// got is a response.
type got struct {
	status int
	header http.Header
	body   string
	err    error
}

// ask sends a request to a node. It never fails the test, so it may run in any goroutine.
func (n *node) ask(ctx context.Context, method, path string, body io.Reader) got {
	r, err := http.NewRequestWithContext(ctx, method, n.external.URL+path, body)
	if err != nil {
		return got{err: err}
	}
	answer, err := n.external.Client().Do(r)
	if err != nil {
		return got{err: err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return got{answer.StatusCode, answer.Header, string(text), err}
}

// want checks a response.
func (g got) want(t testing.TB, status int, body string) {
	t.Helper()
	if g.err != nil || g.status != status || !strings.Contains(g.body, body) {
		t.Errorf("got %d %q, %v, want %d %q", g.status, g.body, g.err, status, body)
	}
}

// wantNode checks which node has responded.
func (g got) wantNode(t testing.TB, n *node) {
	t.Helper()
	if got, want := g.header[forward.NodeHeader], n.view.self.ID.String(); len(got) != 1 || got[0] != want {
		t.Errorf("node: got %q, want %q", got, want)
	}
}

// hello responds with the path.
func hello(_ *node, w http.ResponseWriter, r *http.Request) error {
	_, err := io.WriteString(w, r.Method+" "+r.URL.Path)
	return err
}

// readAll responds with the length of the body.
func readAll(_ *node, w http.ResponseWriter, r *http.Request) error {
	body, err := edge.ReadBody(r, edge.Body{Media: "text/plain", Max: 64 << 20})
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, len(body))
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for range 5000 {
		if holds() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%s: never", what)
}

var errConflict = fault.New(fault.Conflict, "No")

func insecure() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }
