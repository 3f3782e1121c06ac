package console

import (
	"context"
	"net/url"

	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

func describeDeadLetter(d webhook.DeadLetter, role account.Role) wire.DeadLetter {
	v := wire.DeadLetter{WebhookID: string(d.ID), Type: d.Type, CreatedAt: d.CreatedAt, GivenUpAt: d.GivenUpAt,
		Tries: d.Tries, Failure: d.Failure, EndpointID: wire.Text(d.Endpoint)}
	if role.May(account.Manage) {
		v.URL = wire.Text(d.URL)
	}
	return v
}

func (s *Server) listWebhooks(r *request) (answer, error) {
	return okAnswer(s.ListWebhooks(r.Context(), r.Caller, r.URL.Query()))
}

// ListWebhooks returns the endpoints, the key with which receivers verify callbacks, and a page of the dead letters.
func (s *Server) ListWebhooks(ctx context.Context, c *Caller, query url.Values) (wire.Webhooks, error) {
	var body wire.Webhooks
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return body, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	key, err := s.Webhooks.CallbackKey(ctx, c.Who.Tenant)
	if err != nil {
		return body, err
	}
	found, err := s.Webhooks.DeadLetters(ctx, c.Who.Tenant, webhook.ID(p.After), p.Limit+1)
	if err != nil {
		return body, err
	}
	endpoints, err := s.endpointViews(ctx, c)
	if err != nil {
		return body, err
	}
	body = wire.Webhooks{CallbackKey: describeCallbackKey(key), Endpoints: endpoints}
	body.DeadLetters, body.Next = edge.CutPage(p, found, func(d webhook.DeadLetter) string { return string(d.ID) },
		func(d webhook.DeadLetter) wire.DeadLetter {
			return describeDeadLetter(d, c.Who.Role)
		})
	return body, nil
}

func describeCallbackKey(k webhook.CallbackKey) wire.CallbackKey {
	return wire.CallbackKey{PublicKey: wire.Text(k.PublicKey), SigningKeyID: wire.Text(k.KeyID),
		FormerKeys: describeFormerKeys(k.Former)}
}

func (s *Server) rotateCallbackKey(r *request) (answer, error) {
	var wanted KeyRotation
	if err := r.DecodeOptionalBody(&wanted); err != nil {
		return answer{}, err
	}
	return okAnswer(s.RotateCallbackKey(r.Context(), r.Caller, wanted))
}

// RotateCallbackKey generates a new callback key for the organization.
func (s *Server) RotateCallbackKey(ctx context.Context, c *Caller, wanted KeyRotation) (wire.CallbackKey, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.CallbackKey{}, err
	}
	rotated, err := s.Webhooks.RotateCallbackKey(ctx, c.Who.Tenant, string(c.Who.Account), wanted.overlap())
	return describeCallbackKey(rotated), err
}

func (s *Server) replayWebhook(r *request) (answer, error) {
	if err := r.DecodeOptionalBody(&struct{}{}); err != nil {
		return answer{}, err
	}
	return noContent(s.ReplayDelivery(r.Context(), r.Caller, r.PathParameter("webhook")))
}

// ReplayDelivery attempts a delivery again that was given up.
func (s *Server) ReplayDelivery(ctx context.Context, c *Caller, name string) error {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return err
	}
	return s.Webhooks.Replay(ctx, c.Who.Tenant, webhook.ID(name))
}
