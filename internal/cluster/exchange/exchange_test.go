package exchange_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/cluster/exchange"
)

// journal stores notes in order, each once.
type journal struct {
	mu    sync.Mutex
	notes []string
	fails error
}

func (j *journal) Put(notes ...[]byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fails != nil {
		return j.fails
	}
	for _, n := range notes {
		if !slices.Contains(j.notes, string(n)) {
			j.notes = append(j.notes, string(n))
		}
	}
	return nil
}

func (j *journal) Notes() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, n := range j.all() {
			if !yield([]byte(n), nil) {
				return
			}
		}
		j.mu.Lock()
		err := j.fails
		j.mu.Unlock()
		if err != nil {
			yield(nil, err)
		}
	}
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.notes)
}

func (j *journal) setFailure(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fails = err
}

// node is one node of a group. down makes its listener respond to nothing.
type node struct {
	*exchange.Exchange
	group   *group
	self    cluster.Node
	journal journal
	down    atomic.Bool
	stands  atomic.Pointer[chan struct{}] // requests wait for its end; nil for none
	looks   atomic.Int32
	heard   atomic.Pointer[cluster.News]
}

type group struct {
	t     *testing.T
	mu    sync.Mutex
	nodes []*node
}

func (n *node) Self() cluster.Node { return n.self }
func (n *node) Hear(news cluster.News) {
	n.heard.Store(&news)
	n.looks.Add(1)
}
func (n *node) Nodes() (all []cluster.Node) {
	n.group.mu.Lock()
	defer n.group.mu.Unlock()
	for _, m := range n.group.nodes {
		all = append(all, m.self)
	}
	return all
}

// join starts a node whose journal contains notes.
func (g *group) join(notes ...string) *node { return g.joinWith(func(*exchange.Options) {}, notes...) }

// joinWith is join with other options.
func (g *group) joinWith(change func(*exchange.Options), notes ...string) *node {
	n := &node{group: g, self: cluster.Node{ID: cluster.NewNodeID()}, journal: journal{notes: notes}}
	o := exchange.Options{Members: n, Client: http.DefaultClient,
		Journals: map[string]exchange.Journal{"anchors": &n.journal}}
	change(&o)
	n.Exchange = exchange.New(o)
	n.Hurry(500*time.Millisecond, time.Second)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stands := n.stands.Load(); stands != nil {
			<-*stands
		}
		if n.down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		n.ServeHTTP(w, r)
	}))
	n.self.URL = server.URL
	ctx, stop := context.WithCancel(g.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Run(ctx)
	}()
	g.t.Cleanup(func() {
		stop()
		<-done
		server.Close()
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nodes = append(g.nodes, n)
	return n
}

// await waits until a journal contains all notes.
func (n *node) await(want ...string) {
	n.group.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		got := n.journal.all()
		if !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(got, w) }) {
			return
		}
		if time.Now().After(deadline) {
			n.group.t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// spread stores notes at a node and sends them to the others, as anchors do.
func (n *node) spread(notes ...string) {
	n.group.t.Helper()
	var all [][]byte
	for _, s := range notes {
		all = append(all, []byte(s))
	}
	if err := n.journal.Put(all...); err != nil {
		n.group.t.Fatal(err)
	}
	n.Spread("anchors", all)
}

func TestNotesReachEveryNode(t *testing.T) {
	g := &group{t: t}
	a, b, c := g.join("of a"), g.join(), g.join()
	b.await("of a")
	c.await("of a")
	a.spread("1", "2")
	b.spread("3")
	for _, n := range []*node{a, b, c} {
		n.await("1", "2", "3")
	}
	c.down.Store(true)
	for i := range 50 {
		a.spread(fmt.Sprint("while down ", i))
	}
	b.await("while down 49")
	d := g.join()
	d.await("of a", "1", "2", "3", "while down 0", "while down 49")
	c.down.Store(false)
	c.await("while down 0", "while down 49")
	if err := a.journal.Put([]byte("not spread")); err != nil {
		t.Fatal(err)
	}
	a.SpreadAll()
	for _, n := range []*node{b, c, d} {
		n.await("not spread")
	}
	c.journal.setFailure(errors.New("the disk is full"))
	a.spread("4")
	b.await("4")
	c.journal.setFailure(nil)
	c.await("4")
}

// A node that does not respond costs a bounded queue, and gets all notes once it responds.
func TestFullQueue(t *testing.T) {
	g := &group{t: t}
	a, b := g.join(), g.join()
	a.spread("first")
	b.await("first")
	b.down.Store(true)
	want := []string{}
	for i := range 120 {
		note := fmt.Sprint(i, strings.Repeat("x", 60_000))
		want = append(want, note)
		a.spread(note)
	}
	b.down.Store(false)
	b.await(want...)
}

func TestFetch(t *testing.T) {
	g := &group{t: t}
	a := g.join("1", "2", strings.Repeat("long", 10_000))
	b := &node{group: g, self: cluster.Node{ID: cluster.NewNodeID()}}
	b.Exchange = exchange.New(exchange.Options{Members: b, Client: http.DefaultClient,
		Journals: map[string]exchange.Journal{"anchors": &b.journal}})
	if err := b.Fetch(t.Context(), a.self); err != nil || len(b.journal.all()) != 3 {
		t.Errorf("got %d notes, %v", len(b.journal.all()), err)
	}
	a.journal.setFailure(errors.New("damaged"))
	if err := b.Fetch(t.Context(), a.self); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an answer without its end: got %v", err)
	}
	a.down.Store(true)
	if err := b.Fetch(t.Context(), a.self); err == nil {
		t.Error("a node that answers nothing")
	}
}

