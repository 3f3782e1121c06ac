package forward_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/cluster/forward"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/http/serving"
)

// Times of the listeners of these tests. Polls and streams last several times as long.
const shortTime = 400 * time.Millisecond

// openSlow opens the listeners of a node as the program does, with short times.
func openSlow(t *testing.T, identity *cluster.Identity, v *view) (external string) {
	t.Helper()
	transport := forward.NewTransport(identity.Client())
	t.Cleanup(transport.CloseUnused)
	p := forward.New(forward.Options{View: v, Transport: transport})
	e := &edge.Edge{Passer: p, Bound: edge.NewBound(shortTime)}
	router := e.Router()
	edge.Mount(router, edge.Surface[edge.Handler]{Edge: e, Wait: edge.LongestWait,
		Serve: func(route *edge.Route[edge.Handler]) edge.Handler {
			return func(w http.ResponseWriter, r *http.Request) error {
				if err := e.CheckOwner(r.Context(), red); err != nil {
					return err
				}
				return route.Handler(w, r)
			}
		}}, slowRoutes())
	times := serving.Times{Header: shortTime, Body: shortTime, Answer: shortTime, Idle: time.Minute}
	set, err := serving.Open([]serving.Surface{
		{Name: "main", Address: "127.0.0.1:0", Handler: p.Expose(router), Connections: 10},
		{Name: "node", Address: "127.0.0.1:0", Handler: p.Receive(router), Connections: 10, TLS: identity.Server()},
	}, times, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	})
	v.self.URL = set.URL("node")
	return set.URL("main")
}

// slowRoutes are a poll that waits, and a streamed response.
func slowRoutes() (table edge.Table[edge.Handler]) {
	table.Add("GET", "/poll", edge.Permission{}, edge.Body{}, func(w http.ResponseWriter, r *http.Request) error {
		edge.ExtendDeadlines(w, edge.LongestWait(r))
		time.Sleep(6 * shortTime)
		_, err := io.WriteString(w, "polled")
		return err
	}, edge.LongPoll).Takes("wait")
	table.Add("GET", "/stream", edge.Permission{}, edge.Body{}, func(w http.ResponseWriter, _ *http.Request) error {
		c := http.NewResponseController(w)
		for i := range 6 {
			_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
			if _, err := fmt.Fprint(w, i); err != nil {
				return err
			}
			_ = c.Flush()
			time.Sleep(shortTime)
		}
		return nil
	})
	return table
}

// A long poll and a long download last as long through another node as at the owner.
func TestLongAnswers(t *testing.T) {
	identity, err := cluster.NewIdentity([32]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	owner, other := newView(), newView()
	urls := map[string]string{"owner": openSlow(t, identity, owner), "other": openSlow(t, identity, other)}
	for _, v := range []*view{owner, other} {
		v.set(map[id.Tenant]cluster.Node{red: owner.self})
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var all sync.WaitGroup
	for name, url := range urls {
		for path, want := range map[string]string{"/poll?wait=5": "polled", "/stream": "012345"} {
			all.Go(func() {
				answer, err := client.Get(url + path)
				if err != nil {
					t.Errorf("%s %s: %v", name, path, err)
					return
				}
				text, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if err != nil || answer.StatusCode != 200 || string(text) != want {
					t.Errorf("%s %s: got %d %q, %v, want %q", name, path, answer.StatusCode, text, err, want)
				}
				if got := answer.Header.Get(forward.NodeHeader); got != owner.self.ID.String() {
					t.Errorf("%s %s: answered by %s", name, path, got)
				}
			})
		}
	}
	all.Wait()
}
