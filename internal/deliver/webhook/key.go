package webhook

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/storage"
)

// kindKey has one record in an organization's partition, under the key "", since its first delivery.
const kindKey storage.Kind = "webhook_key"

type keyRecord struct {
	Public string       `json:"public"` // base64 of 32 bytes
	Sealed []byte       `json:"sealed"`
	Former []formerKeys `json:"former,omitempty"` // oldest first
}

func sealContext(o id.Organization) string { return "webhook-key\n" + o.String() }

// SealedKey describes the record with the keys that sign an organization's callbacks.
func SealedKey() seal.Record {
	return seal.RecordOf(kindKey, "webhook key", seal.ForOrganization(sealContext),
		func(r *keyRecord) []*[]byte { return append([]*[]byte{&r.Sealed}, sealedFormer(r.Former)...) })
}

// publicPrefix is the prefix of public keys in Standard Webhooks.
const publicPrefix = "whpk_"

// CallbackKey is the key that signs an organization's callbacks. The zero value means that there is none: the key is
// generated for the first callback or by a rotation.
type CallbackKey struct {
	KeyID     string
	PublicKey string      // whpk_ and base64 of 32 bytes
	Former    []FormerKey // still sign, oldest first
}

// CallbackKey returns the key that signs an organization's callbacks.
func (o *Sender) CallbackKey(ctx context.Context, t id.Tenant) (CallbackKey, error) {
	r, err := o.readKey(ctx, t)
	if err != nil || r == nil {
		return CallbackKey{}, err
	}
	return o.describeKey(r), nil
}

func (o *Sender) describeKey(r *keyRecord) CallbackKey {
	return CallbackKey{KeyID: keyIDFor(r.Public), PublicKey: publicPrefix + r.Public,
		Former: describeFormer(stillSigning(r.Former, o.currentTime()))}
}

// current returns the only key that signs after the former keys have expired.
func (r *keyRecord) current() signingKeys { return signingKeys{Public: r.Public, Key: r.Sealed} }

// readKey returns nil if there is no key yet.
func (o *Sender) readKey(ctx context.Context, t id.Tenant) (*keyRecord, error) {
	r, err := o.keys.Get(ctx, t, "")
	if err != nil || !r.Exists() {
		return nil, err
	}
	return &r.Value, nil
}

// loadOrMakeKey returns the change that creates the organization's key, or none if the key exists.
func (o *Sender) loadOrMakeKey(
	ctx context.Context, t id.Tenant, organization id.Organization,
) ([]storage.Change, error) {
	if r, err := o.readKey(ctx, t); err != nil || r != nil {
		return nil, err
	}
	made, err := o.newSigningKey(sealContext(organization))
	if err != nil {
		return nil, err
	}
	change, err := o.keys.Put(records.Versioned[keyRecord]{Value: keyRecord{Public: made.Public, Sealed: made.Key}})
	return []storage.Change{change}, err
}

// callbackTarget returns the target of a callback.
func (o *Sender) callbackTarget(ctx context.Context, t id.Tenant, d *delivery) (target, error) {
	r, err := o.readKey(ctx, t)
	if err != nil {
		return target{}, err
	}
	if r == nil {
		return target{}, errUnreadable("read webhook key", storage.ErrNotFound)
	}
	return target{url: d.URL, keys: signersAt(r.current(), r.Former, o.currentTime()),
		context: sealContext(d.Organization), keyID: keyIDFor(r.Public)}, nil
}

// signatureHeader signs one attempt of a delivery. A receiver accepts the delivery if it knows the key of one
// signature.
func (o *Sender) signatureHeader(to target, name ID, d *delivery, now time.Time) (http.Header, error) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	text := fmt.Appendf(nil, "%s.%s.%s", name, timestamp, d.Body)
	var signatures []string
	for _, k := range to.keys {
		signed, err := o.sign(k, to.context, text)
		if err != nil {
			return nil, err
		}
		signatures = append(signatures, signed...)
	}
	return http.Header{
		"Content-Type":      {"application/json"},
		"User-Agent":        {"agentledger"},
		"Webhook-Id":        {string(name)},
		"Webhook-Timestamp": {timestamp},
		"Webhook-Signature": {strings.Join(signatures, " ")},
		"Webhook-Key-Id":    {to.keyID},
	}, nil
}
