package exchange_test

import (
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/cluster/exchange"
)

// countingJournal counts how often each note was put.
type countingJournal struct {
	mu   sync.Mutex
	puts map[string]int
}

func (j *countingJournal) Put(notes ...[]byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, n := range notes {
		j.puts[string(n)]++
	}
	return nil
}

func (j *countingJournal) Notes() iter.Seq2[[]byte, error] { return func(func([]byte, error) bool) {} }

func (j *countingJournal) count(note string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.puts[note]
}

// faultyPeer is a node whose journals count puts, and for which one call for anchors fails.
type faultyPeer struct {
	anchors, news countingJournal
	calls         atomic.Int32 // for anchors
	failAt        atomic.Int32 // the number of the call that fails, 0 for none
	after         bool         // it fails after its notes were stored: the response is lost
	down          atomic.Bool  // every call for anchors fails
}

func (g *group) addFaultyPeer(t *testing.T, after bool) *faultyPeer {
	t.Helper()
	p := &faultyPeer{after: after}
	p.anchors.puts, p.news.puts = map[string]int{}, map[string]int{}
	x := exchange.New(exchange.Options{Members: &node{group: g},
		Journals: map[string]exchange.Journal{"anchors": &p.anchors, "news": &p.news}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "anchors") && (p.calls.Add(1) == p.failAt.Load() || p.down.Load()) {
			if p.after {
				x.ServeHTTP(httptest.NewRecorder(), r)
			}
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		x.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nodes = append(g.nodes, &node{group: g, self: cluster.Node{ID: cluster.NewNodeID(), URL: server.URL}})
	return p
}

// largeNotes need more than two messages.
func largeNotes(name string) (notes []string) {
	for i := range 40 {
		notes = append(notes, fmt.Sprint(name, i, strings.Repeat("x", 60_000)))
	}
	return notes
}

func awaitTrue(t *testing.T, what string, look func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !look(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// A failed call costs only the notes of that call, whether notes wait in a queue or the node gets all. Another node
// gets each note once.
func TestOnlyUnacknowledgedNotesGoAgain(t *testing.T) {
	for _, test := range []struct {
		name       string
		all, after bool
	}{{"a queue", false, false}, {"a queue, the answer is lost", false, true}, {"all", true, false}, {"all, the answer is lost", true, true}} {
		t.Run(test.name, func(t *testing.T) {
			g := &group{t: t}
			large, first := largeNotes("note "), []string{"first"}
			if test.all {
				first = large
			}
			peer, neighbour := g.addFaultyPeer(t, test.after), g.addFaultyPeer(t, false)
			if peer.failAt.Store(2); !test.all {
				peer.failAt.Store(3)
			}
			a := g.join(first...)
			for _, p := range []*faultyPeer{peer, neighbour} {
				awaitTrue(t, "the first notes did not come", func() bool { return p.anchors.count(first[len(first)-1]) > 0 })
			}
			if !test.all {
				a.spread(large...)
			}
			for _, p := range []*faultyPeer{peer, neighbour} {
				awaitTrue(t, "not all notes came", func() bool { return p.anchors.count(large[len(large)-1]) > 0 })
			}
			again := 0
			for _, note := range append(large, first[0]) {
				if peer.anchors.count(note) > 1 {
					again++
				}
				if peer.anchors.count(note) == 0 || neighbour.anchors.count(note) != 1 {
					t.Errorf("%.10s: got %d and %d times", note, peer.anchors.count(note), neighbour.anchors.count(note))
				}
			}
			perMessage := 1 << 20 / 60_000
			if want := map[bool]int{false: 0, true: perMessage}[test.after]; again != want {
				t.Errorf("%d notes came again, want %d", again, want)
			}
			if got := peer.calls.Load(); got > neighbour.calls.Load()+1 {
				t.Errorf("got %d calls, the neighbour %d", got, neighbour.calls.Load())
			}
		})
	}
}

// missedJournal is a journal with one note that replaces dropped ones.
type missedJournal struct{ countingJournal }

func (j *missedJournal) Notes() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) { yield([]byte("missed"), nil) }
}

// A note that replaces dropped ones is sent again when notes are dropped once more.
func TestDroppedNotesAreToldAgain(t *testing.T) {
	g := &group{t: t}
	peer := g.addFaultyPeer(t, false)
	peer.down.Store(true)
	a := g.joinWith(func(o *exchange.Options) { o.Journals["news"] = &missedJournal{} }, "an anchor")
	awaitTrue(t, "no call failed", func() bool { return peer.calls.Load() > 0 })
	var news [][]byte
	for _, note := range append(largeNotes("a"), largeNotes("b")...) { // more than a queue can hold
		news = append(news, []byte(note))
	}
	told := peer.news.count("missed") // before anything is dropped
	a.Spread("news", news)
	peer.down.Store(false)
	awaitTrue(t, "it is not told that news were dropped", func() bool { return peer.news.count("missed") > told })
	awaitTrue(t, "no anchor came", func() bool { return peer.anchors.count("an anchor") == 1 })
	a.Spread("news", [][]byte{[]byte("more")})
	awaitTrue(t, "no further news", func() bool { return peer.news.count("more") == 1 })
}
