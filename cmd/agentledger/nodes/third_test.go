package nodes_test

import (
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/internal/test/nodestest"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// foundings is enough for some organizations to move to the third node almost surely: each does with probability 1/2.
const foundings = 12

// Organizations move to a third node right after their creation, before that node has received any of their anchors.
// They accept events there, as do their neighbors on the node with the anchors.
func TestNewLogsMoveToAThirdNode(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	one, two := servicetest.StartNode(t, server.URL(), nil), servicetest.StartNode(t, server.URL(), nil)
	internal := servicetest.FreeAddress(t)
	calls := nodestest.NewProxy(t, nodestest.ProxyOptions{Dial: func() (net.Conn, error) { return net.Dial("tcp", internal) }})
	third := servicetest.StartNode(t, server.URL(), nil, "--node-listen", internal,
		"--node-url", "https://"+calls.Address())
	for _, n := range []*servicetest.Node{one, two, third} {
		n.AwaitShards(3)
	}
	calls.Set(0, nodestest.Fault{HoldCalls: true})
	var organizations []*servicetest.Organization
	for i := range foundings {
		slug := fmt.Sprint("org-", i)
		o := servicetest.At(t, one.Main, one.Identity).Found("Test", slug, slug+"@test.example")
		sendOne(t, one, o, "first")
		organizations = append(organizations, o)
	}
	if err := one.End(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	moved := 0
	for _, o := range organizations {
		sendOne(t, third, o, "second")
		if third.OwnerOf(headPath(o.Slug)) == third.ID {
			moved++
		}
	}
	if moved == 0 || moved == foundings {
		t.Errorf("%d of %d organizations moved to the third node, want some", moved, foundings)
	}
}

// sendOne sends an event of an organization to a node, which must acknowledge it after some attempts.
func sendOne(t *testing.T, n *servicetest.Node, o *servicetest.Organization, name string) {
	t.Helper()
	c, err := client.New(client.Config{BaseURL: n.Main, Token: o.IngestKey.Secret, Retry: client.Retry{Attempts: 8}})
	if err == nil {
		_, err = c.Send(t.Context(), o.Sign(name, nil))
	}
	if err != nil {
		t.Fatalf("%s at node %s: %v", o.Slug, n.Main, err)
	}
}
