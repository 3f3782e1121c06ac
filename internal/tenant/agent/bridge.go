package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// bridgePrefix is the prefix of the names of bridge agents and their keys. Requests cannot use such names.
const bridgePrefix = "bridge_"

// kindBridge has one record in an organization's partition, under key "", once the bridge was used: its bridge agent
// and the agent's latest key.
const kindBridge storage.Kind = "bridge_key"

type bridgeRecord struct {
	Agent  id.Agent `json:"agent_id"`
	KeyID  id.Key   `json:"key_id"`
	Sealed []byte   `json:"sealed"`
}

func bridgeSealContext(o id.Organization) string { return "bridge-key\n" + o.String() }

// SealedBridgeKey describes the record of an organization's bridge key.
func SealedBridgeKey() seal.Record {
	return seal.RecordOf(kindBridge, "bridge key", seal.ForOrganization(bridgeSealContext),
		func(r *bridgeRecord) []*[]byte { return []*[]byte{&r.Sealed} })
}

// Bridge is the key with which the service signs for tools that have no key. It belongs to the organization's bridge
// agent, whichever agent the tool acts for. It is immutable. fmt and slog do not print the private key.
type Bridge struct {
	Agent   id.Agent
	Key     Key
	Private edkey.Private
}

// LogValue implements slog.LogValuer. It contains only the key ID.
func (b *Bridge) LogValue() slog.Value { return slog.StringValue("bridge with " + string(b.Key.ID)) }

// bridgeName is the cache key of a fact about the bridge at one config version: whether an agent may use it or, if
// agent is "", the signing key.
type bridgeName struct {
	tenant  id.Tenant
	version uint64
	agent   id.Agent
}

type bridgeEntry struct {
	bridge  *Bridge // nil if there is no active key
	bridged bool
	off     bool // Agent.Inactive
}

// Bridge returns the key that signs for tools, as of the config version of s or later. It returns nil if the
// organization has no bridge key yet or its key is not active.
func (a *Agents) Bridge(ctx context.Context, s *log.State) (*Bridge, error) {
	name := bridgeName{tenant: s.Identity().Tenant, version: s.ConfigVersion()}
	e, err := a.bridges.Get(ctx, name, func(ctx context.Context) (bridgeEntry, error) {
		b, err := a.readBridge(ctx, s.Identity())
		return bridgeEntry{bridge: b}, err
	})
	return e.bridge, err
}

// MayUseBridge reports whether the bridge may act for an agent, as of the config version of s or later. It returns
// false if the organization does not have the agent, and ErrInactive if the agent is deactivated.
func (a *Agents) MayUseBridge(ctx context.Context, s *log.State, agent id.Agent) (bool, error) {
	e, err := a.readBridgeEntry(ctx, s, agent)
	if err == nil && e.off {
		err = ErrInactive()
	}
	return e.bridged, err
}

// CheckActive returns ErrInactive if an agent is deactivated, as of the config version of s or later. It returns nil
// if the organization does not have the agent.
func (a *Agents) CheckActive(ctx context.Context, s *log.State, agent id.Agent) error {
	e, err := a.readBridgeEntry(ctx, s, agent)
	if err == nil && e.off {
		err = ErrInactive()
	}
	return err
}

func (a *Agents) readBridgeEntry(ctx context.Context, s *log.State, agent id.Agent) (bridgeEntry, error) {
	name := bridgeName{tenant: s.Identity().Tenant, version: s.ConfigVersion(), agent: agent}
	return a.bridges.Get(ctx, name, func(ctx context.Context) (bridgeEntry, error) {
		found, err := a.Agent(ctx, name.tenant, agent)
		if fault.Is(err, fault.NotFound) {
			return bridgeEntry{}, nil
		}
		return bridgeEntry{bridged: found.Bridge, off: found.Inactive}, err
	})
}

