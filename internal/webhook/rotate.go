package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
)

// Bounds of a rotation.
const (
	// DefaultOverlap is how long the previous keys sign in addition to the new ones.
	DefaultOverlap = 24 * time.Hour
	// MaxOverlap is the longest overlap that can be requested.
	MaxOverlap = 7 * 24 * time.Hour
	// maxFormer is the number of former key pairs that may sign at a time. A further rotation ends the oldest pair.
	maxFormer = 2
)

const (
	secretPrefix = "whsec_"
	secretSize   = 32 // bytes; Standard Webhooks allows 24 to 64
)

// signingKeys are the keys that sign deliveries to an endpoint: the private key for v1a, and the secret for v1, which the
// receiver has too. Endpoints that older programs created have no secret until their keys are rotated.
type signingKeys struct {
	Public string `json:"public"`           // base64 of 32 bytes
	Key    []byte `json:"key"`              // sealed
	Secret []byte `json:"secret,omitempty"` // sealed
}

// formerKeys are replaced keys that sign deliveries until a time.
type formerKeys struct {
	signingKeys
	Until id.Instant `json:"until"`
}

// newSigningKeys generates keys. It also returns the secret in the form for the receiver.
func (o *Sender) newSigningKeys(organization id.Organization) (k signingKeys, secret string, err error) {
	private := edkey.NewPrivate()
	seed := private.Seed()
	k.Public = private.Public().String()
	if k.Key, err = o.keyring.Seal(endpointContext(organization), seed[:]); err != nil {
		return k, "", fmt.Errorf("seal key of endpoint: %w", err)
	}
	var raw [secretSize]byte
	rand.Read(raw[:]) // never fails since Go 1.24
	if k.Secret, err = o.keyring.Seal(endpointContext(organization), raw[:]); err != nil {
		return k, "", fmt.Errorf("seal secret of endpoint: %w", err)
	}
	return k, secretPrefix + base64.StdEncoding.EncodeToString(raw[:]), nil
}

// RotateKeys gives an endpoint a new secret and a new key and states it (ledger_webhook_changed). The previous ones sign
// deliveries too for the duration of overlap, so that the receiver can switch over without losing a delivery. If overlap
// is 0, all former keys end at once. The result contains the new secret, which is shown only this once.
//
// It returns fault.Invalid if overlap is negative or longer than MaxOverlap, fault.NotFound if the organization has no
// such endpoint, and fault.RateLimited if changes follow each other too fast.
func (o *Sender) RotateKeys(
	ctx context.Context, t id.Tenant, principal string, name EndpointID, overlap time.Duration,
) (rotated Endpoint, err error) {
	if overlap < 0 || overlap > MaxOverlap {
		return Endpoint{}, fault.New(fault.Invalid, "overlap_hours must be a whole number from 0 to 168")
	}
	err = o.changeEndpoints(ctx, t, principal, func(s *log.State, r *endpointsRecord) (*statement, error) {
		at := r.indexOf(name)
		if at < 0 {
			return nil, errNoEndpoint()
		}
		e, now, organization := &r.Endpoints[at], o.currentTime(), s.Identity().Organization
		keys, secret, err := o.newSigningKeys(organization)
		if err != nil {
			return nil, err
		}
		former := append(e.signingFormer(now), formerKeys{e.signingKeys, now + id.Instant(overlap.Milliseconds())})
		if overlap == 0 {
			former = nil
		}
		e.Former, e.signingKeys = former[max(0, len(former)-maxFormer):], keys
		if rotated, err = o.toEndpoint(organization, e); err != nil {
			return nil, err
		}
		rotated.Secret = secret
		return &statement{kind: sysevent.WebhookChanged, paced: true, payload: map[string]any{
			"endpoint_id": name, "names": []string{"signing_key", "secret"}, "signing_key_id": rotated.KeyID,
		}}, nil
	})
	return rotated, err
}

// signingFormer returns the former keys that still sign at a time, oldest first.
func (e *endpointRecord) signingFormer(now id.Instant) []formerKeys {
	return slices.DeleteFunc(slices.Clone(e.Former), func(f formerKeys) bool { return now >= f.Until })
}

// signers returns the keys that sign at a time, newest first.
func (e *endpointRecord) signers(now id.Instant) []signingKeys {
	all := []signingKeys{e.signingKeys}
	for _, f := range slices.Backward(e.signingFormer(now)) {
		all = append(all, f.signingKeys)
	}
	return all
}

// sign returns the signatures of a text by one pair of keys in the form of the header: v1 with the secret, if there is
// one, and v1a with the key.
func (o *Sender) sign(k signingKeys, context string, text []byte) (signatures []string, err error) {
	if len(k.Secret) > 0 {
		secret, err := o.keyring.Open(context, k.Secret)
		if err != nil {
			return nil, fmt.Errorf("open webhook secret: %w", err)
		}
		mac := hmac.New(sha256.New, secret)
		mac.Write(text)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	seed, err := o.keyring.Open(context, k.Key)
	if err != nil {
		return nil, fmt.Errorf("open webhook key: %w", err)
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		return nil, fmt.Errorf("open webhook key: %w", err)
	}
	signature := private.Sign(text)
	return append(signatures, "v1a,"+base64.StdEncoding.EncodeToString(signature[:])), nil
}
