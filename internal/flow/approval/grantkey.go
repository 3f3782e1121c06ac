package approval

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// kindGrantKey has one record in an organization's partition, under the key "", since its first grant.
const kindGrantKey storage.Kind = "grant_key"

type grantKeyRecord struct {
	VerifierKey string   `json:"vkey"`
	FromSize    id.Index `json:"from_size"`
	Sealed      []byte   `json:"sealed"`
}

func sealContext(o id.Organization) string { return "grant-key\n" + o.String() }

// grantKeys contains the grant keys of all organizations. Its methods may be called concurrently.
type grantKeys struct {
	store   records.Store[grantKeyRecord]
	keyring *seal.Keyring
}

// newGrantKeys returns the grant keys of a store. unreadable is the message for clients if a key cannot be read.
func newGrantKeys(r storage.RecordStore, keyring *seal.Keyring, unreadable string) grantKeys {
	return grantKeys{records.New[grantKeyRecord](r, kindGrantKey, unreadable), keyring}
}

// SealedGrantKey describes the record with an organization's grant key.
func SealedGrantKey() seal.Record {
	return seal.RecordOf(kindGrantKey, "grant key", seal.ForOrganization(sealContext),
		func(r *grantKeyRecord) []*[]byte { return []*[]byte{&r.Sealed} })
}

// Find returns the key that signs an organization's grants and the size of the log when it was generated. ok is false
// before the first grant.
func (k grantKeys) Find(ctx context.Context, t id.Tenant) (key tlog.VerifierKey, from id.Index, ok bool, err error) {
	r, err := k.store.Get(ctx, t, "")
	if err != nil || r.Version == 0 {
		return key, 0, false, err
	}
	key, err = tlog.ParseVerifierKey(r.Value.VerifierKey)
	if err != nil {
		return key, 0, false, records.Unreadable(k.store.Message, "read grant key", err)
	}
	return key, r.Value.FromSize, true, nil
}

// Signer returns the key that signs grants. For the first grant, it generates the key and adds its record and statement
// to act.
func (k grantKeys) Signer(ctx context.Context, s *log.State, act *sysevent.Change) (tlog.SignerKey, error) {
	identity := s.Identity()
	r, err := k.store.Get(ctx, identity.Tenant, "")
	if err != nil {
		return tlog.SignerKey{}, err
	}
	if !r.Exists() {
		return k.makeSigner(s, act)
	}
	seed, err := k.keyring.Open(sealContext(identity.Organization), r.Value.Sealed)
	if err != nil {
		return tlog.SignerKey{}, fmt.Errorf("open grant key: %w", err)
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		return tlog.SignerKey{}, fmt.Errorf("open grant key: %w", err)
	}
	return tlog.NewSignerKey(grant.KeyName(identity.Origin), private)
}

func (k grantKeys) makeSigner(s *log.State, act *sysevent.Change) (tlog.SignerKey, error) {
	identity := s.Identity()
	private := edkey.NewPrivate()
	signer, err := tlog.NewSignerKey(grant.KeyName(identity.Origin), private)
	if err != nil {
		return tlog.SignerKey{}, fmt.Errorf("generate grant key: %w", err)
	}
	seed := private.Seed()
	sealed, err := k.keyring.Seal(sealContext(identity.Organization), seed[:])
	if err != nil {
		return tlog.SignerKey{}, fmt.Errorf("generate grant key: %w", err)
	}
	stored, err := k.store.Put(records.Versioned[grantKeyRecord]{Value: grantKeyRecord{
		VerifierKey: signer.Verifier().String(),
		FromSize:    s.Size(),
		Sealed:      sealed,
	}})
	if err != nil {
		return tlog.SignerKey{}, fmt.Errorf("generate grant key: %w", err)
	}
	act.Changes = append(act.Changes, stored)
	act.Statements = append(act.Statements, sysevent.Statement{
		Kind:      sysevent.LogKey,
		Principal: sysevent.Operator,
		Payload: map[string]any{
			"vkey": signer.Verifier().String(), "transition": "grant_key_created",
		},
	})
	return signer, nil
}

// BelongsToLog reports whether records of a kind belong to one log. They are not copied to its successor, whose grants
// are signed under another name.
func BelongsToLog(kind storage.Kind) bool { return kind == kindGrantKey }
