package webhook

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// kindEndpoints has one record in an organization's partition, under the key "", with all its endpoints.
const kindEndpoints storage.Kind = "webhook_endpoints"

type endpointsRecord struct {
	Endpoints []endpointRecord `json:"endpoints"` // oldest first
}

type endpointRecord struct {
	ID     EndpointID `json:"id"`
	Name   string     `json:"name,omitzero"`
	URL    []byte     `json:"url"`  // sealed, because an address may contain a secret
	Lane   string     `json:"lane"` // of the receiver: receiverAddress
	Events []string   `json:"events"`
	Tools  []string   `json:"tools,omitempty"`
	Agents []id.Agent `json:"agents,omitempty"`
	Format Format     `json:"format"`
	signingKeys
	Former []formerKeys `json:"former,omitempty"` // oldest first
	// SlackSecret is the signing secret of the Slack app whose requests vote, sealed; empty if there is none.
	SlackSecret []byte     `json:"slack_signing_secret,omitempty"`
	Disabled    Reason     `json:"disabled,omitzero"`
	CreatedAt   id.Instant `json:"created_at"`
	CreatedBy   string     `json:"created_by"`
}

func endpointContext(o id.Organization) string { return "webhook-endpoint\n" + o.String() }

// SealedEndpoints describes the record with the addresses, keys and secrets of an organization's endpoints.
func SealedEndpoints() seal.Record {
	return seal.RecordOf(kindEndpoints, "webhook endpoints", seal.ForOrganization(endpointContext),
		func(r *endpointsRecord) (sealed []*[]byte) {
			for i := range r.Endpoints {
				e := &r.Endpoints[i]
				sealed = append(sealed, &e.URL)
				sealed = append(sealed, e.sealed()...)
				sealed = append(sealed, sealedFormer(e.Former)...)
				if len(e.SlackSecret) > 0 {
					sealed = append(sealed, &e.SlackSecret)
				}
			}
			return sealed
		})
}

func (k *signingKeys) sealed() []*[]byte {
	if len(k.Secret) == 0 {
		return []*[]byte{&k.Key}
	}
	return []*[]byte{&k.Key, &k.Secret}
}

func sealedFormer(all []formerKeys) (sealed []*[]byte) {
	for i := range all {
		sealed = append(sealed, all[i].sealed()...)
	}
	return sealed
}

func (r *endpointsRecord) indexOf(name EndpointID) int {
	return slices.IndexFunc(r.Endpoints, func(e endpointRecord) bool { return e.ID == name })
}

// toEndpoint returns the public part of an endpoint, with its unsealed address.
func (o *Sender) toEndpoint(organization id.Organization, r *endpointRecord) (Endpoint, error) {
	address, err := o.keyring.Open(endpointContext(organization), r.URL)
	if err != nil {
		return Endpoint{}, errUnreadable("open endpoint", err)
	}
	return Endpoint{
		ID: r.ID, Name: r.Name, URL: string(address), Events: r.Events, Tools: r.Tools, Agents: r.Agents,
		Format: r.Format, KeyID: keyIDFor(r.Public), PublicKey: publicPrefix + r.Public, HasSecret: len(r.Secret) > 0,
		HasSlackSecret: len(r.SlackSecret) > 0,
		Former:         describeFormer(stillSigning(r.Former, o.currentTime())), Disabled: r.Disabled,
		CreatedAt: r.CreatedAt, CreatedBy: r.CreatedBy,
	}, nil
}

func describeFormer(all []formerKeys) []FormerKey {
	shown := make([]FormerKey, len(all))
	for i, f := range all {
		shown[i] = FormerKey{KeyID: keyIDFor(f.Public), PublicKey: publicPrefix + f.Public, Until: f.Until}
	}
	return shown
}

// Endpoints returns the endpoints of an organization, oldest first.
func (o *Sender) Endpoints(ctx context.Context, t id.Tenant, organization id.Organization) ([]Endpoint, error) {
	stored, err := o.endpoints.Get(ctx, t, "")
	if err != nil {
		return nil, err
	}
	failing := make(map[EndpointID]id.Instant)
	for h, err := range o.health.Scan(ctx, t, records.Range{}, 0) {
		if err != nil {
			return nil, err
		}
		failing[EndpointID(h.Key)] = h.Value.FailingSince
	}
	all := make([]Endpoint, len(stored.Value.Endpoints))
	for i := range all {
		if all[i], err = o.toEndpoint(organization, &stored.Value.Endpoints[i]); err != nil {
			return nil, err
		}
		all[i].FailingSince = failing[all[i].ID]
	}
	return all, nil
}

