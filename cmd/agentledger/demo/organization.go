package demo

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/internal/wire/issued"
	"github.com/agentledger/agentledger/tlog"
)

// organization is one customer of the service: its agent, and its log as the public sees it.
type organization struct {
	name string
	issued.CreatedOrganization
	client *client.Client // with the agent's ingest key
	signer *client.Signer // with the agent's key
	log    *client.Log    // under the key that the operator received

	mu       sync.Mutex
	receipts map[id.Event]client.Result // of acknowledged events
	longest  time.Duration              // time until an event was acknowledged, since takeLongest
	heads    map[id.Index]id.Hash       // roots that nodes have shown
	shown    map[*node]bool             // nodes that have shown heads
	faults   []string                   // in these heads
}

// password is the password of every owner.
const password = "correct horse battery staple"

// owner returns the e-mail address of the organization's owner.
func (o *organization) owner() string { return "ops@" + strings.ToLower(o.name) + ".example" }

// found creates an organization through one node.
func (s *stage) found(ctx context.Context, n *node, name string) *organization {
	o := &organization{name: name, receipts: map[id.Event]client.Result{}, heads: map[id.Index]id.Hash{},
		shown: map[*node]bool{}}
	s.post(ctx, n.identity+"/v1/id/platform/organizations", map[string]any{"name": name, "slug": strings.ToLower(name),
		"disclosure": "full", "admin_email": o.owner(), "admin_password": password}, &o.CreatedOrganization)
	// The client retries a request until a node answers it.
	o.client = must(client.New(client.Config{BaseURL: s.url, Token: o.IngestKey.Secret,
		HTTP: &http.Client{Transport: s.transport}, Timeout: 10 * time.Second,
		Retry: client.Retry{Attempts: 200, Base: 20 * time.Millisecond, Max: 250 * time.Millisecond}}))
	o.signer = o.newSigner(o.Agent.KeyID)
	o.log = o.logAt(o.client)
	return o
}

// newSigner returns a signer with the agent's private key.
func (o *organization) newSigner(key id.Key) *client.Signer {
	seed := must(base64.StdEncoding.DecodeString(o.Agent.PrivateB64))
	return must(client.NewSigner(client.Identity{Organization: o.OrganizationID, Agent: o.Agent.AgentID, Key: key}, seed))
}

// logAt returns the log as a client sees it.
func (o *organization) logAt(c *client.Client) *client.Log {
	return c.Log(o.Slug, must(tlog.ParseVerifierKey(o.LogKey)))
}

// head fetches and checks the latest head.
func (o *organization) head(ctx context.Context) tlog.Checkpoint {
	_, head, err := o.log.Head(ctx)
	try(err)
	return head
}

func leaves(size id.Index) string { return textcheck.Count(size, "leaf", "leaves") }

// post calls the service as the operator, and decodes the response into answer unless that is nil.
func (s *stage) post(ctx context.Context, url string, body, answer any) {
	r := must(http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(must(json.Marshal(body)))))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Platform-Secret", platformSecret)
	response := must(s.operator.Do(r))
	defer response.Body.Close()
	text := must(io.ReadAll(io.LimitReader(response.Body, 1<<20)))
	if response.StatusCode/100 != 2 {
		try(fmt.Errorf("POST %s: %d %s", r.URL.Path, response.StatusCode, text))
	}
	if answer != nil {
		try(json.Unmarshal(text, answer))
	}
}
