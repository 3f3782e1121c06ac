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

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/internal/wire/issued"
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
func (v *service) identity() string { return v.urls[2] }

// member is an organization with its agent.
type member struct {
	issued.CreatedOrganization
	signer *client.Signer
}

// found creates an organization with the platform call.
func (v *service) found(ctx context.Context, slug string) (*member, error) {
	m := new(member)
	request := map[string]string{"name": slug, "slug": slug, "admin_email": "ops@" + slug + ".example"}
	if slug == adminSlug { // the hash of a password takes longer than everything else
		request["admin_password"] = adminPassword
	}
	if err := v.call(ctx, v.identity()+"/v1/id/platform/organizations", request, &m.CreatedOrganization); err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(m.Agent.PrivateB64)
	if err != nil {
		return nil, err
	}
	m.signer, err = client.NewSigner(client.Identity{Organization: m.OrganizationID, Agent: m.Agent.AgentID, Key: m.Agent.KeyID}, seed)
	return m, err
}

func (v *service) foundWithPolicy(ctx context.Context) (*member, error) {
	m, err := v.found(ctx, adminSlug)
	if err == nil {
		err = v.login(ctx)
	}
	if err == nil {
		err = v.call(ctx, v.url()+"/v1/console/policies", json.RawMessage(policyDocument), nil)
	}
	if err == nil {
		err = v.call(ctx, v.url()+"/v1/console/policies/pol_bench/activate", struct{}{}, nil)
	}
	return m, err
}

// foundMany creates n organizations, several concurrently.
func (v *service) foundMany(ctx context.Context, n int) ([]*member, error) {
	members := make([]*member, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range members {
		group.Go(func() (err error) {
			members[i], err = v.found(ctx, fmt.Sprint("org-", i))
			return err
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
		return &statusError{r.URL.Path, response.StatusCode, string(got)}
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(got, answer)
}

// statusError is a response with an error status.
type statusError struct {
	path   string
	status int
	body   string
}

func (e *statusError) Error() string { return fmt.Sprintf("POST %s: %d %s", e.path, e.status, e.body) }

// login signs the owner of the organization bench in.
func (v *service) login(ctx context.Context) error {
	return v.call(ctx, v.identity()+"/v1/id/auth/login", map[string]string{"email": adminEmail, "password": adminPassword}, nil)
}
