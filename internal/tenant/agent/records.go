package agent

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Records of an organization's partition.
const (
	// kindAgent has one record for each agent, by agent ID.
	kindAgent storage.Kind = "agent"
	// kindKey has one record for each key, by agent ID, "/" and key ID. IDs contain no "/", so an agent's keys are
	// one range.
	kindKey storage.Kind = "agent_key"
	// kindUsed has one record for each used name, see usedKeyRecord and usedPublicRecord.
	kindUsed storage.Kind = "agent_key_used"
)

func keyRecordKey(a id.Agent, k id.Key) string { return string(a) + "/" + string(k) }

func usedKeyRecord(k id.Key) string      { return "id/" + string(k) }
func usedPublicRecord(p [32]byte) string { return "public/" + publicKeyName(p) }
func publicKeyName(p [32]byte) string    { return hex.EncodeToString(p[:]) }

type agentRecord struct {
	DisplayName string     `json:"display_name,omitzero"`
	CreatedAt   id.Instant `json:"created_at"`
	CreatedBy   string     `json:"created_by"`
	Bridge      bool       `json:"bridge,omitzero"`
	Inactive    bool       `json:"inactive,omitzero"`
}

type keyRecord struct {
	KeyID           id.Key        `json:"key_id"`
	PublicKey       string        `json:"public_key"` // Multikey
	Custody         event.Custody `json:"custody"`
	Status          Status        `json:"status"`
	Order           uint64        `json:"order"`
	RegisteredAt    id.Instant    `json:"registered_at"`
	RegisteredBy    string        `json:"registered_by,omitzero"`
	EndedAt         id.Instant    `json:"ended_at,omitzero"`
	CompromisedFrom *id.Index     `json:"compromised_from,omitzero"`
	Reason          string        `json:"reason,omitzero"`
}

// storedKey is a key with the members that only its record has.
type storedKey struct {
	Key
	// order is the config version under which the key was registered. It determines the order of an agent's keys, for
	// which clocks are not reliable.
	order   uint64
	version uint64 // of the record
}

func (k *storedKey) encodeChange() (storage.Change, error) {
	value, err := json.Marshal(keyRecord{
		KeyID: k.ID, PublicKey: did.Multikey(k.Public.Bytes()), Custody: k.Custody, Status: k.Status, Order: k.order,
		RegisteredAt: k.RegisteredAt, RegisteredBy: k.RegisteredBy,
		EndedAt: k.EndedAt, CompromisedFrom: k.CompromisedFrom, Reason: k.Reason,
	})
	if err != nil {
		return storage.Change{}, fmt.Errorf("encode key: %w", err)
	}
	return storage.Change{Kind: kindKey, Key: keyRecordKey(k.Agent, k.ID), Value: value, If: k.version}, nil
}

// decodeKeyRecord decodes a key's record. The public key was validated when it was registered, and is not validated
// again, because an agent may have a thousand keys.
func decodeKeyRecord(a id.Agent, r storage.Record) (storedKey, error) {
	var stored keyRecord
	if err := json.Unmarshal(r.Value, &stored); err != nil {
		return storedKey{}, fmt.Errorf("decode key: %w", err)
	}
	b, err := did.ParseMultikey(stored.PublicKey)
	if err != nil {
		return storedKey{}, fmt.Errorf("decode key: %w", err)
	}
	return storedKey{order: stored.Order, version: r.Version, Key: Key{
		Agent: a, ID: stored.KeyID, Public: edkey.Stored(b),
		Multikey: stored.PublicKey, Custody: stored.Custody, Status: stored.Status,
		RegisteredAt: stored.RegisteredAt, RegisteredBy: stored.RegisteredBy,
		EndedAt: stored.EndedAt, CompromisedFrom: stored.CompromisedFrom, Reason: stored.Reason,
	}}, nil
}

// encodeAgent returns the change that writes an agent. version is the version of its record, or 0 for a new one.
func encodeAgent(a Agent, version uint64) (storage.Change, error) {
	value, err := json.Marshal(agentRecord{
		DisplayName: a.DisplayName,
		CreatedAt:   a.CreatedAt,
		CreatedBy:   a.CreatedBy,
		Bridge:      a.Bridge,
		Inactive:    a.Inactive,
	})
	if err != nil {
		return storage.Change{}, fmt.Errorf("encode agent: %w", err)
	}
	return storage.Change{Kind: kindAgent, Key: string(a.ID), Value: value, If: version}, nil
}

func decodeAgentRecord(r storage.Record) (Agent, error) {
	var stored agentRecord
	if err := json.Unmarshal(r.Value, &stored); err != nil {
		return Agent{}, fmt.Errorf("decode agent: %w", err)
	}
	return Agent{
		ID:          id.Agent(r.Key),
		DisplayName: stored.DisplayName,
		CreatedAt:   stored.CreatedAt,
		CreatedBy:   stored.CreatedBy,
		Bridge:      stored.Bridge,
		Inactive:    stored.Inactive,
	}, nil
}

// recordExists reports whether a record exists.
func (a *Agents) recordExists(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (bool, error) {
	_, err := a.records.Get(ctx, t, kind, key)
	if isAbsent(err) {
		return false, nil
	}
	if err != nil {
		return false, errUnreadable("look up "+string(kind), err)
	}
	return true, nil
}

// readKey reads a key for verifying signatures, so it validates the public key again. It returns fault.NotFound if
// the agent has no such key.
func (a *Agents) readKey(ctx context.Context, t id.Tenant, agent id.Agent, key id.Key) (storedKey, error) {
	r, err := a.records.Get(ctx, t, kindKey, keyRecordKey(agent, key))
	if isAbsent(err) {
		return storedKey{}, errNotFound()
	}
	if err != nil {
		return storedKey{}, errUnreadable("read key", err)
	}
	k, err := decodeKeyRecord(agent, r)
	if err == nil {
		public := k.Public.Bytes()
		_, err = edkey.ParsePublic(public[:])
	}
	if err != nil {
		return storedKey{}, errUnreadable("read key", err)
	}
	return k, nil
}
