package main

import (
	"context"
	"encoding/base64"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// worker is the demo's agent: a client and a signer.
type worker struct {
	org    foundedOrganization
	client *client.Client
	signer *client.Signer
	log    publicLog
}

// publicLog is an organization's log as a stranger sees it.
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