// Endpoint returns one endpoint. It returns fault.NotFound if the organization has no endpoint with this ID.
func (o *Sender) Endpoint(
	ctx context.Context, t id.Tenant, organization id.Organization, name EndpointID,
) (Endpoint, error) {
	all, err := o.Endpoints(ctx, t, organization)
	if err != nil {
		return Endpoint{}, err
	}
	for _, e := range all {
		if e.ID == name {
			return e, nil
		}
	}
	return Endpoint{}, errNoEndpoint()
}

// SlackSecrets returns the signing secrets of the Slack apps of an organization's active endpoints, each once.
func (o *Sender) SlackSecrets(ctx context.Context, t id.Tenant, organization id.Organization) (secrets [][]byte, err error) {
	stored, err := o.endpoints.Get(ctx, t, "")
	if err != nil {
		return nil, err
	}
	for i := range stored.Value.Endpoints {
		e := &stored.Value.Endpoints[i]
		if len(e.SlackSecret) == 0 || e.Format != FormatSlack || e.Disabled != "" {
			continue
		}
		secret, err := o.keyring.Open(endpointContext(organization), e.SlackSecret)
		if err != nil {
			return nil, errUnreadable("open signing secret", err)
		}
		if !slices.ContainsFunc(secrets, func(s []byte) bool { return bytes.Equal(s, secret) }) {
			secrets = append(secrets, secret)
		}
	}
	return secrets, nil
}

func errNoEndpoint() error { return fault.New(fault.NotFound, "Not found") }

// CreateEndpoint creates an endpoint with its own key and secret and records it (ledger_webhook_created). The result
// contains the secret, which is shown only this once. It returns fault.Conflict if the organization has MaxEndpoints.
func (o *Sender) CreateEndpoint(
	ctx context.Context, t id.Tenant, principal string, p EndpointPatch,
) (made Endpoint, err error) {
	if p.URL == nil || p.Events == nil {
		return Endpoint{}, fault.New(fault.Invalid, "url and events are required")
	}
	if err := o.checkPatch(p); err != nil {
		return Endpoint{}, err
	}
	err = o.changeEndpoints(ctx, t, principal, func(s *log.State, r *endpointsRecord) (*statement, error) {
		if len(r.Endpoints) >= MaxEndpoints {
			return nil, &fault.Error{Kind: fault.Conflict, Code: "webhook_limit",
				Message: "The organization has 20 webhook endpoints, as many as it may have: delete one first"}
		}
		organization := s.Identity().Organization
		e, secret, err := o.newEndpoint(organization, principal)
		if err != nil {
			return nil, err
		}
		if _, err := o.applyPatch(organization, e, p); err != nil {
			return nil, err
		}
		followed, err := o.followChanges(ctx, t, s, e, false)
		if err != nil {
			return nil, err
		}
		r.Endpoints = append(r.Endpoints, *e)
		if made, err = o.toEndpoint(organization, e); err != nil {
			return nil, err
		}
		made.Secret = secret
		payload := map[string]any{
			"endpoint_id": e.ID, "name": e.Name, "events": e.Events, "format": e.Format, "signing_key_id": made.KeyID}
		if made.HasSlackSecret {
			payload["slack_signing_secret"] = "set"
		}
		return &statement{kind: sysevent.WebhookCreated, paced: true, changes: followed, payload: payload}, nil
	})
	return made, err
}

func (o *Sender) newEndpoint(
	organization id.Organization, principal string,
) (made *endpointRecord, secret string, err error) {
	keys, secret, err := o.newSigningKeys(organization)
	if err != nil {
		return nil, "", err
	}
	now := o.currentTime()
	return &endpointRecord{
		ID: EndpointID(id.Rising("whe_", now)), Format: FormatStandard, signingKeys: keys,
		CreatedAt: now, CreatedBy: principal,
	}, secret, nil
}

