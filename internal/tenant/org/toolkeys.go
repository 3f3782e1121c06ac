package org

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// Bounds of the keys of tools.
const (
	MaxToolKeys    = 64  // per organization
	maxToolKeyName = 128 // code points
)

// ToolKey is the public key of a tool, whose receipts confirm acts.
type ToolKey struct {
	Key          string     `json:"key"` // as tlog.ParseVerifierKey reads it
	RegisteredBy string     `json:"registered_by"`
	RegisteredAt id.Instant `json:"registered_at"`
}

// Name returns the tool's name, which is the name of its key.
func (k ToolKey) Name() string {
	parsed, err := tlog.ParseVerifierKey(k.Key)
	if err != nil { // the record was changed by another program
		return ""
	}
	return parsed.Name()
}

// kindToolKeys has one record per organization, under the key "".
const kindToolKeys storage.Kind = "tool_keys"

// toolKeysRecord has the keys of an organization's tools, in the order of the latest change.
type toolKeysRecord struct {
	Keys      []ToolKey `json:"keys"`
	Log       id.Origin `json:"log"`                 // of the latest change
	Inherited []string  `json:"inherited,omitempty"` // the keys with which Log began, because its predecessor had them
	Changes   uint64    `json:"changes,omitzero"`    // the number of the latest change
}

func (r *toolKeysRecord) texts() []string {
	texts := make([]string, len(r.Keys))
	for i, k := range r.Keys {
		texts[i] = k.Key
	}
	return texts
}

func (o *Orgs) toolKeys() records.Store[toolKeysRecord] {
	return records.New[toolKeysRecord](o.records, kindToolKeys, "Keys of tools can't be read")
}

// ToolKeys returns the keys of an organization's tools, at most MaxToolKeys.
func (o *Orgs) ToolKeys(ctx context.Context, t id.Tenant) ([]ToolKey, error) {
	stored, err := o.toolKeys().Get(ctx, t, "")
	return stored.Value.Keys, err
}

// InheritedToolKeys returns the keys that were in force when the log of s began. They are the keys of its predecessor, and apply until the
// first event of the log that states a change.
func (o *Orgs) InheritedToolKeys(ctx context.Context, s *log.State) ([]string, error) {
	stored, err := o.toolKeys().Get(ctx, s.Identity().Tenant, "")
	if err != nil || stored.Value.Log == s.Identity().Origin {
		return stored.Value.Inherited, err
	}
	return stored.Value.texts(), nil
}

// checkToolKeys returns fault.Invalid for keys that an organization can't register.
func checkToolKeys(keys []string) error {
	if len(keys) > MaxToolKeys {
		return fault.New(fault.Invalid, fmt.Sprintf("keys must be at most %d", MaxToolKeys))
	}
	parsed := make([]tlog.VerifierKey, len(keys))
	for i, text := range keys {
		k, err := tlog.ParseVerifierKey(text)
		switch {
		case err != nil:
			return fault.Wrap(fault.Invalid, fmt.Sprintf("keys[%d] must be a C2SP verifier key such as did:web:payments.example+0a1b2c3d+AQ…", i), err)
		case !textcheck.Name(k.Name(), 1, maxToolKeyName):
			return fault.New(fault.Invalid, fmt.Sprintf("keys[%d] must have a name of at most %d printable characters", i, maxToolKeyName))
		case slices.ContainsFunc(parsed[:i], func(k2 tlog.VerifierKey) bool { return k2.Name() == k.Name() && k2.Hash() == k.Hash() }):
			return fault.New(fault.Invalid, fmt.Sprintf("keys[%d] repeats an earlier one", i))
		}
		parsed[i] = k
	}
	return nil
}

// SetToolKeys replaces the keys of an organization's tools, and states the change with all keys (ledger_tool_keys_changed). Receipts are checked
// under the keys of the latest such event before their result. It returns fault.Invalid for invalid keys. If nothing changes, it states nothing.
func (o *Orgs) SetToolKeys(ctx context.Context, t id.Tenant, principal string, keys []string) error {
	if err := checkToolKeys(keys); err != nil {
		return err
	}
	_, err := o.events.Append(ctx, t, principal, func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		stored, err := o.toolKeys().Get(ctx, t, "")
		if err != nil {
			return sysevent.Change{}, err
		}
		r, before := &stored.Value, stored.Value.texts()
		if slices.Equal(before, keys) {
			return sysevent.Change{}, nil
		}
		if origin := s.Identity().Origin; r.Log != origin {
			r.Log, r.Inherited = origin, before
		}
		after, added := make([]ToolKey, len(keys)), []string{}
		for i, key := range keys {
			if at := slices.Index(before, key); at >= 0 {
				after[i] = r.Keys[at]
				continue
			}
			after[i] = ToolKey{Key: key, RegisteredBy: principal, RegisteredAt: o.currentTime()}
			added = append(added, key)
		}
		removed := slices.DeleteFunc(before, func(key string) bool { return slices.Contains(keys, key) })
		r.Keys, r.Changes = after, r.Changes+1
		payload := map[string]any{"keys": r.texts(), "added": added, "removed": removed, "number": r.Changes}
		paced, err := o.countStatement(ctx, t, principal)
		if err != nil {
			return sysevent.Change{}, err
		}
		put, err := o.toolKeys().Put(stored)
		return sysevent.Change{Statements: []sysevent.Statement{{Kind: sysevent.ToolKeysChanged, Payload: payload}},
			Changes: append(paced, put), KeepConfigVersion: true}, err
	})
	return err
}