// MakeBridgeKey generates a bridge key and, with an organization's first one, its bridge agent. The caller must
// commit the statements and changes in one append that increments the config version, and may sign with the key only
// then. It returns fault.Conflict after MaxKeys keys.
func (a *Agents) MakeBridgeKey(ctx context.Context, s *log.State, principal string) (*Bridge, sysevent.Change, error) {
	t := s.Identity().Tenant
	record, version, err := a.readBridgeRecord(ctx, t)
	if err != nil {
		return nil, sysevent.Change{}, err
	}
	var act sysevent.Change
	if version > 0 {
		if err := a.checkKeyLimit(ctx, t, record.Agent); err != nil {
			return nil, sysevent.Change{}, err
		}
	} else {
		if record.Agent, act, err = a.foundBridgeAgent(ctx, t, principal); err != nil {
			return nil, sysevent.Change{}, err
		}
	}
	b := &Bridge{Agent: record.Agent, Private: edkey.NewPrivate()}
	k := storedKey{order: s.ConfigVersion(), Key: Key{
		Agent:        b.Agent,
		ID:           newBridgeKeyID(),
		Public:       b.Private.Public(),
		Multikey:     did.Multikey(b.Private.Public().Bytes()),
		Custody:      event.CustodyServer,
		Status:       Active,
		RegisteredAt: a.currentTime(),
		RegisteredBy: principal,
	}}
	b.Key = k.Key
	keyChanges, err := a.makeKeyChanges(ctx, t, &k)
	if err != nil {
		return nil, sysevent.Change{}, err
	}
	sealed, err := a.sealBridge(s.Identity(), b, version)
	act.Statements = append(act.Statements,
		sysevent.Statement{Kind: sysevent.KeyRegistered, Payload: k.statementPayload()})
	act.Changes = append(append(act.Changes, keyChanges...), sealed)
	return b, act, err
}

func (a *Agents) foundBridgeAgent(
	ctx context.Context, t id.Tenant, principal string,
) (id.Agent, sysevent.Change, error) {
	made := Agent{
		ID:          id.Agent(bridgePrefix + strings.ToLower(rand.Text())),
		DisplayName: "Workflow bridge", CreatedAt: a.currentTime(), CreatedBy: principal, Bridge: true,
	}
	if err := a.claimAgent(ctx, t, made.ID); err != nil {
		return "", sysevent.Change{}, err
	}
	change, err := encodeAgent(made, 0)
	return made.ID, sysevent.Change{
		Statements: []sysevent.Statement{{Kind: sysevent.AgentCreated, Payload: map[string]any{
			"agent_id": made.ID, "display_name": made.DisplayName, "bridge": true,
		}}},
		Changes: []storage.Change{change},
	}, err
}

func newBridgeKeyID() id.Key {
	var name [12]byte
	rand.Read(name[:])
	return id.Key(bridgePrefix + hex.EncodeToString(name[:]))
}

func (a *Agents) sealBridge(identity *log.Identity, b *Bridge, version uint64) (storage.Change, error) {
	seed := b.Private.Seed()
	sealed, err := a.keyring.Seal(bridgeSealContext(identity.Organization), seed[:])
	if err != nil {
		return storage.Change{}, fmt.Errorf("generate bridge key: %w", err)
	}
	value, err := json.Marshal(bridgeRecord{Agent: b.Agent, KeyID: b.Key.ID, Sealed: sealed})
	if err != nil {
		return storage.Change{}, fmt.Errorf("generate bridge key: %w", err)
	}
	return storage.Change{Kind: kindBridge, Value: value, If: version}, nil
}

// readBridgeRecord returns version 0 if there is no record.
func (a *Agents) readBridgeRecord(ctx context.Context, t id.Tenant) (stored bridgeRecord, version uint64, err error) {
	r, err := a.records.Get(ctx, t, kindBridge, "")
	if isAbsent(err) {
		return stored, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(r.Value, &stored)
	}
	if err != nil {
		return stored, 0, errUnreadable("read bridge key", err)
	}
	return stored, r.Version, nil
}

func (a *Agents) readBridge(ctx context.Context, identity *log.Identity) (*Bridge, error) {
	stored, version, err := a.readBridgeRecord(ctx, identity.Tenant)
	if err != nil || version == 0 {
		return nil, err
	}
	k, err := a.readKey(ctx, identity.Tenant, stored.Agent, stored.KeyID)
	if err != nil || k.Status != Active {
		return nil, err
	}
	seed, err := a.keyring.Open(bridgeSealContext(identity.Organization), stored.Sealed)
	if err != nil {
		return nil, fmt.Errorf("open bridge key: %w", err)
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		return nil, fmt.Errorf("open bridge key: %w", err)
	}
	return &Bridge{Agent: stored.Agent, Key: k.Key, Private: private}, nil
}

// findKeyOwner returns the agent for which the key of an event is registered: bridge keys sign for many agents and
// belong to the bridge agent.
func (a *Agents) findKeyOwner(ctx context.Context, t id.Tenant, agent id.Agent, key id.Key) (id.Agent, error) {
	if !strings.HasPrefix(string(key), bridgePrefix) {
		return agent, nil
	}
	stored, _, err := a.readBridgeRecord(ctx, t)
	return stored.Agent, err
}