// applyPatch changes an endpoint and returns the names of the members that changed.
func (o *Sender) applyPatch(
	organization id.Organization, e *endpointRecord, p EndpointPatch,
) (names []string, err error) {
	if p.URL != nil {
		before, _ := o.keyring.Open(endpointContext(organization), e.URL) // a new endpoint has none
		if string(before) != *p.URL {
			if e.URL, err = o.keyring.Seal(endpointContext(organization), []byte(*p.URL)); err != nil {
				return nil, fmt.Errorf("seal address: %w", err)
			}
			e.Lane, names = receiverAddress(*p.URL), append(names, "url")
		}
	}
	if p.Name != nil && *p.Name != e.Name {
		e.Name, names = *p.Name, append(names, "name")
	}
	if p.Events != nil && !slices.Equal(*p.Events, e.Events) {
		e.Events, names = *p.Events, append(names, "events")
	}
	if p.Tools != nil && !slices.Equal(*p.Tools, e.Tools) {
		e.Tools, names = *p.Tools, append(names, "tools")
	}
	if p.Agents != nil && !slices.Equal(*p.Agents, e.Agents) {
		e.Agents, names = *p.Agents, append(names, "agents")
	}
	if p.Format != nil && *p.Format != e.Format {
		e.Format, names = *p.Format, append(names, "format")
	}
	// Who may change endpoints does not decide whether users of Slack vote, or where. So a change of the receiver and
	// switching on remove the signing secret, unless an owner sets it with the change.
	moved := slices.Contains(names, "url") || slices.Contains(names, "format") || p.Active != nil && *p.Active && e.Disabled != ""
	if moved && p.SlackSecret == nil {
		p.SlackSecret = new("")
	}
	if p.SlackSecret != nil && (*p.SlackSecret != "" || len(e.SlackSecret) > 0) {
		e.SlackSecret = nil
		if *p.SlackSecret != "" {
			if e.SlackSecret, err = o.keyring.Seal(endpointContext(organization), []byte(*p.SlackSecret)); err != nil {
				return nil, fmt.Errorf("seal signing secret: %w", err)
			}
		}
		names = append(names, "slack_signing_secret")
	}
	if p.Active != nil && *p.Active != (e.Disabled == "") {
		e.Disabled, names = reasonFor(*p.Active), append(names, "active")
	}
	return names, nil
}

// reasonFor returns the reason of an endpoint that a user enabled or disabled.
func reasonFor(active bool) Reason {
	if active {
		return ""
	}
	return ByPerson
}

// ChangeEndpoint changes an endpoint and records it (ledger_webhook_changed). Waiting deliveries go to the new address.
// It returns fault.NotFound if the organization has no endpoint with this ID.
func (o *Sender) ChangeEndpoint(
	ctx context.Context, t id.Tenant, principal string, name EndpointID, p EndpointPatch,
) (changed Endpoint, err error) {
	if err := o.checkPatch(p); err != nil {
		return Endpoint{}, err
	}
	var organization id.Organization
	err = o.changeEndpoints(ctx, t, principal, func(s *log.State, r *endpointsRecord) (*statement, error) {
		at := r.indexOf(name)
		if at < 0 {
			return nil, errNoEndpoint()
		}
		organization = s.Identity().Organization
		names, err := o.applyPatch(organization, &r.Endpoints[at], p)
		if err != nil || len(names) == 0 {
			return nil, err
		}
		switchedOn := slices.Contains(names, "active") && *p.Active
		changes, err := o.followChanges(ctx, t, s, &r.Endpoints[at], switchedOn)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, "active") || slices.Contains(names, "url") { // previous failures no longer count
			changes = append(changes, storage.Change{Kind: kindHealth, Key: string(name), If: storage.AnyVersion})
		}
		ended := len(names) == 1 && p.Active != nil && !*p.Active
		payload := map[string]any{"endpoint_id": name, "name": r.Endpoints[at].Name, "names": names}
		if slices.Contains(names, "slack_signing_secret") {
			payload["slack_signing_secret"] = "removed"
			if len(r.Endpoints[at].SlackSecret) > 0 {
				payload["slack_signing_secret"] = "set"
			}
		}
		return &statement{kind: sysevent.WebhookChanged, paced: !ended, changes: changes, payload: payload}, nil
	})
	if err != nil {
		return Endpoint{}, err
	}
	return o.Endpoint(ctx, t, organization, name)
}

// DeleteEndpoint deletes an endpoint with its attempts and records it (ledger_webhook_deleted). Its waiting deliveries
// are dropped when they are due.
func (o *Sender) DeleteEndpoint(ctx context.Context, t id.Tenant, principal string, name EndpointID) error {
	rest, err := o.attempts.List(ctx, t, attemptsOf(name), maxAttempts)
	if err != nil {
		return err
	}
	changes := append(o.unfollowChanges(name),
		storage.Change{Kind: kindHealth, Key: string(name), If: storage.AnyVersion})
	for _, a := range rest {
		changes = append(changes, storage.Change{Kind: kindAttempt, Key: a.Key, If: storage.AnyVersion})
	}
	return o.changeEndpoints(ctx, t, principal, func(_ *log.State, r *endpointsRecord) (*statement, error) {
		at := r.indexOf(name)
		if at < 0 {
			return nil, errNoEndpoint()
		}
		payload := map[string]any{"endpoint_id": name, "name": r.Endpoints[at].Name}
		r.Endpoints = slices.Delete(r.Endpoints, at, at+1)
		return &statement{kind: sysevent.WebhookDeleted, changes: changes, payload: payload}, nil
	})
}

