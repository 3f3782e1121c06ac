package exchange_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/cluster/exchange"
)

// A newer node with a journal that an older node lacks still sends it all other notes, once and without endless
// retries, and fetches what the older node has.
func TestJournalOfANewerVersion(t *testing.T) {
	g := &group{t: t}
	older := g.join("of the older node")
	newer := &node{group: g, self: cluster.Node{ID: cluster.NewNodeID()}, journal: journal{notes: []string{"known"}}}
	later := &journal{notes: []string{"later"}}
	newer.Exchange = exchange.New(exchange.Options{Members: newer, Client: http.DefaultClient,
		Journals: map[string]exchange.Journal{"anchors": &newer.journal, "later": later},
		Optional: map[string]bool{"later": true}})
	newer.Hurry(500*time.Millisecond, time.Second)
	if err := newer.Fetch(t.Context(), older.self); err != nil {
		t.Errorf("fetch: %v", err)
	}
	newer.await("of the older node")
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { newer.Run(ctx) })
	older.await("known")
	newer.Spread("later", [][]byte{[]byte("new later")})
	newer.Spread("anchors", [][]byte{[]byte("new")})
	older.await("new")
	stop()
	running.Wait()
}

// A call with a protocol that a node does not support is rejected, with a message for the operator of the other node.
// An unknown header is ignored.
func TestOtherProtocols(t *testing.T) {
	n := (&group{t: t}).join()
	for protocol, want := range map[string]int{"": 204, "1": 204, "99": 400, "0": 400, "newest": 400} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", n.self.URL+exchange.Prefix+"journals/anchors",
			bytes.NewReader(frame("note "+protocol)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Agentledger-Node-Later", "x")
		if protocol != "" {
			r.Header.Set("Agentledger-Node-Protocol", protocol)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != want || err != nil || protocol == "99" && !strings.Contains(string(text), "but not 99") {
			t.Errorf("%q: got %d %q, %v, want %d", protocol, answer.StatusCode, text, err, want)
		}
		if answer.Header.Get("Agentledger-Node-Protocol") == "" {
			t.Errorf("%q: the node does not say what it speaks", protocol)
		}
	}
	if got := n.journal.all(); len(got) != 2 {
		t.Errorf("got the notes %q, want two", got)
	}
}
