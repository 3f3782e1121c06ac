package console

import (
	"net/http"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// deadLetterView is a delivery that was given up. Its body is not shown, because the
// ledger holds its event.
type deadLetterView struct {
	ID        webhook.ID `json:"webhook_id"`
	URL       *string    `json:"url"` // null for roles that may not change it, because it may hold a secret
	Endpoint  *string    `json:"endpoint_id"`
	Type      string     `json:"type"`
	CreatedAt id.Instant `json:"created_at"`
	GivenUpAt id.Instant `json:"given_up_at"`
	Tries     int        `json:"tries"`
	Trouble   string     `json:"trouble"`
}

func describeDeadLetter(d webhook.DeadLetter, role account.Role) deadLetterView {
	v := deadLetterView{ID: d.ID, Type: d.Type, CreatedAt: d.CreatedAt, GivenUpAt: d.GivenUpAt, Tries: d.Tries,
		Trouble: d.Trouble, Endpoint: orNull(string(d.Endpoint))}
	if role.May(account.Manage) {
		v.URL = orNull(d.URL)
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
	var body struct {
		callbackKeyView
		Endpoints   []endpointView   `json:"endpoints"`
		DeadLetters []deadLetterView `json:"dead_letters"`
		Next        *string          `json:"next"`
	}
	body.callbackKeyView, body.Endpoints = describeCallbackKey(key), endpoints
	body.DeadLetters, body.Next = edge.CutPage(p, found, func(d webhook.DeadLetter) string { return string(d.ID) },
		func(d webhook.DeadLetter) deadLetterView {
			return describeDeadLetter(d, r.Who.Role)
		})
	return jsonAnswer(http.StatusOK, body), nil
}

// callbackKeyView is the key that signs callbacks.
type callbackKeyView struct {
	PublicKey *string             `json:"public_key"` // null before the first callback
	KeyID     *string             `json:"signing_key_id"`
	Former    []webhook.FormerKey `json:"former_keys"` // that still sign
}

func describeCallbackKey(k webhook.CallbackKey) callbackKeyView {
	return callbackKeyView{orNull(k.PublicKey), orNull(k.KeyID), slices.Concat([]webhook.FormerKey{}, k.Former)}
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
