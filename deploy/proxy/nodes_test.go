package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
	"github.com/agentledger/agentledger/tlog"
)

// The balancer in front of three nodes sends requests to the healthy ones. While one node is stopped and another one
// is killed, a client that retries gets every event acknowledged, and all of them are in the logs.
func TestNodesBehindHAProxy(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	var nodes []*servicetest.Node
	for range 3 {
		nodes = append(nodes, servicetest.StartNode(t, server.URL(), nil, "--client-address-header", "X-Forwarded-For"))
	}
	nodes[0].AwaitShards(len(nodes))
	s := servicetest.At(t, nodes[0].Main, nodes[0].Identity)
	organizations := []*servicetest.Organization{s.Found("Red", "red", "ann@red.example"), s.Found("Blue", "blue", "bob@blue.example")}
	p := proxies()["haproxy"]
	p.file = "haproxy-nodes.cfg"
	addresses := map[string]string{}
	for i, name := range []string{"one", "two", "three"} {
		addresses[name+":8080"] = strings.TrimPrefix(nodes[i].Main, "http://")
	}
	b := startProxy(t, p, addresses)
	b.service = s
	answered := map[string]bool{}
	for range 30 {
		r, _ := b.do(b.client, http.MethodGet, "/readyz", "")
		answered[r.Header.Get("X-Agentledger-Node")] = r.StatusCode == http.StatusOK
	}
	if len(answered) != len(nodes) || answered[""] {
		t.Errorf("answers are of the nodes %v", answered)
	}
	working, stop := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	counts := make([]int, len(organizations))
	for i, o := range organizations {
		senders.Go(func() { counts[i] = b.sendUntil(working, o) })
	}
	time.Sleep(time.Second)
	if err := nodes[0].End(syscall.SIGTERM); err != nil {
		t.Errorf("a node that is stopped: %v", err)
	}
	time.Sleep(time.Second)
	_ = nodes[1].End(syscall.SIGKILL)
	time.Sleep(5 * time.Second)
	stop()
	senders.Wait()
	for i, o := range organizations {
		b.wantEvents(o, counts[i])
	}
}

// clientOf returns a client that reaches the proxy and retries failed requests.
func (b *before) clientOf(o *servicetest.Organization) *client.Client {
	c, err := client.New(client.Config{BaseURL: "https://" + host, Token: o.IngestKey.Secret, HTTP: b.client,
		Retry: client.Retry{Attempts: 20}})
	if err != nil {
		b.Error(err)
	}
	return c
}

// sendUntil sends an event every 20 ms until working ends, and returns the number of acknowledged events. At this
// pace, both organizations stay within the rate limit of one address, however fast the machine is.
func (b *before) sendUntil(working context.Context, o *servicetest.Organization) (n int) {
	c := b.clientOf(o)
	for ; working.Err() == nil; n++ {
		time.Sleep(20 * time.Millisecond)
		if _, err := c.Send(b.Context(), o.Sign(fmt.Sprint("event-", n), nil)); err != nil {
			b.Errorf("%s: event %d: %v", o.Slug, n, err)
			return n
		}
	}
	return n
}

// wantEvents checks that each acknowledged event has a proof.
func (b *before) wantEvents(o *servicetest.Organization, n int) {
	key, err := tlog.ParseVerifierKey(o.LogKey)
	if err != nil || n < 10 {
		b.Fatalf("%s: %d events, key: %v", o.Slug, n, err)
	}
	l := b.clientOf(o).Log(id.Slug(o.Slug), key)
	for i := range n {
		if i%10 > 0 && i < n-10 {
			continue // the drill of nodes checks all of them; this is a sample
		}
		if _, report, err := l.Bundle(b.Context(), id.Event(fmt.Sprint("event-", i))); err != nil || !report.OK {
			b.Errorf("%s: event %d: got %v, %v", o.Slug, i, report.Errors, err)
		}
	}
}
