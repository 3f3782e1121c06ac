package console

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

func describeEndpoint(e webhook.Endpoint, role account.Role) wire.Endpoint {
	v := wire.Endpoint{
		EndpointID: string(e.ID), Name: e.Name, Events: e.Events, Tools: slices.Concat([]string{}, e.Tools),
		Agents: slices.Concat([]id.Agent{}, e.Agents), Format: string(e.Format), State: "active",
		DisabledReason: wire.Text(e.Disabled), FailingSince: wire.Time(e.FailingSince), SigningKeyID: e.KeyID,
		PublicKey: e.PublicKey, HasSecret: e.HasSecret, HasSlackSecret: e.HasSlackSecret, Secret: e.Secret, FormerKeys: describeFormerKeys(e.Former),
		CreatedAt: e.CreatedAt, CreatedBy: e.CreatedBy,
	}
	if e.Disabled != "" {
		v.State = "disabled"
	}
	if role.May(account.Manage) {
		v.URL = wire.Text(e.URL)
	}
	return v
}

func describeFormerKeys(keys []webhook.FormerKey) []wire.FormerKey {
	shown := make([]wire.FormerKey, len(keys))
	for i, k := range keys {
		shown[i] = wire.FormerKey{SigningKeyID: k.KeyID, PublicKey: k.PublicKey, Until: k.Until}
	}
	return shown
}

// organizationID returns the ID of the caller's organization.
func (s *Server) organizationID(ctx context.Context, c *Caller) (id.Organization, error) {
	settings, err := s.Orgs.CurrentSettings(ctx, c.Who.Tenant)
	if err != nil {
		return id.Organization{}, err
	}
	return settings.ID, nil
}

func (s *Server) endpointViews(ctx context.Context, c *Caller) ([]wire.Endpoint, error) {
	organization, err := s.organizationID(ctx, c)
	if err != nil {
		return nil, err
	}
	all, err := s.Webhooks.Endpoints(ctx, c.Who.Tenant, organization)
	views := make([]wire.Endpoint, len(all))
	for i := range all {
		views[i] = describeEndpoint(all[i], c.Who.Role)
	}
	return views, err
}

func (s *Server) answerEndpoint(r *request) (answer, error) {
	return okAnswer(s.ShowEndpoint(r.Context(), r.Caller, r.PathParameter("webhook")))
}

// ShowEndpoint returns a webhook endpoint.
func (s *Server) ShowEndpoint(ctx context.Context, c *Caller, name string) (wire.Endpoint, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.Endpoint{}, err
	}
	organization, err := s.organizationID(ctx, c)
	if err != nil {
		return wire.Endpoint{}, err
	}
	e, err := s.Webhooks.Endpoint(ctx, c.Who.Tenant, organization, webhook.EndpointID(name))
	if err != nil {
		return wire.Endpoint{}, err
	}
	return describeEndpoint(e, c.Who.Role), nil
}

// NewEndpoint is the request for a webhook endpoint.
type NewEndpoint struct {
	Name   *string         `json:"name"`
	URL    *string         `json:"url"`
	Events *[]string       `json:"events"`
	Tools  *[]string       `json:"tools"`
	Agents *[]id.Agent     `json:"agents"`
	Format *webhook.Format `json:"format"`
	// SlackSecret is the signing secret of the Slack app that sends votes; "" removes it. Only an owner sets one.
	SlackSecret *string `json:"slack_signing_secret"`
}

// EndpointPatch is a change of a webhook endpoint. Nil members stay as they are.
type EndpointPatch struct {
	NewEndpoint
	Active *bool `json:"active"`
}

func (p *EndpointPatch) toPatch() webhook.EndpointPatch {
	return webhook.EndpointPatch{Name: p.Name, URL: p.URL, Events: p.Events, Tools: p.Tools, Agents: p.Agents,
		Format: p.Format, Active: p.Active, SlackSecret: p.SlackSecret}
}

func (s *Server) createEndpoint(r *request) (answer, error) {
	var wanted NewEndpoint
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	return createdAnswer(s.CreateEndpoint(r.Context(), r.Caller, wanted))
}

// CreateEndpoint creates a webhook endpoint. The answer contains its secret.
func (s *Server) CreateEndpoint(ctx context.Context, c *Caller, wanted NewEndpoint) (wire.Endpoint, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.Endpoint{}, err
	}
	if err := s.checkSlackSecret(ctx, c, wanted.SlackSecret); err != nil {
		return wire.Endpoint{}, err
	}
	patch := EndpointPatch{NewEndpoint: wanted}
	made, err := s.Webhooks.CreateEndpoint(ctx, c.Who.Tenant, string(c.Who.Account), patch.toPatch())
	return describeEndpoint(made, c.Who.Role), err
}

func (s *Server) patchEndpoint(r *request) (answer, error) {
	var patch EndpointPatch
	if err := r.DecodeBody(&patch); err != nil {
		return answer{}, err
	}
	return okAnswer(s.ChangeEndpoint(r.Context(), r.Caller, r.PathParameter("webhook"), patch))
}