// A node that accepts connections but does not respond holds no call permanently, and delays no other node.
func TestNodeStandsStill(t *testing.T) {
	g := &group{t: t}
	a, b, c := g.join(), g.join(), g.join()
	a.spread("first")
	b.await("first")
	c.await("first")
	goesOn := make(chan struct{})
	b.stands.Store(&goesOn)
	a.spread("while it stands")
	c.await("while it stands")
	d := &node{group: g, self: cluster.Node{ID: cluster.NewNodeID()}}
	d.Exchange = exchange.New(exchange.Options{Members: d, Client: http.DefaultClient,
		Journals: map[string]exchange.Journal{"anchors": &d.journal}})
	d.Hurry(20*time.Millisecond, 20*time.Millisecond)
	if err := d.Fetch(t.Context(), b.self); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("fetch: got %v, want the end of its time", err)
	}
	b.stands.Store(nil)
	b.await("while it stands") // by another call: the one before is given up
	close(goesOn)
}

// A node that stalls during its response, or before it, is given up soon, so that another one is tried.
func TestFetchFromANodeThatStandsStill(t *testing.T) {
	g := &group{t: t}
	a := g.join("1")
	goesOn := make(chan struct{})
	for _, begins := range []bool{false, true} {
		still := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if begins {
				_ = http.NewResponseController(w).Flush()
			}
			<-goesOn
		}))
		defer still.Close()
		b := &node{group: g, self: cluster.Node{ID: cluster.NewNodeID()}}
		b.Exchange = exchange.New(exchange.Options{Members: b, Client: http.DefaultClient,
			Journals: map[string]exchange.Journal{"anchors": &b.journal}})
		b.Hurry(20*time.Millisecond, time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := b.Fetch(ctx, cluster.Node{URL: still.URL}); err == nil || ctx.Err() != nil {
			t.Errorf("begins %v: got %v, %v", begins, err, ctx.Err())
		}
		b.Hurry(10*time.Second, time.Hour)
		if err := b.Fetch(ctx, a.self); err != nil || len(b.journal.all()) != 1 {
			t.Errorf("another node: got %d notes, %v", len(b.journal.all()), err)
		}
		cancel()
	}
	close(goesOn)
}

func TestTell(t *testing.T) {
	g := &group{t: t}
	a, b := g.join(), g.join()
	most := cluster.News{From: a.self.ID, Leaving: true, Since: 6, Epoch: 7}
	for shard := range cluster.Shard(cluster.Shards) {
		most.Leases = append(most.Leases, cluster.Lease{Shard: shard, Epoch: 7, Owner: b.self.ID})
	}
	some := cluster.News{From: a.self.ID, Since: 1 << 40, Epoch: 1<<40 + 2, Leases: []cluster.Lease{{Shard: 1023, Epoch: 1<<40 + 1}}}
	for i, want := range []cluster.News{{}, most, some} {
		a.Tell([]cluster.Node{b.self, {URL: "http://127.0.0.1:1"}}, want)
		awaitTrue(t, "the node hears nothing", func() bool { return int(b.looks.Load()) == i+1 })
		if got := *b.heard.Load(); !reflect.DeepEqual(got, want) {
			t.Errorf("news %d: got %d leases of %d to %d", i, len(got.Leases), got.Since, got.Epoch)
		}
	}
	header := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(append(bytes.Clone(a.self.ID[:]), 0), 6), 7)
	lease := binary.BigEndian.AppendUint64([]byte{0, 1}, 8) // of an epoch that is not new
	for i, body := range [][]byte{header[:32], append(header[:33:33], 1), append(append(header[:33:33], lease...), b.self.ID[:]...),
		make([]byte, 1<<16)} {
		answer, err := http.Post(b.self.URL+exchange.Prefix+"look", "", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := *b.heard.Load(); answer.StatusCode != http.StatusNoContent || len(got.Leases) > 0 || got.Epoch != 0 {
			t.Errorf("malformed news %d: got %d, %+v, want that there are some", i, answer.StatusCode, got)
		}
	}
}

