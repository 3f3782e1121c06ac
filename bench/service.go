package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// service is the product's server in a separate process.
type service struct {
	*process
	http http.Client
}

const (
	platformSecret = "a platform secret for benchmarks"
	adminSlug      = "bench" // of the only organization whose owner signs in
	adminEmail     = "ops@bench.example"
	adminPassword  = "a password for benchmarks"
)

// policyDocument is the policy of the measured organization.
const policyDocument = `{"policy_id":"pol_bench","name":"Bench","default":"deny","rules":[
	{"rule_id":"no-deletion","tool":"acme.customers.**","decision":"deny","reason":"Customers are not the agent's business"},
	{"rule_id":"refunds","tool":"acme.payments.refund","decision":"allow_with_obligation","obligations":[{"type":"human_approval"}],"when":"payload.amount_usd > 50 && payload.currency == 'USD'"},
	{"rule_id":"orders","tool":"acme.orders.*","decision":"allow","reason":"Orders are"},
	{"rule_id":"mail","tool":"acme.mail.send","decision":"allow"}]}`

// serve starts the server on a data directory, with more flags if there are any.
func (s *suite) serve(dir string, flags ...string) (*service, error) {
	cmd := exec.Command(s.server, append([]string{"serve", "--data", dir, "--listen", "127.0.0.1:0", "--id-listen", "127.0.0.1:0",
		"--metrics-listen", "", "--public-url", "http://bench.example", "--log-level", "error"}, flags...)...)
	cmd.Env = append(os.Environ(), "AGENTLEDGER_PLATFORM_SECRET="+platformSecret, "AGENTLEDGER_MASTER_KEY="+s.key.secret)
	p, err := start(cmd)
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	return &service{process: p, http: http.Client{Jar: jar}}, err
}

// serving runs f with a server on a new data directory that has one
// organization with an active policy.
func (s *suite) serving(ctx context.Context, f func(*service, *member) error, flags ...string) error {
	dir, remove, err := s.folder()
	if err != nil {
		return err
	}
	defer remove()
	v, err := s.serve(dir, flags...)
	if err != nil {
		return err
	}
	defer v.stop()
	m, err := v.foundWithPolicy(ctx)
	if err != nil {
		return err
	}
	return f(v, m)
}

// identity is the base URL of the identity listener.
func (v *service) identity() string { return v.said[2] }

// member is an organization with its agent.
type member struct {
	peerMember
	slug   id.Slug
	signer *client.Signer
}

// found creates an organization with the platform call.
func (v *service) found(ctx context.Context, slug string) (*member, error) {
	var f struct {
		Organization id.Organization `json:"organization_id"`
		Slug         id.Slug         `json:"slug"`
		Origin       id.Origin       `json:"origin"`
		Agent        struct {
			Agent   id.Agent `json:"agent_id"`
			Key     id.Key   `json:"key_id"`
			Private string   `json:"private_key_b64"`
			Public  string   `json:"public_key_b64"`
		} `json:"agent"`
		IngestKey struct {
			Secret string `json:"secret"`
		} `json:"ingest_key"`
	}
	request := map[string]string{"name": slug, "slug": slug, "admin_email": "ops@" + slug + ".example"}
	if slug == adminSlug { // the hash of a password takes longer than everything else
		request["admin_password"] = adminPassword
	}
	if err := v.call(ctx, v.identity()+"/v1/id/platform/organizations", request, &f); err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(f.Agent.Private)
	if err != nil {
		return nil, err
	}
	signer, err := client.NewSigner(client.Identity{Organization: f.Organization, Agent: f.Agent.Agent, Key: f.Agent.Key}, seed)
	return &member{slug: f.Slug, signer: signer, peerMember: peerMember{
		Organization: f.Organization, Origin: f.Origin, Token: f.IngestKey.Secret,
		Agent: f.Agent.Agent, Key: f.Agent.Key, PublicB64: f.Agent.Public, Policy: policyDocument,
	}}, err
}

func (v *service) foundWithPolicy(ctx context.Context) (*member, error) {
	m, err := v.found(ctx, adminSlug)
	if err != nil {
		return nil, err
	}
	for _, call := range []struct {
		url  string
		body any
	}{
		{v.identity() + "/v1/id/auth/login", map[string]string{"email": adminEmail, "password": adminPassword}},
		{v.url() + "/v1/console/policies", json.RawMessage(policyDocument)},
		{v.url() + "/v1/console/policies/pol_bench/activate", struct{}{}},
	} {
		if err := v.call(ctx, call.url, call.body, nil); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// foundMany creates n organizations, several concurrently.
func (v *service) foundMany(ctx context.Context, n int) ([]*member, error) {
	members := make([]*member, n)
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(n, 16) {
		group.Go(func() error {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				var err error
				if members[i], err = v.found(ctx, fmt.Sprint("org-", i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return members, group.Wait()
}

// call posts JSON and reads JSON.
func (v *service) call(ctx context.Context, url string, body, answer any) error {
	sent, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Platform-Secret", platformSecret)
	response, err := v.http.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if response.StatusCode >= 400 {
		return fmt.Errorf("%s: %d %s", url, response.StatusCode, got)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(got, answer)
}

// login signs the owner of the organization bench in.
func (v *service) login(ctx context.Context) error {
	return v.call(ctx, v.identity()+"/v1/id/auth/login", map[string]string{"email": adminEmail, "password": adminPassword}, nil)
}
