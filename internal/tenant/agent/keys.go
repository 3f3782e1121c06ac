package agent

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
)

// Registration is a public key that a client brings.
type Registration struct {
	KeyID     id.Key // "": made by the service
	PublicKey string // base64 of 32 bytes
	Proof     string // base64 of the signature of ProofMessage
}

// ProofMessage returns the text that the holder of a private key signs to have the public
// half registered:
//
//	APS1-KEY LF organization_id LF agent_id LF key_id LF public_key_b64 LF
//
// Who leaves the key id to the service signs with an empty key_id line. Such a
// proof is good for no chosen key id, and the other way round.
func ProofMessage(o id.Organization, a id.Agent, k id.Key, public edkey.Public) []byte {
	return fmt.Appendf(nil, "APS1-KEY\n%s\n%s\n%s\n%s\n", o, a, k, public)
}

// RegisterKey gives an agent another key.
//
// fault.Invalid for a malformed registration, a public key that package edkey
// does not accept, and a proof that is not its; fault.NotFound for an agent that
// the organization does not have; fault.Conflict for a public key or key id that
// was ever used in it, and for an agent that has MaxActiveKeys or MaxKeys already;
// fault.RateLimited for changes that come too fast.
func (a *Agents) RegisterKey(
	ctx context.Context, t id.Tenant, principal string, agent id.Agent, r Registration,
) (Key, error) {
	public, proof, err := r.parseMembers()
	if err != nil {
		return Key{}, err
	}
	k := storedKey{Key: Key{
		Agent:        agent,
		ID:           r.KeyID,
		Public:       public,
		Multikey:     did.Multikey(public.Bytes()),
		Custody:      event.CustodyAgent,
		Status:       Active,
		RegisteredAt: a.currentTime(),
		RegisteredBy: principal,
	}}
	if k.ID == "" {
		k.ID = newKeyID()
	}
	_, err = a.events.Append(ctx, t, principal, func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		if err := a.requireAgent(ctx, t, agent); err != nil {
			return sysevent.Change{}, err
		}
		if strings.HasPrefix(string(agent), bridgePrefix) {
			return sysevent.Change{}, fault.New(fault.Invalid, "The keys of a bridge agent are made by the service")
		}
		if !public.Verify(ProofMessage(s.Identity().Organization, agent, r.KeyID, public), proof) {
			return sysevent.Change{}, errNoPossession()
		}
		if err := a.checkUnused(ctx, t, &k.Key); err != nil {
			return sysevent.Change{}, err
		}
		if err := a.checkRoomForKey(ctx, t, agent); err != nil {
			return sysevent.Change{}, err
		}
		paced, err := a.quota.CountStatement(ctx, t)
		if err != nil {
			return sysevent.Change{}, err
		}
		k.order = s.ConfigVersion()
		changes, err := a.makeKeyChanges(ctx, t, &k)
		return sysevent.Change{
			Statements: []sysevent.Statement{{Kind: sysevent.KeyRegistered, Payload: k.statementPayload()}},
			Changes:    append(changes, paced...),
		}, err
	})
	if err != nil {
		return Key{}, fmt.Errorf("register key: %w", err)
	}
	return k.Key, nil
}

func errNoPossession() error {
	return fault.New(fault.Invalid, "proof_b64 does not prove possession of the key")
}

func (r *Registration) parseMembers() (public edkey.Public, proof []byte, err error) {
	if r.KeyID != "" {
		if err := checkKeyID(r.KeyID); err != nil {
			return public, nil, err
		}
	}
	b, ok := decodeBase64(r.PublicKey, edkey.PublicSize)
	if !ok {
		return public, nil, fault.New(fault.Invalid, "public_key_b64 must be the base64 of 32 bytes")
	}
	if public, err = edkey.ParsePublic(b); err != nil {
		return public, nil, fault.Wrap(fault.Invalid, "public_key_b64 is not an acceptable Ed25519 public key", err)
	}
	if proof, ok = decodeBase64(r.Proof, edkey.SignatureSize); !ok {
		return public, nil, fault.New(fault.Invalid, "proof_b64 must be the base64 of 64 bytes")
	}
	return public, proof, nil
}

// decodeBase64 reads the one standard encoding of size bytes.
func decodeBase64(s string, size int) ([]byte, bool) {
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	return b, err == nil && len(b) == size && base64.StdEncoding.EncodeToString(b) == s
}

func (a *Agents) requireAgent(ctx context.Context, t id.Tenant, agent id.Agent) error {
	known, err := a.recordExists(ctx, t, kindAgent, string(agent))
	if err == nil && !known {
		return errNotFound()
	}
	return err
}

// checkUnused returns fault.Conflict when a name of the key was used before.
func (a *Agents) checkUnused(ctx context.Context, t id.Tenant, k *Key) error {
	for _, name := range []struct{ used, message string }{
		{usedKeyRecord(k.ID), "key_id was used before"},
		{usedPublicRecord(k.Public.Bytes()), "The public key was used before"},
	} {
		known, err := a.recordExists(ctx, t, kindUsed, name.used)
		if err != nil {
			return err
		}
		if known {
			return fault.New(fault.Conflict, name.message)
		}
	}
	return nil
}

// statementPayload is the payload of statements about the key.
func (k *Key) statementPayload() map[string]any {
	return map[string]any{
		"agent_id":   k.Agent,
		"key_id":     k.ID,
		"public_key": did.Multikey(k.Public.Bytes()),
		"custody":    k.Custody,
	}
}