// ChangeEndpoint changes a webhook endpoint and returns it.
func (s *Server) ChangeEndpoint(
	ctx context.Context, c *Caller, name string, patch EndpointPatch,
) (wire.Endpoint, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.Endpoint{}, err
	}
	if err := s.checkSlackSecret(ctx, c, patch.SlackSecret); err != nil {
		return wire.Endpoint{}, err
	}
	changed, err := s.Webhooks.ChangeEndpoint(ctx, c.Who.Tenant, string(c.Who.Account), webhook.EndpointID(name),
		patch.toPatch())
	return describeEndpoint(changed, c.Who.Role), err
}

// KeyRotation is the request for new keys. The former keys also sign for an overlap; if Overlap is nil, for
// webhook.DefaultOverlap.
type KeyRotation struct {
	Overlap *int `json:"overlap_hours"`
}

// maxOverlapHours prevents an overlap from overflowing before it is checked.
const maxOverlapHours = 1 << 20

func (k KeyRotation) overlap() time.Duration {
	if k.Overlap == nil {
		return webhook.DefaultOverlap
	}
	return time.Duration(max(-1, min(*k.Overlap, maxOverlapHours))) * time.Hour
}

func (s *Server) rotateEndpoint(r *request) (answer, error) {
	var wanted KeyRotation
	if err := r.DecodeOptionalBody(&wanted); err != nil {
		return answer{}, err
	}
	return okAnswer(s.RotateEndpoint(r.Context(), r.Caller, r.PathParameter("webhook"), wanted))
}

// RotateEndpoint generates new keys for a webhook endpoint. The answer contains its new secret.
func (s *Server) RotateEndpoint(ctx context.Context, c *Caller, name string, wanted KeyRotation) (wire.Endpoint, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.Endpoint{}, err
	}
	rotated, err := s.Webhooks.RotateKeys(ctx, c.Who.Tenant, string(c.Who.Account), webhook.EndpointID(name),
		wanted.overlap())
	return describeEndpoint(rotated, c.Who.Role), err
}

func (s *Server) deleteEndpoint(r *request) (answer, error) {
	return noContent(s.DeleteEndpoint(r.Context(), r.Caller, r.PathParameter("webhook")))
}

// DeleteEndpoint deletes a webhook endpoint.
func (s *Server) DeleteEndpoint(ctx context.Context, c *Caller, name string) error {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return err
	}
	return s.Webhooks.DeleteEndpoint(ctx, c.Who.Tenant, string(c.Who.Account), webhook.EndpointID(name))
}

func (s *Server) testEndpoint(r *request) (answer, error) {
	if err := r.DecodeOptionalBody(&struct{}{}); err != nil {
		return answer{}, err
	}
	delivery, err := s.TestEndpoint(r.Context(), r.Caller, r.PathParameter("webhook"))
	return acceptedAnswer(struct {
		Delivery webhook.ID `json:"delivery_id"`
	}{delivery}, err)
}

// TestEndpoint makes a test delivery, which is attempted once. The list of deliveries shows its result.
func (s *Server) TestEndpoint(ctx context.Context, c *Caller, name string) (webhook.ID, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return "", err
	}
	organization, err := s.organizationID(ctx, c)
	if err != nil {
		return "", err
	}
	return s.Webhooks.TestEndpoint(ctx, c.Who.Tenant, organization, webhook.EndpointID(name))
}

func describeAttempt(a webhook.Attempt) wire.Attempt {
	v := wire.Attempt{DeliveryID: string(a.Delivery), Type: a.Type, At: a.At, Try: a.Try, Status: wire.Number(a.Status),
		Failure: wire.Text(a.Failure)}
	if a.Status != 0 {
		v.DurationMS = &a.DurationMS
	}
	return v
}

func attemptCursor(a webhook.Attempt) string { return strconv.FormatUint(a.Number, 10) }

func (s *Server) listAttempts(r *request) (answer, error) {
	return okAnswer(s.ListAttempts(r.Context(), r.Caller, r.PathParameter("webhook"), r.URL.Query()))
}

// ListAttempts returns a page of the latest attempts of an endpoint, latest first.
func (s *Server) ListAttempts(ctx context.Context, c *Caller, name string, query url.Values) (wire.Attempts, error) {
	var body wire.Attempts
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return body, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	if _, err := s.ShowEndpoint(ctx, c, name); err != nil {
		return body, err
	}
	all, err := s.Webhooks.Attempts(ctx, c.Who.Tenant, webhook.EndpointID(name))
	if err != nil {
		return body, err
	}
	begin := 1 + slices.IndexFunc(all, func(a webhook.Attempt) bool { return attemptCursor(a) == p.After })
	if begin == 0 && p.After != "" {
		return body, fault.New(fault.Invalid, "after is not a delivery in the list")
	}
	body.Deliveries, body.Next = edge.CutPage(p, all[begin:], attemptCursor, describeAttempt)
	return body, nil
}
