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
// receiver has too. Endpoints that older programs created have no secret until their keys are rotated. Callbacks never
// have one: all receivers of an organization's callbacks would share it, and each could forge callbacks to the others.
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

// newSigningKey generates a private key without a secret.
func (o *Sender) newSigningKey(context string) (k signingKeys, err error) {
	private := edkey.NewPrivate()
	seed := private.Seed()
	k.Public = private.Public().String()
	if k.Key, err = o.keyring.Seal(context, seed[:]); err != nil {
		return k, fmt.Errorf("seal webhook key: %w", err)
	}
	return k, nil
}

// newSigningKeys generates keys of an endpoint. It also returns the secret in the form for the receiver.
func (o *Sender) newSigningKeys(organization id.Organization) (k signingKeys, secret string, err error) {
	if k, err = o.newSigningKey(endpointContext(organization)); err != nil {
		return k, "", err
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
	if err := checkOverlap(overlap); err != nil {
		return Endpoint{}, err
	}
	err = o.changeEndpoints(ctx, t, principal, func(s *log.State, r *endpointsRecord) (*statement, error) {
		at := r.indexOf(name)
		if at < 0 {
			return nil, errNoEndpoint()
		}
		e, organization := &r.Endpoints[at], s.Identity().Organization
		keys, secret, err := o.newSigningKeys(organization)
		if err != nil {
			return nil, err
		}
		e.Former, e.signingKeys = addFormer(e.Former, e.signingKeys, o.currentTime(), overlap), keys
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

// RotateCallbackKey generates a new key that signs an organization's callbacks and records it (ledger_webhook_changed).
// The previous key signs too for the duration of overlap. If overlap is 0, all former keys end at once.
//
// It returns fault.Invalid if overlap is negative or longer than MaxOverlap, and fault.RateLimited if changes follow
// each other too fast.
func (o *Sender) RotateCallbackKey(
	ctx context.Context, t id.Tenant, principal string, overlap time.Duration,
) (rotated CallbackKey, err error) {
	if err := checkOverlap(overlap); err != nil {
		return CallbackKey{}, err
	}
	_, err = o.events.Append(ctx, t, principal, func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		stored, err := o.keys.Get(ctx, t, "")
		if err != nil {
			return sysevent.Change{}, err
		}
		made, err := o.newSigningKey(sealContext(s.Identity().Organization))
		if err != nil {
			return sysevent.Change{}, err
		}
		if r := &stored.Value; stored.Exists() {
			r.Former = addFormer(r.Former, r.current(), o.currentTime(), overlap)
		}
		stored.Value.Public, stored.Value.Sealed = made.Public, made.Key
		rotated = o.describeKey(&stored.Value)
		put, err := o.keys.Put(stored)
		if err != nil {
			return sysevent.Change{}, err
		}
		paced, err := o.countStatement(ctx, t)
		return sysevent.Change{
			Statements: []sysevent.Statement{{Kind: sysevent.WebhookChanged, Payload: map[string]any{
				"transition": "callback_key_rotated", "signing_key_id": rotated.KeyID,
			}}},
			Changes: append(paced, put),
		}, err
	})
	return rotated, err
}

func checkOverlap(overlap time.Duration) error {
	if overlap < 0 || overlap > MaxOverlap {
		return fault.New(fault.Invalid, "overlap_hours must be a whole number from 0 to 168")
	}
	return nil
}

// addFormer returns the former keys after a rotation that replaces the keys last.
func addFormer(former []formerKeys, last signingKeys, now id.Instant, overlap time.Duration) []formerKeys {
	if overlap == 0 {
		return nil
	}
	all := append(stillSigning(former, now), formerKeys{last, now + id.Instant(overlap.Milliseconds())})
	return all[max(0, len(all)-maxFormer):]
}

// stillSigning returns the former keys that sign at a time, oldest first.
func stillSigning(former []formerKeys, now id.Instant) []formerKeys {
	return slices.DeleteFunc(slices.Clone(former), func(f formerKeys) bool { return now >= f.Until })
}

// signersAt returns the keys that sign at a time, newest first.
func signersAt(current signingKeys, former []formerKeys, now id.Instant) []signingKeys {
	all := []signingKeys{current}
	for _, f := range slices.Backward(stillSigning(former, now)) {
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
