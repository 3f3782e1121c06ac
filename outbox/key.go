package outbox

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/edkey"
	"github.com/agentledger/agentledger/storage"
)

// kindKey has one record in an organization's partition, under key "", from its
// first delivery on.
const kindKey storage.Kind = "webhook_key"

type keyRecord struct {
	Public string `json:"public"` // base64 of 32 bytes
	Sealed []byte `json:"sealed"`
}

func sealContext(o id.Organization) string { return "webhook-key\n" + o.String() }

// publicPrefix is how Standard Webhooks writes public keys.
const publicPrefix = "whpk_"

// PublicKey returns the key that signs an organization's deliveries, whpk_ and
// base64 of 32 bytes; "" before its first delivery.
func (o *Outbox) PublicKey(ctx context.Context, t id.Tenant) (string, error) {
	r, err := o.key(ctx, t)
	if err != nil || r == nil {
		return "", err
	}
	return publicPrefix + r.Public, nil
}

// key returns nil when there is none yet.
func (o *Outbox) key(ctx context.Context, t id.Tenant) (*keyRecord, error) {
	r, err := o.records.Get(ctx, t, kindKey, "")
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	var stored keyRecord
	if err == nil {
		err = json.Unmarshal(r.Value, &stored)
	}
	if err != nil {
		return nil, unreadable("read webhook key", err)
	}
	return &stored, nil
}

// needKey returns the record that makes the organization's key, nothing when it
// has one.
func (o *Outbox) needKey(ctx context.Context, t id.Tenant, organization id.Organization) ([]storage.Change, error) {
	if r, err := o.key(ctx, t); err != nil || r != nil {
		return nil, err
	}
	private := edkey.NewPrivate()
	seed := private.Seed()
	sealed, err := o.keyring.Seal(sealContext(organization), seed[:])
	if err != nil {
		return nil, fmt.Errorf("make webhook key: %w", err)
	}
	value, err := json.Marshal(keyRecord{Public: private.Public().String(), Sealed: sealed})
	if err != nil {
		return nil, fmt.Errorf("make webhook key: %w", err)
	}
	return []storage.Change{{Kind: kindKey, Value: value}}, nil
}

// header signs one try of a delivery.
func (o *Outbox) header(ctx context.Context, t id.Tenant, name ID, d *delivery, now time.Time) (http.Header, error) {
	r, err := o.key(ctx, t)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, unreadable("read webhook key", storage.ErrNotFound)
	}
	seed, err := o.keyring.Open(sealContext(d.Organization), r.Sealed)
	if err != nil {
		return nil, fmt.Errorf("open webhook key: %w", err)
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		return nil, fmt.Errorf("open webhook key: %w", err)
	}
	timestamp := strconv.FormatInt(now.Unix(), 10)
	signature := private.Sign(fmt.Appendf(nil, "%s.%s.%s", name, timestamp, d.Body))
	return http.Header{
		"Content-Type":      {"application/json"},
		"User-Agent":        {"agentledger"},
		"Webhook-Id":        {string(name)},
		"Webhook-Timestamp": {timestamp},
		"Webhook-Signature": {"v1a," + base64.StdEncoding.EncodeToString(signature[:])},
	}, nil
}
