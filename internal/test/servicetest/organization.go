package servicetest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
)

// Organization is an organization with its owner, its first agent and its first ingest key.
type Organization struct {
	service *Service
	Owner   string // e-mail address
	Slug    string `json:"slug"`
	ID      string `json:"organization_id"`
	Origin  string `json:"origin"`
	LogKey  string `json:"log_key"`
	Agent   struct {
		AgentID string `json:"agent_id"`
		KeyID   string `json:"key_id"`
		Private string `json:"private_key_b64"`
	} `json:"agent"`
	IngestKey struct {
		KeyID  string `json:"key_id"`
		Secret string `json:"secret"`
	} `json:"ingest_key"`
}

// Found makes an organization that discloses its events in full.
func (s *Service) Found(name, slug, owner string) *Organization {
	s.Helper()
	o := &Organization{service: s, Owner: owner}
	s.platform(http.MethodPost, "/organizations", map[string]any{"name": name, "slug": slug, "admin_email": owner,
		"admin_password": Password, "disclosure": "full", "plan": "enterprise"}, o)
	return o
}

// Offer makes an organization that is offered to a person with an account.
func (s *Service) Offer(name, slug, owner string) {
	s.Helper()
	s.platform(http.MethodPost, "/organizations", map[string]any{"name": name, "slug": slug, "admin_email": owner}, nil)
}

// Platform makes a call with the platform secret.
func (s *Service) platform(method, path string, body, into any) {
	s.Helper()
	s.call(http.DefaultClient, method, s.IdentityURL+"/v1/id/platform"+path, body, into,
		"X-Platform-Secret", Secret)
}

// call makes a call that must succeed.
func (s *Service) call(c *http.Client, method, url string, body, into any, headers ...string) {
	s.Helper()
	var content bytes.Buffer
	if err := json.NewEncoder(&content).Encode(body); err != nil {
		s.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.Context(), method, url, &content)
	if err != nil {
		s.Fatal(err)
	}
	if body == nil {
		r.Body, r.ContentLength = http.NoBody, 0
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := c.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil || answer.StatusCode >= http.StatusBadRequest {
		s.Fatalf("%s %s: %d %s, %v", method, url, answer.StatusCode, text.Bytes(), err)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(text.Bytes(), into); err != nil {
		s.Fatalf("%s %s: %v", method, url, err)
	}
}

// Sign returns an event of the agent with an id. Members replace the usual ones.
func (o *Organization) Sign(name string, members map[string]any) []byte {
	s := o.service
	s.Helper()
	unsigned := map[string]any{"schema_version": 1, "event_id": name, "organization_id": o.ID, "trace_id": "trc",
		"agent_id": o.Agent.AgentID, "key_id": o.Agent.KeyID, "emitted_at": "2026-11-20T12:00:00.000Z",
		"actor_type": "agent", "actor_principal": "desk", "action_kind": "tool_call", "tool_name": "acme.orders.read",
		"policy_decision": "allow", "payload": map[string]any{"text": name}}
	for member, value := range members {
		unsigned[member] = value
	}
	key := o.agentKey()
	text, err := json.Marshal(unsigned)
	if err != nil {
		s.Fatal(err)
	}
	signed, err := event.Sign(text, key)
	if err != nil {
		s.Fatal(err)
	}
	return signed
}

// agentKey returns the private key of the agent.
func (o *Organization) agentKey() edkey.Private {
	s := o.service
	s.Helper()
	seed, err := base64.StdEncoding.DecodeString(o.Agent.Private)
	if err != nil {
		s.Fatal(err)
	}
	key, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		s.Fatal(err)
	}
	return key
}

// Asked is the answer to an agent that asks for an approval.
type Asked struct {
	ID           string `json:"approval_id"`
	Status       string `json:"status"`
	ActionDigest string `json:"action_digest"`
}

// Ask asks for an approval of the agent. Members replace the usual ones.
func (o *Organization) Ask(members map[string]any) (a Asked) {
	o.service.Helper()
	question := map[string]any{"organization_id": o.ID, "agent_id": o.Agent.AgentID, "tool_name": "acme.refund",
		"payload": map[string]any{"amount_usd": 84.5, "order": "A-1001"}, "trace_id": "trc"}
	for member, value := range members {
		question[member] = value
	}
	o.Ingest(http.MethodPost, "/approvals", question, &a)
	return a
}

// Consume uses an approval with the agent's key.
func (o *Organization) Consume(a Asked) {
	s := o.service
	s.Helper()
	proof := o.agentKey().Sign([]byte("APS1-CONSUME\n" + a.ID + "\n" + a.ActionDigest + "\n"))
	o.Ingest(http.MethodPost, "/approvals/"+a.ID+"/consume", map[string]string{"action_digest": a.ActionDigest,
		"proof_b64": base64.StdEncoding.EncodeToString(proof[:])}, nil)
}

// Send stores an event of the agent. Members replace the usual ones.
func (o *Organization) Send(name string, members map[string]any) {
	s := o.service
	s.Helper()
	s.call(http.DefaultClient, http.MethodPost, s.URL+"/v1/ingest/events", json.RawMessage(o.Sign(name, members)), nil,
		"Authorization", "Bearer "+o.IngestKey.Secret)
}

// Ingest makes a call with the ingest key, for example to ask for an approval.
func (o *Organization) Ingest(method, path string, body, into any) {
	s := o.service
	s.Helper()
	s.call(http.DefaultClient, method, s.URL+"/v1/ingest"+path, body, into,
		"Authorization", "Bearer "+o.IngestKey.Secret)
}

// Limit sets bounds of an organization in place of those of its plan.
func (s *Service) Limit(o *Organization, limits map[string]any) {
	s.Helper()
	s.platform(http.MethodPatch, "/organizations/"+o.ID, map[string]any{"limits": limits}, nil)
}

// At returns the same organization, whose programs call another node of the service.
func (o *Organization) At(node *Service) *Organization {
	same := *o
	same.service = node
	return &same
}
