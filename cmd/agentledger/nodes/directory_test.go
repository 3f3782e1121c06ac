package nodes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
	"github.com/agentledger/agentledger/verify"
)

// Two real nodes maintain one directory and show the same list of logs. Each event is listed and has a second proof,
// whichever node owns it and whichever node is asked, before and after the directory moves to the other node.
func TestDirectoryOfNodes(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	settings := filepath.Join(t.TempDir(), "agentledger.json")
	if err := os.WriteFile(settings, []byte(`{"tuning":{"directory_interval":"100ms"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	flags, more := []string{"--config", settings}, []string{"--directory", "all-logs", "--log-list-contact", "ops@log.example"}
	one := servicetest.StartNode(t, server.URL(), flags)
	at := func(n *servicetest.Node) *servicetest.Service { return servicetest.At(t, n.Main, n.Identity) }
	list := at(one).Found("Directory", "all-logs", "ops@log.example")
	red := at(one).Found("Red", "red", "ann@red.example")
	if err := one.End(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	one.Start(more...)
	two := servicetest.StartNode(t, server.URL(), flags, more...)
	two.AwaitShards(2)
	blue := at(two).Found("Blue", "blue", "bob@blue.example")
	c := &directoryCheck{T: t, nodes: []*servicetest.Node{one, two}, organizations: []*servicetest.Organization{red, blue}}
	if two.OwnerOf("/v1/public/orgs/blue/transparency/head") != two.ID {
		t.Error("the second node does not own the organization that it created")
	}
	c.send(one, "first")
	c.wantListed()
	c.wantInLists(list, red, blue)
	keeper, other := one, two
	if one.OwnerOf("/v1/public/directory") == two.ID {
		keeper, other = two, one
	}
	if err := keeper.End(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	c.nodes = []*servicetest.Node{other}
	c.send(other, "second")
	c.wantListed()
	other.AwaitShards(1)
	green := at(other).Found("Green", "green", "eve@green.example")
	keeper.Start()
	c.nodes = []*servicetest.Node{keeper, other}
	c.wantInLists(list, red, blue, green)
	_ = other.End(syscall.SIGKILL)
	c.nodes = []*servicetest.Node{keeper}
	c.send(keeper, "third")
	c.wantListed()
}

// directoryCheck is the state of a test of the directory.
type directoryCheck struct {
	*testing.T
	nodes         []*servicetest.Node // that are running
	organizations []*servicetest.Organization
	newest        string // one event of each organization
}

func (c *directoryCheck) await(what string, look func() bool) {
	c.Helper()
	for end := time.Now().Add(time.Minute); !look(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			c.Fatalf("not within a minute: %s", what)
		}
	}
}

// send sends an event of each organization to a node, until it is acknowledged.
func (c *directoryCheck) send(n *servicetest.Node, name string) {
	c.Helper()
	c.newest = name
	for _, o := range c.organizations {
		sender, err := client.New(client.Config{BaseURL: n.Main, Token: o.IngestKey.Secret, Retry: client.Retry{Attempts: 30}})
		if err == nil {
			_, err = sender.Send(c.Context(), o.Sign(name, nil))
		}
		if err != nil {
			c.Fatal(err)
		}
	}
}

// wantListed waits until each node gives a second proof for the latest events, and checks that listings only grow.
func (c *directoryCheck) wantListed() {
	c.Helper()
	for _, n := range c.nodes {
		reader, err := client.New(client.Config{BaseURL: n.Main})
		if err != nil {
			c.Fatal(err)
		}
		for _, o := range c.organizations {
			path := fmt.Sprintf("/v1/public/orgs/%s/verify/%s?directory=1", o.Slug, c.newest)
			c.await("a second proof of "+o.Slug+" by "+n.Main, func() bool {
				text, err := reader.Fetch(c.Context(), path)
				if err != nil {
					return false
				}
				b, err := verify.ParseBundle(text)
				if err != nil {
					c.Fatal(err)
				}
				report := verify.Check(b, verify.Options{})
				return report.OK && report.DirectoryOK != nil && *report.DirectoryOK
			})
		}
		c.wantGrowing(reader)
	}
}

// wantGrowing reads all listings: the trees of each log must only grow, so that none is listed twice.
func (c *directoryCheck) wantGrowing(reader *client.Client) {
	c.Helper()
	sizes := map[id.Origin]id.Index{}
	for from, end := id.Index(0), id.Index(1); from < end; {
		page, err := reader.DirectoryPage(c.Context(), from)
		if err != nil {
			c.Fatal(err)
		}
		for _, e := range page.Events {
			envelope, err := event.Parse([]byte(e.Envelope), event.Options{Server: true})
			if err != nil {
				c.Fatal(err)
			}
			listing, err := verify.ParseListing(envelope)
			if err != nil {
				c.Fatal(err)
			}
			for _, listed := range listing.Checkpoints {
				if listed.Size <= sizes[listed.Origin] {
					c.Errorf("%s is listed with size %d after %d", listed.Origin, listed.Size, sizes[listed.Origin])
				}
				sizes[listed.Origin] = listed.Size
			}
		}
		from, end = page.Next, page.TreeSize
	}
	if len(sizes) < len(c.organizations) {
		c.Errorf("got the logs %v", sizes)
	}
}

// wantInLists waits until each node's list for witnesses has exactly these logs.
func (c *directoryCheck) wantInLists(organizations ...*servicetest.Organization) {
	c.Helper()
	for _, n := range c.nodes {
		reader, err := client.New(client.Config{BaseURL: n.Main})
		if err != nil {
			c.Fatal(err)
		}
		c.await(fmt.Sprintf("%d logs in the list of %s", len(organizations), n.Main), func() bool {
			text, err := reader.Fetch(c.Context(), "/v1/public/witness-network/logs/v0")
			if err != nil || strings.Count(string(text), "vkey ") != len(organizations) {
				return false
			}
			for _, o := range organizations {
				if !strings.Contains(string(text), "vkey "+o.LogKey+"\n") {
					return false
				}
			}
			return true
		})
	}
}
