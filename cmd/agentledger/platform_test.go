package main

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/tlog"
)

// foundedOrganization is the response of the platform call.
type foundedOrganization struct {
	OrganizationID id.Organization `json:"organization_id"`
	Slug           id.Slug         `json:"slug"`
	Origin         id.Origin       `json:"origin"`
	LogKey         string          `json:"log_key"`
	MembershipID   string          `json:"membership_id"`
	Account        string          `json:"account"`
	Agent          credentials     `json:"agent"`
	IngestKey      struct {
		KeyID  string `json:"key_id"`
		Secret string `json:"secret"`
	} `json:"ingest_key"`
}

type credentials struct {
	AgentID    id.Agent `json:"agent_id"`
	KeyID      id.Key   `json:"key_id"`
	PrivateB64 string   `json:"private_key_b64"`
	PublicB64  string   `json:"public_key_b64"`
}

// foundOrganization creates an organization.
func (o *operator) foundOrganization(ctx context.Context, secret string,
	request map[string]any) (foundedOrganization, error) {
	var f foundedOrganization
	err := o.callJSON(ctx, "POST", o.identity+"/v1/id/platform/organizations",
		http.Header{"X-Platform-Secret": {secret}}, request, &f)
	return f, err
}

// signIn begins a session, which the later console calls use.
func (o *operator) signIn(ctx context.Context, email, password string) error {
	return o.callJSON(ctx, "POST", o.identity+"/v1/id/auth/login", nil,
		map[string]any{"email": email, "password": password}, nil)
}

// callConsole makes one call of the console.
func (o *operator) callConsole(ctx context.Context, method, path string, body, answer any) error {
	return o.callJSON(ctx, method, o.main+"/v1/console"+path, nil, body, answer)
}

// worker is an agent: a client and a signer.
type worker struct {
	org    foundedOrganization
	client *client.Client
	signer *client.Signer
	log    publicLog
}

// publicLog is an organization's log as an anonymous reader sees it.
type publicLog struct {
	client *client.Client
	log    *client.Log
	slug   id.Slug
}

func newWorker(url string, org foundedOrganization, retry client.Retry) (*worker, error) {
	c, err := client.New(client.Config{BaseURL: url, Token: org.IngestKey.Secret, Retry: retry})
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(org.Agent.PrivateB64)
	if err != nil {
		return nil, err
	}
	signer, err := client.NewSigner(client.Identity{Organization: org.OrganizationID, Agent: org.Agent.AgentID,
		Key: org.Agent.KeyID}, seed)
	if err != nil {
		return nil, err
	}
	l, err := newPublicLog(url, org)
	return &worker{org: org, client: c, signer: signer, log: l}, err
}

// newPublicLog needs no account: the address, the slug and the key to trust.
func newPublicLog(url string, org foundedOrganization) (publicLog, error) {
	c, err := client.New(client.Config{BaseURL: url})
	if err != nil {
		return publicLog{}, err
	}
	key, err := tlog.ParseVerifierKey(org.LogKey)
	if err != nil {
		return publicLog{}, err
	}
	return publicLog{client: c, log: c.Log(org.Slug, key), slug: org.Slug}, nil
}

func (l publicLog) fetchHead(ctx context.Context) (tlog.Checkpoint, error) {
	_, c, err := l.log.Head(ctx)
	return c, err
}

// testSettings are settings of a server in this process, which listens on free ports of loopback.
func testSettings(dir string) config.Serve {
	return config.Serve{
		Store:    config.Store{Data: dir},
		Identity: config.Identity{PublicURL: "http://localhost", Environment: "demo"},
		Limits:   config.Limits{Plans: map[string]uint64{"enterprise": 0}},
		Listen:   config.Listen{Listen: "127.0.0.1:0", IDListen: "127.0.0.1:0"},
		Tuning: config.Tuning{
			CacheMiB: 32, MaxEventKiB: 256, ClockAhead: 15 * time.Minute, Drain: time.Second,
			ReverifyPause: time.Minute, RequestTimeout: 20 * time.Second,
		},
	}
}

func (w *worker) sendEnvelope(ctx context.Context, envelope []byte) error {
	_, err := w.client.Send(ctx, envelope)
	return err
}
