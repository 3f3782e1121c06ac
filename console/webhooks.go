package console

import (
	"net/http"

	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

func describeDeadLetter(d webhook.DeadLetter, role account.Role) wire.DeadLetter {
	v := wire.DeadLetter{WebhookID: string(d.ID), Type: d.Type, CreatedAt: d.CreatedAt, GivenUpAt: d.GivenUpAt,
		Tries: d.Tries, Trouble: d.Trouble, EndpointID: wire.Text(d.Endpoint)}
	if role.May(account.Manage) {
		v.URL = wire.Text(d.URL)
	}
	return v
}

// listWebhooks shows the endpoints, the key with which receivers of callbacks check deliveries, and
// the dead letters.
func (s *Server) listWebhooks(r *request) (answer, error) {
	p, err := r.ParsePage()
	if err != nil {
		return answer{}, err
	}
	key, err := s.Webhooks.CallbackKey(r.Context(), r.Who.Tenant)
	if err != nil {
		return answer{}, err
	}
	found, err := s.Webhooks.DeadLetters(r.Context(), r.Who.Tenant, webhook.ID(p.After), p.Limit+1)
	if err != nil {
		return answer{}, err
	}
	endpoints, err := s.endpointViews(r)
	if err != nil {
		return answer{}, err
	}
	body := wire.Webhooks{CallbackKey: describeCallbackKey(key), Endpoints: endpoints}
	body.DeadLetters, body.Next = edge.CutPage(p, found, func(d webhook.DeadLetter) string { return string(d.ID) },
		func(d webhook.DeadLetter) wire.DeadLetter {
			return describeDeadLetter(d, r.Who.Role)
		})
	return jsonAnswer(http.StatusOK, body), nil
}

func describeCallbackKey(k webhook.CallbackKey) wire.CallbackKey {
	return wire.CallbackKey{PublicKey: wire.Text(k.PublicKey), SigningKeyID: wire.Text(k.KeyID),
		FormerKeys: describeFormerKeys(k.Former)}
}

// rotateCallbackKey gives the organization a new key for callbacks. The former one signs next to it for overlap_hours.
func (s *Server) rotateCallbackKey(r *request) (answer, error) {
	overlap, err := decodeOverlap(r)
	if err != nil {
		return answer{}, err
	}
	rotated, err := s.Webhooks.RotateCallbackKey(r.Context(), r.Who.Tenant, string(r.Who.Account), overlap)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusOK, describeCallbackKey(rotated)), nil
}

func (s *Server) replayWebhook(r *request) (answer, error) {
	if err := r.DecodeOptionalBody(&struct{}{}); err != nil {
		return answer{}, err
	}
	return noContent(s.Webhooks.Replay(r.Context(), r.Who.Tenant, webhook.ID(r.PathParameter("webhook"))))
}
