package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/serving"
)

// operator makes the calls of an operator's tool over HTTP: the platform call and, once logged in, the console's.
type operator struct {
	main, identity string // base URLs
	http           *http.Client
}

func newOperator(main, identity string) (*operator, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	identity, transport := serving.Reach(identity)
	return &operator{main: main, identity: identity, http: &http.Client{Jar: jar, Transport: transport}}, nil
}

// foundedOrganization is the answer of the platform call.
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

// foundOrganization makes an organization.
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

// maxAnswer bounds an answer that is read whole.
const maxAnswer = 1 << 20

// callJSON sends JSON, nothing for a nil body, and reads JSON. An answer of 400 and above is an error with
// its status and text.
func (o *operator) callJSON(ctx context.Context, method, url string, header http.Header, body, answer any) error {
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	if header != nil {
		r.Header = header
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := o.http.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode >= 400 {
		return fmt.Errorf("%s %s: %d %s", method, r.URL.Path, response.StatusCode, got)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(got, answer)
}
