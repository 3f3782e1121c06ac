package nodes_test

import (
	"net/http"
	"sync"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/tlog"
)

// organization is one organization of the drill, with everything that its clients were told.
type organization struct {
	*servicetest.Organization
	name   id.Organization
	key    tlog.VerifierKey
	capped bool // its plan caps events, and its senders continue beyond the cap
	signer *client.Signer
	owner  *person // nil for organizations without approvals

	lastEvent, roundBegan time.Time     // guarded by the drill
	gap                   time.Duration // guarded by the drill
	struck                bool          // the node of the round's fault owned it; guarded by the drill

	mu           sync.Mutex
	clients      map[clientOf]*client.Client
	acknowledged map[id.Event]client.Result
	envelopes    map[id.Event][]byte // of acknowledged events
	refused      int                 // events beyond the cap
	roots        map[id.Index]id.Hash
	errands      []*errand
	runs         []*flow
}

const (
	others = 3 // organizations in addition to red, blue and green
	// maxSum bounds the payments of each tool. A tool is used for some seconds, which is enough to exceed it.
	maxSum    = "9.000000000000000007"
	eventsCap = 90
)

// drillPolicy limits the sum of payments, and requires approval for refunds.
const drillPolicy = `{"policy_id":"drill","name":"Drill","rules":[
	{"rule_id":"refund","tool":"acme.refund","decision":"allow_with_obligation",
		"obligations":[{"type":"human_approval","approvals":1,"ttl_seconds":3600}]},
	{"rule_id":"cap","tool":"acme.pay.*","decision":"deny",
		"limit":{"limit_id":"sum","sum":"amount","currency":"USD","by":"tool","window_seconds":86400,"max":"` + maxSum + `"}}]}`

// found creates the organizations: red and blue do everything, green has a cap of events, the others send events.
func (d *drill) found() {
	d.t.Helper()
	names := []string{"red", "blue", "green"}
	for n := range others {
		names = append(names, "other-"+string(rune('a'+n)))
	}
	for i, name := range names { // a node creates organizations that it owns
		n := d.nodes[i%len(d.nodes)]
		made := servicetest.At(d.t, n.main, n.identity).Found(name, name, "owner@"+name+".example")
		d.organizations = append(d.organizations, d.newOrganization(made))
	}
	for _, o := range d.full() {
		o.owner = d.newPerson(o)
		for _, call := range [][2]string{{"/policies", drillPolicy}, {"/policies/drill/activate", "{}"}} {
			if status, answer, err := o.owner.call(d.nodes[0], "/v1/console"+call[0], call[1]); err != nil || status >= http.StatusBadRequest {
				d.t.Fatalf("%s: %d %s %v", call[0], status, answer, err)
			}
		}
	}
	green := d.organizations[2]
	green.capped = true
	servicetest.At(d.t, d.nodes[0].main, d.nodes[0].identity).Limit(green.Organization, map[string]any{"events_per_month": eventsCap})
}

// full returns the organizations that do everything.
func (d *drill) full() []*organization { return d.organizations[:2] }

func (d *drill) newOrganization(made *servicetest.Organization) *organization {
	d.t.Helper()
	key, err := tlog.ParseVerifierKey(made.LogKey)
	if err != nil {
		d.t.Fatal(err)
	}
	name, err := id.ParseOrganization(made.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	who := client.Identity{Organization: name, Agent: id.Agent(made.Agent.AgentID), Key: id.Key(made.Agent.KeyID)}
	signer, err := client.ParseSigner(who, made.Agent.Private)
	if err != nil {
		d.t.Fatal(err)
	}
	return &organization{Organization: made, name: name, key: key, signer: signer, lastEvent: time.Now(), clients: map[clientOf]*client.Client{},
		acknowledged: map[id.Event]client.Result{}, envelopes: map[id.Event][]byte{}, roots: map[id.Index]id.Hash{}}
}

// clientOf identifies a client of one node.
type clientOf struct {
	*node
	tries int // of a request; 0: the default
}

// once is a client that tries each request once.
func (n *node) once() clientOf { return clientOf{n, 1} }

// again is a client that retries, for checks after the faults.
func (n *node) again() clientOf { return clientOf{n, 0} }

// client returns the organization's client.
func (o *organization) client(of clientOf) (*client.Client, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.clients[of]; c != nil {
		return c, nil
	}
	c, err := client.New(client.Config{BaseURL: of.main, Token: o.IngestKey.Secret, Timeout: 10 * time.Second,
		Retry: client.Retry{Attempts: of.tries}})
	o.clients[of] = c
	return c, err
}

// log returns the organization's log as a client sees it.
func (o *organization) log(of clientOf) (*client.Log, error) {
	c, err := o.client(of)
	if err != nil {
		return nil, err
	}
	return c.Log(id.Slug(o.Slug), o.key), nil
}

// settled returns the number of events that were acknowledged, or rejected because of the cap.
func (o *organization) settled() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.acknowledged) + o.refused
}
