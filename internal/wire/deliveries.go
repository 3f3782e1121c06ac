package wire

import "github.com/agentledger/agentledger/id"

// Endpoint is a webhook endpoint.
type Endpoint struct {
	EndpointID     string      `json:"endpoint_id"`
	Name           string      `json:"name"`
	URL            Text        `json:"url"` // null for roles that may not change it, because it may contain a secret
	Events         []string    `json:"events"`
	Tools          []string    `json:"tools"`  // empty: all
	Agents         []id.Agent  `json:"agents"` // empty: all
	Format         string      `json:"format"`
	State          string      `json:"state"` // active or disabled
	DisabledReason Text        `json:"disabled_reason"`
	FailingSince   Time        `json:"failing_since"`
	SigningKeyID   string      `json:"signing_key_id"`
	PublicKey      string      `json:"public_key"`
	HasSlackSecret bool        `json:"has_slack_signing_secret,omitzero"`
	HasSecret      bool        `json:"has_secret"`
	Secret         string      `json:"secret,omitzero"` // only in the answer to the call that generated it
	FormerKeys     []FormerKey `json:"former_keys"`     // that still sign
	CreatedAt      id.Instant  `json:"created_at"`
	CreatedBy      string      `json:"created_by"`
}

// Title returns the name of the endpoint, or its ID if it has no name.
func (e Endpoint) Title() string {
	if e.Name != "" {
		return e.Name
	}
	return e.EndpointID
}

// FormerKey is a key that was rotated out and still signs.
type FormerKey struct {
	SigningKeyID string     `json:"signing_key_id"`
	PublicKey    string     `json:"public_key"`
	Until        id.Instant `json:"until"`
}

// CallbackKey is the key that signs callbacks.
type CallbackKey struct {
	PublicKey    Text        `json:"public_key"` // null before the first callback
	SigningKeyID Text        `json:"signing_key_id"`
	FormerKeys   []FormerKey `json:"former_keys"` // that still sign
}

// Webhooks are the endpoints, the callback key and a page of the dead letters.
type Webhooks struct {
	CallbackKey `json:",inline"`
	Endpoints   []Endpoint   `json:"endpoints"`
	DeadLetters []DeadLetter `json:"dead_letters"`
	Next        Text         `json:"next"`
}

// DeadLetter is a delivery that was given up. Its body is not shown, because the ledger contains its event.
type DeadLetter struct {
	WebhookID  string     `json:"webhook_id"`
	URL        Text       `json:"url"` // null for roles that may not change it
	EndpointID Text       `json:"endpoint_id"`
	Type       string     `json:"type"`
	CreatedAt  id.Instant `json:"created_at"`
	GivenUpAt  id.Instant `json:"given_up_at"`
	Tries      int        `json:"tries"`
	Failure    string     `json:"trouble"`
}

// Attempt is one attempt to deliver to an endpoint.
type Attempt struct {
	DeliveryID string     `json:"delivery_id"`
	Type       string     `json:"type"`
	At         id.Instant `json:"at"`
	Try        int        `json:"try"`
	Status     Number     `json:"status"` // null: no answer
	DurationMS *int64     `json:"duration_ms"`
	Failure    Text       `json:"trouble"` // null: delivered
}

// Attempts is a page of the latest attempts of an endpoint.
type Attempts struct {
	Deliveries []Attempt `json:"deliveries"`
	Next       Text      `json:"next"`
}

// StreamExport is the organization's export of events.
type StreamExport struct {
	URL          Text              `json:"url"`          // null for roles that may not change it
	HeaderNames  []string          `json:"header_names"` // values are never shown
	Format       string            `json:"format"`
	Encoding     string            `json:"encoding"`
	Payloads     bool              `json:"payloads"`
	Active       bool              `json:"active"`
	State        string            `json:"state"` // current, behind, failing or paused
	Position     id.Index          `json:"position"`
	Origin       id.Origin         `json:"origin"`
	Lag          StreamLag         `json:"lag"`
	Sent         uint64            `json:"sent"`
	Rejected     uint64            `json:"rejected"`
	SuccessAt    Time              `json:"success_at"`
	FailingSince Time              `json:"failing_since"`
	NextTryAt    *id.Instant       `json:"next_try_at"`
	LastTry      *StreamTry        `json:"last_try"`
	Test         *StreamExportTest `json:"test"`
	ChangedAt    id.Instant        `json:"changed_at"`
	ChangedBy    string            `json:"changed_by"`
}

// StreamLag is how far the export is behind the ledger.
type StreamLag struct {
	Events         id.Index `json:"events"`
	OldestReceived Time     `json:"oldest_received_at"` // null if there is no backlog
	Seconds        float64  `json:"seconds"`
}

// StreamTry is one request to the receiver.
type StreamTry struct {
	At      id.Instant `json:"at"`
	Status  Number     `json:"status"`  // null: no answer
	Failure Text       `json:"trouble"` // null: accepted
}

// StreamExportTest is the latest test delivery.
type StreamExportTest struct {
	AskedAt id.Instant `json:"asked_at"`
	Try     *StreamTry `json:"try"` // nil while it waits
}
