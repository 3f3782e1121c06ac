package factor

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/go-webauthn/webauthn/protocol/webauthncose"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// Signer is a passkey of an account as a signing key of package signedvote.
type Signer struct {
	signedvote.Credential
	Name string
}

// Signers returns the passkeys of an account that can sign votes. It returns nil if the service does not support
// passkeys.
func (f *Factors) Signers(ctx context.Context, who account.ID) ([]Signer, error) {
	r, err := f.readFactors(ctx, who)
	if err != nil || f.party == nil {
		return nil, err
	}
	var all []Signer
	for _, k := range r.Value.Passkeys {
		key, err := parseCOSE(k.PublicKey)
		if err != nil {
			continue // its algorithm is not allowed for votes
		}
		all = append(all, Signer{signedvote.Credential{ID: k.Credential, Key: key, RPID: f.party.Config.RPID,
			WebOrigin: f.party.Config.RPOrigins[0]}, k.Name})
	}
	return all, nil
}

// Signer returns the passkey of an account with a credential ID, or fault.NotFound.
func (f *Factors) Signer(ctx context.Context, who account.ID, credential []byte) (Signer, error) {
	all, err := f.Signers(ctx, who)
	if err != nil {
		return Signer{}, err
	}
	at := slices.IndexFunc(all, func(s Signer) bool { return bytes.Equal(s.ID, credential) })
	if at < 0 {
		return Signer{}, fault.New(fault.NotFound, "Not found")
	}
	return all[at], nil
}

// parseCOSE returns the key in a COSE key (RFC 9053).
func parseCOSE(cose []byte) (signedvote.Key, error) {
	parsed, err := webauthncose.ParsePublicKey(cose)
	if err != nil {
		return signedvote.Key{}, fmt.Errorf("public key: %w", err)
	}
	var public crypto.PublicKey
	switch k := parsed.(type) {
	case webauthncose.EC2PublicKeyData:
		public, err = ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, k.XCoord, k.YCoord))
		if err != nil {
			return signedvote.Key{}, fmt.Errorf("public key: %w", err)
		}
	case webauthncose.OKPPublicKeyData:
		public = ed25519.PublicKey(k.XCoord)
	case webauthncose.RSAPublicKeyData:
		public = &rsa.PublicKey{N: new(big.Int).SetBytes(k.Modulus), E: int(new(big.Int).SetBytes(k.Exponent).Int64())}
	}
	return signedvote.NewKey(public)
}

// UseAssertion records the use of a passkey for a verified signature, with the rules of a sign-in: the counter must
// increase, and a backup-eligible passkey must remain so. If the counter does not increase, it returns
// fault.Unauthorized and adds a login event.
func (f *Factors) UseAssertion(ctx context.Context, who account.ID, a *signedvote.Assertion, v account.Visit) error {
	eligible, backedUp := a.Backup()
	for range attempts {
		r, err := f.readFactors(ctx, who)
		if err != nil {
			return err
		}
		r.Value.Passkeys = slices.Clone(r.Value.Passkeys)
		at := slices.IndexFunc(r.Value.Passkeys, func(k passkey) bool { return bytes.Equal(k.Credential, a.CredentialID) })
		if at < 0 {
			return Refuse(errors.New("credential is not the account's"))
		}
		k := &r.Value.Passkeys[at]
		if k.Eligible && !eligible {
			return Refuse(errors.New("the backup-eligible flag is missing"))
		}
		if counter := a.Counter(); counter <= k.Counter && (counter != 0 || k.Counter != 0) {
			return f.refuseCopy(ctx, who, v)
		}
		k.Counter, k.UsedAt, k.Eligible, k.BackedUp = a.Counter(), f.currentTime(), eligible, backedUp
		stale, err := f.putFactors(ctx, r)
		if err != nil || !stale {
			return err
		}
	}
	return errBusy()
}

func (f *Factors) putFactors(ctx context.Context, r records.Versioned[factorsRecord]) (stale bool, err error) {
	stored, err := f.factors.Put(r)
	if err != nil {
		return false, fmt.Errorf("use passkey: %w", err)
	}
	return f.writeChanges(ctx, "use passkey", []storage.Change{stored})
}
