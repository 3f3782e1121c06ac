package console

import (
	"context"
	"net/http"
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
		PublicKey: e.PublicKey, HasSecret: e.HasSecret, Secret: e.Secret, FormerKeys: describeFormerKeys(e.Former),
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

func endpointID(r *request) webhook.EndpointID {
	return webhook.EndpointID(r.PathParameter("webhook"))
}

// endpointBody is the body that creates an endpoint. A change also has active.
type endpointBody struct {
	Name   *string         `json:"name"`
	URL    *string         `json:"url"`
	Events *[]string       `json:"events"`
	Tools  *[]string       `json:"tools"`
	Agents *[]id.Agent     `json:"agents"`
	Format *webhook.Format `json:"format"`
}

func (b endpointBody) toPatch(active *bool) webhook.EndpointPatch {
	return webhook.EndpointPatch{Name: b.Name, URL: b.URL, Events: b.Events, Tools: b.Tools, Agents: b.Agents,
		Format: b.Format, Active: active}
}

func (s *Server) createEndpoint(r *request) (answer, error) {
	var body endpointBody
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	made, err := s.Webhooks.CreateEndpoint(r.Context(), r.Who.Tenant, string(r.Who.Account), body.toPatch(nil))
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusCreated, describeEndpoint(made, r.Who.Role)), nil
}

func (s *Server) patchEndpoint(r *request) (answer, error) {
	var body struct {
		endpointBody
		Active *bool `json:"active"`
	}
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	changed, err := s.Webhooks.ChangeEndpoint(r.Context(), r.Who.Tenant, string(r.Who.Account), endpointID(r),
		body.toPatch(body.Active))
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, describeEndpoint(changed, r.Who.Role)), nil
}

// rotateEndpoint generates new keys for an endpoint. The former keys also sign for overlap_hours.
func (s *Server) rotateEndpoint(r *request) (answer, error) {
	overlap, err := decodeOverlap(r)
	if err != nil {
		return answer{}, err
	}
	rotated, err := s.Webhooks.RotateKeys(r.Context(), r.Who.Tenant, string(r.Who.Account), endpointID(r), overlap)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, describeEndpoint(rotated, r.Who.Role)), nil
}

// decodeOverlap returns the overlap in the body of a rotation.
func decodeOverlap(r *request) (time.Duration, error) {
	var body struct {
		Overlap *int `json:"overlap_hours"`
	}
	if err := r.DecodeOptionalBody(&body); err != nil {
		return 0, err
	}
	if body.Overlap == nil {
		return webhook.DefaultOverlap, nil
	}
	return time.Duration(max(-1, min(*body.Overlap, maxOverlapHours))) * time.Hour, nil
}

// maxOverlapHours prevents an overlap from overflowing before it is checked.
const maxOverlapHours = 1 << 20

func (s *Server) deleteEndpoint(r *request) (answer, error) {
	return noContent(s.Webhooks.DeleteEndpoint(r.Context(), r.Who.Tenant, string(r.Who.Account), endpointID(r)))
}

// testEndpoint makes a test delivery, which is attempted once. The list of deliveries shows its result.
func (s *Server) testEndpoint(r *request) (answer, error) {
	if err := r.DecodeOptionalBody(&struct{}{}); err != nil {
		return answer{}, err
	}
	organization, err := s.organizationID(r.Context(), r.Caller)
	if err != nil {
		return answer{}, err
	}
	name, err := s.Webhooks.TestEndpoint(r.Context(), r.Who.Tenant, organization, endpointID(r))
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusAccepted, struct {
		Delivery webhook.ID `json:"delivery_id"`
	}{name}), nil
}

func describeAttempt(a webhook.Attempt) wire.Attempt {
	v := wire.Attempt{DeliveryID: string(a.Delivery), Type: a.Type, At: a.At, Try: a.Try, Status: wire.Number(a.Status),
		Trouble: wire.Text(a.Trouble)}
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