// disableEndpoint disables an active endpoint and records it (ledger_webhook_disabled), in the name of the service.
func (o *Sender) disableEndpoint(ctx context.Context, t id.Tenant, name EndpointID, why Reason) error {
	return o.changeEndpoints(ctx, t, sysevent.Operator, func(s *log.State, r *endpointsRecord) (*statement, error) {
		at := r.indexOf(name)
		if at < 0 || r.Endpoints[at].Disabled != "" {
			return nil, nil
		}
		e, err := o.toEndpoint(s.Identity().Organization, &r.Endpoints[at])
		if err != nil {
			return nil, err
		}
		mailed, err := o.mailDisabled(ctx, t, &e, why)
		r.Endpoints[at].Disabled = why
		return &statement{kind: sysevent.WebhookDisabled, changes: mailed,
			payload: map[string]any{"endpoint_id": name, "name": e.Name, "reason": why}}, err
	})
}

// mailDisabled returns the changes that report a disabled endpoint by mail.
func (o *Sender) mailDisabled(ctx context.Context, t id.Tenant, e *Endpoint, why Reason) ([]storage.Change, error) {
	if o.mail == nil {
		return nil, nil
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil, errUnreadable("read endpoint", err)
	}
	return o.mail.EndpointMail(ctx, t, DisabledEndpoint{ID: e.ID, Host: u.Host, Why: why})
}

// statement describes a change of endpoints.
type statement struct {
	kind    sysevent.Kind
	payload map[string]any
	paced   bool             // counts toward the pace of changes
	changes []storage.Change // of other records
}

// changeEndpoints changes an organization's endpoints in the append of the statement that change returns. If it returns
// no statement, nothing changes.
func (o *Sender) changeEndpoints(
	ctx context.Context, t id.Tenant, principal string,
	change func(*log.State, *endpointsRecord) (*statement, error),
) error {
	_, err := o.events.Append(ctx, t, principal, func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		stored, err := o.endpoints.Get(ctx, t, "")
		if err != nil {
			return sysevent.Change{}, err
		}
		made, err := change(s, &stored.Value)
		if err != nil || made == nil {
			return sysevent.Change{}, err
		}
		put, err := o.endpoints.Put(stored)
		if err != nil {
			return sysevent.Change{}, err
		}
		changes := append(made.changes, put)
		if made.paced {
			paced, err := o.countStatement(ctx, t)
			if err != nil {
				return sysevent.Change{}, err
			}
			changes = append(changes, paced...)
		}
		return sysevent.Change{
			Statements: []sysevent.Statement{{Kind: made.kind, Payload: made.payload}},
			Changes:    changes,
		}, nil
	})
	return err
}

func (o *Sender) countStatement(ctx context.Context, t id.Tenant) ([]storage.Change, error) {
	if o.pace == nil {
		return nil, nil
	}
	return o.pace.CountStatement(ctx, t)
}

// TestEndpoint creates a test delivery to one endpoint, even if it is disabled, and returns its ID. It is attempted
// once.
func (o *Sender) TestEndpoint(
	ctx context.Context, t id.Tenant, organization id.Organization, name EndpointID,
) (ID, error) {
	stored, err := o.endpoints.Get(ctx, t, "")
	if err != nil {
		return "", err
	}
	at := stored.Value.indexOf(name)
	if at < 0 {
		return "", errNoEndpoint()
	}
	m := &Message{Type: testType, Title: "Test delivery", Data: []byte(`{"endpoint_id":"` + string(name) + `"}`)}
	delivered, d, err := o.newNotice(organization, m, &stored.Value.Endpoints[at])
	if err != nil {
		return "", err
	}
	change, err := o.deliveries.Put(records.Versioned[delivery]{Key: string(delivered), Value: *d})
	if err != nil {
		return "", err
	}
	paced, err := o.countStatement(ctx, t)
	if err != nil {
		return "", err
	}
	if err := o.noteDue(ctx, d.dueEntry(t, delivered)); err != nil {
		return "", err
	}
	if err := o.records.Write(ctx, t, append(paced, change)); err != nil {
		return "", errUnreadable("write test delivery", err)
	}
	return delivered, nil
}
