package console

import (
	"net/http"
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

// organizationOf returns the id of the caller's organization.
func (s *Server) organizationOf(r *request) (id.Organization, error) {
	settings, err := s.Orgs.CurrentSettings(r.Context(), r.Who.Tenant)
	if err != nil {
		return id.Organization{}, err
	}
	return settings.ID, nil
}

func (s *Server) endpointViews(r *request) ([]wire.Endpoint, error) {
	organization, err := s.organizationOf(r)
	if err != nil {
		return nil, err
	}
	all, err := s.Webhooks.Endpoints(r.Context(), r.Who.Tenant, organization)
	views := make([]wire.Endpoint, len(all))
	for i := range all {
		views[i] = describeEndpoint(all[i], r.Who.Role)
	}
	return views, err
}

func (s *Server) answerEndpoint(r *request) (answer, error) {
	organization, err := s.organizationOf(r)
	if err != nil {
		return answer{}, err
	}
	e, err := s.Webhooks.Endpoint(r.Context(), r.Who.Tenant, organization, endpointID(r))
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, describeEndpoint(e, r.Who.Role)), nil
}

func endpointID(r *request) webhook.EndpointID {
	return webhook.EndpointID(r.PathParameter("webhook"))
}

// endpointBody is the body of a new endpoint. A change has active too.
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

// rotateEndpoint gives an endpoint new keys. The former ones sign next to them for overlap_hours.
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

// decodeOverlap returns the overlap that the body of a rotation asks for.
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

// maxOverlapHours keeps an overlap from overflowing before it is checked.
const maxOverlapHours = 1 << 20

func (s *Server) deleteEndpoint(r *request) (answer, error) {
	return noContent(s.Webhooks.DeleteEndpoint(r.Context(), r.Who.Tenant, string(r.Who.Account), endpointID(r)))
}

// testEndpoint makes a test delivery, which is tried once. Its result is in the list of deliveries.
func (s *Server) testEndpoint(r *request) (answer, error) {
	if err := r.DecodeOptionalBody(&struct{}{}); err != nil {
		return answer{}, err
	}
	organization, err := s.organizationOf(r)
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

// listAttempts lists the newest tries of an endpoint, newest first.
func (s *Server) listAttempts(r *request) (answer, error) {
	p, err := r.ParsePage()
	if err != nil {
		return answer{}, err
	}
	if _, err := s.answerEndpoint(r); err != nil {
		return answer{}, err
	}
	all, err := s.Webhooks.Attempts(r.Context(), r.Who.Tenant, endpointID(r))
	if err != nil {
		return answer{}, err
	}
	begin := 1 + slices.IndexFunc(all, func(a webhook.Attempt) bool { return attemptCursor(a) == p.After })
	if begin == 0 && p.After != "" {
		return answer{}, fault.New(fault.Invalid, "after is not a delivery in the list")
	}
	var body wire.Attempts
	body.Deliveries, body.Next = edge.CutPage(p, all[begin:], attemptCursor, describeAttempt)
	return jsonAnswer(http.StatusOK, body), nil
}