func frame(note string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(note))), note...)
}

func TestHandlerRefuses(t *testing.T) {
	n := (&group{t: t}).join()
	full := bytes.Repeat(frame(strings.Repeat("x", 60_000)), 20)
	tests := []struct {
		name, method, path string
		body               []byte
		want               int
	}{
		{"a note", "POST", "journals/anchors", frame("a"), 204},
		{"no note", "POST", "journals/anchors", nil, 204},
		{"another journal", "POST", "journals/others", frame("a"), 404},
		{"another journal's notes", "GET", "journals/others", nil, 404},
		{"a path that leaves the journals", "GET", "journals/..%2flook", nil, 404},
		{"another call", "POST", "leave", nil, 404},
		{"another method of a call", "GET", "look", nil, 404},
		{"another method", "DELETE", "journals/anchors", nil, 405},
		{"an empty note", "POST", "journals/anchors", frame(""), 400},
		{"a length that is too large", "POST", "journals/anchors", []byte{0xff, 0xff, 0xff, 0xff}, 400},
		{"half a length", "POST", "journals/anchors", []byte{0, 0}, 400},
		{"half a note", "POST", "journals/anchors", frame("abcdef")[:7], 400},
		{"more than a message", "POST", "journals/anchors", full, 400},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, err := http.NewRequest(test.method, n.self.URL+exchange.Prefix+test.path, bytes.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.StatusCode != test.want {
				t.Errorf("got %d, want %d", answer.StatusCode, test.want)
			}
		})
	}
	if got, want := n.journal.all(), []string{"a"}; !slices.Equal(got, want) {
		t.Errorf("the journal has %d notes, want %q", len(got), want)
	}
}

func FuzzNotes(f *testing.F) {
	f.Add(frame("a"))
	f.Add(append(frame("a"), frame("bc")...))
	f.Add([]byte{0, 0, 0, 2, 'a'})
	f.Fuzz(func(t *testing.T, body []byte) {
		var j journal
		var again []byte
		x := exchange.New(exchange.Options{Journals: map[string]exchange.Journal{"j": &j}})
		w := httptest.NewRecorder()
		x.ServeHTTP(w, httptest.NewRequest("POST", exchange.Prefix+"journals/j", bytes.NewReader(body)))
		for _, n := range j.all() {
			again = append(again, frame(n)...)
		}
		if w.Code == 204 && len(again) > len(body) || w.Code != 204 && len(again) > 0 {
			t.Errorf("status %d, %d bytes of notes from %d", w.Code, len(again), len(body))
		}
	})
}

func TestDeliver(t *testing.T) {
	g := &group{t: t}
	one := g.join()
	if err := one.Deliver(t.Context(), "anchors", []byte("alone")); err != nil {
		t.Errorf("alone: %v", err)
	}
	two, three := g.join(), g.join()
	two.down.Store(true)
	if err := one.Deliver(t.Context(), "anchors", []byte("red"), []byte("blue")); err != nil {
		t.Error(err)
	}
	if got, want := three.journal.all(), []string{"red", "blue"}; !slices.Equal(got, want) {
		t.Errorf("the node that lives: got %v, want %v", got, want)
	}
	three.journal.setFailure(errors.New("the disk is full"))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := one.Deliver(ctx, "anchors", []byte("late")); err == nil {
		t.Error("delivered to nobody")
	}
	time.AfterFunc(100*time.Millisecond, func() { // the nodes that can't take it are forgotten
		g.mu.Lock()
		defer g.mu.Unlock()
		g.nodes = []*node{one}
	})
	if err := one.Deliver(t.Context(), "anchors", []byte("late")); err != nil {
		t.Errorf("alone again: %v", err)
	}
}
