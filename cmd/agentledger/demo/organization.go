package demo

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// organization is one customer of the service: its agent, and its log as a stranger sees it.
type organization struct {
	name   string
	slug   id.Slug
	key    tlog.VerifierKey
	client *client.Client // of any node
	signer *client.Signer

	mu       sync.Mutex
	receipts map[id.Event]client.Result
	longest  time.Duration // until an event was acknowledged, since the last reset
	heads    map[id.Index]id.Hash
	shown    map[*node]int // heads that a node showed
	faults   []string      // that the reader found
}

// founded is the part of the platform call's answer that the demo needs.
type founded struct {
	OrganizationID id.Organization `json:"organization_id"`
	LogKey         string          `json:"log_key"`
	Agent          struct {
		AgentID    id.Agent `json:"agent_id"`
		KeyID      id.Key   `json:"key_id"`
		PrivateB64 string   `json:"private_key_b64"`
	} `json:"agent"`
	IngestKey struct {
		Secret string `json:"secret"`
	} `json:"ingest_key"`
}

// found makes an organization through one node.
func (s *stage) found(ctx context.Context, n *node, name string, slug id.Slug) (*organization, error) {
	body, err := json.Marshal(map[string]any{"name": name, "slug": slug, "disclosure": "full",
		"admin_email": "ops@" + string(slug) + ".example", "admin_password": "correct horse battery staple"})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.identity+"/v1/id/platform/organizations",
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Platform-Secret", platformSecret)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("status %d: %s", answer.StatusCode, said)
	}
	var f founded
	if err == nil {
		err = json.Unmarshal(said, &f)
	}
	if err != nil {
		return nil, fmt.Errorf("make the organization %s: %w", name, err)
	}
	return s.newOrganization(name, slug, f)
}

// newOrganization returns the clients of an organization. A request is sent again until a node takes it.
func (s *stage) newOrganization(name string, slug id.Slug, f founded) (*organization, error) {
	o := &organization{name: name, slug: slug, receipts: map[id.Event]client.Result{}, heads: map[id.Index]id.Hash{},
		shown: map[*node]int{}}
	var err error
	if o.key, err = tlog.ParseVerifierKey(f.LogKey); err != nil {
		return nil, err
	}
	if o.client, err = client.New(client.Config{BaseURL: publicURL, Token: f.IngestKey.Secret,
		HTTP: &http.Client{Transport: s.balancer}, Timeout: 10 * time.Second,
		Retry: client.Retry{Attempts: 200, Base: 20 * time.Millisecond, Max: 250 * time.Millisecond}}); err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(f.Agent.PrivateB64)
	if err != nil {
		return nil, err
	}
	o.signer, err = client.NewSigner(client.Identity{Organization: f.OrganizationID, Agent: f.Agent.AgentID,
		Key: f.Agent.KeyID}, seed)
	return o, err
}

// log returns the log as any node shows it.
func (o *organization) log() *client.Log { return o.client.Log(o.slug, o.key) }

// owner returns the node that answers for the organization now.
func (s *stage) owner(ctx context.Context, o *organization) (*node, error) {
	for _, n := range s.nodes {
		if !n.runs() {
			continue
		}
		answer, err := fetch(ctx, n.main+"/v1/public/orgs/"+string(o.slug)+"/transparency/head")
		if err != nil {
			return nil, err
		}
		if err := answer.Body.Close(); err != nil {
			return nil, err
		}
		for _, owner := range s.nodes {
			if owner.id == answer.Header.Get(nodeHeader) {
				return owner, nil
			}
		}
	}
	return nil, fmt.Errorf("no node owns %s", o.name)
}

// acknowledged returns how many events were acknowledged.
func (o *organization) acknowledged() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.receipts)
}

// takeLongest returns the longest time until an event was acknowledged since the last call.
func (o *organization) takeLongest() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	longest := o.longest
	o.longest = 0
	return longest
}
