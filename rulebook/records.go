package rulebook

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// Records of an organization's partition.
const (
	// kindPolicy has one record for each policy, by policy id. Whatever changes a
	// policy or one of its versions changes this record.
	kindPolicy storage.Kind = "policy"
	// kindVersion has one for each version, by policy id, "/" and the version in
	// 14 hex digits. No policy id holds a "/".
	kindVersion storage.Kind = "policy_version"
	// kindActive has one, under key "", while a policy is active.
	kindActive storage.Kind = "policy_active"
)

// policyRecord tells the states of all versions: the newest is a draft if Draft,
// one may be active, the others are archived.
type policyRecord struct {
	Name      string     `json:"name"`
	Newest    uint64     `json:"newest"`
	Draft     bool       `json:"draft"`
	Active    uint64     `json:"active"` // 0 for none
	UpdatedAt id.Instant `json:"updated_at"`
}

type versionRecord struct {
	Document    jsontext.Value `json:"document"` // canonical
	WrittenAt   id.Instant     `json:"written_at"`
	WrittenBy   string         `json:"written_by"`
	ActivatedAt id.Instant     `json:"activated_at,omitzero"`
	ArchivedAt  id.Instant     `json:"archived_at,omitzero"`
}

type activeRecord struct {
	PolicyID string  `json:"policy_id"`
	Version  uint64  `json:"version"`
	Digest   id.Hash `json:"digest"`
}

func (p *policyRecord) state(version uint64) State {
	switch {
	case version == p.Active:
		return Active
	case version == p.Newest && p.Draft:
		return Draft
	}
	return Archived
}

func versionKey(policyID string, version uint64) string {
	return fmt.Sprintf("%s/%014x", policyID, version)
}

// stored is a decoded record and its version in the store, 0 when it is not there.
type stored[T any] struct {
	value T
	at    uint64
}

// read reads a record, which may be absent.
func read[T any](ctx context.Context, b *Rulebook, t id.Tenant, kind storage.Kind, key string) (s stored[T], err error) {
	r, err := b.records.Get(ctx, t, kind, key)
	if absent(err) {
		return s, nil
	}
	if err != nil {
		return s, unreadable("read "+string(kind), err)
	}
	if err := json.Unmarshal(r.Value, &s.value); err != nil {
		return s, unreadable("read "+string(kind), err)
	}
	s.at = r.Version
	return s, nil
}

// change writes s where it was read, or anew.
func (s stored[T]) change(kind storage.Kind, key string) (storage.Change, error) {
	value, err := json.Marshal(s.value)
	if err != nil {
		return storage.Change{}, fmt.Errorf("encode %s: %w", kind, err)
	}
	return storage.Change{Kind: kind, Key: key, Value: value, If: s.at}, nil
}

// policy reads a policy's record; fault.NotFound when there is none.
func (b *Rulebook) policy(ctx context.Context, t id.Tenant, policyID string) (stored[policyRecord], error) {
	p, err := read[policyRecord](ctx, b, t, kindPolicy, policyID)
	if err == nil && p.at == 0 {
		err = errNotFound()
	}
	return p, err
}

// version reads a version's record. Where the policy's record names a version
// that is not there, the draft was deleted between the two reads: ErrStale.
func (b *Rulebook) version(ctx context.Context, t id.Tenant, policyID string, version uint64) (stored[versionRecord], error) {
	v, err := read[versionRecord](ctx, b, t, kindVersion, versionKey(policyID, version))
	if err == nil && v.at == 0 {
		err = fmt.Errorf("version %d of a policy is missing: %w", version, storage.ErrStale)
	}
	return v, err
}

// document reads the policy that a version holds.
func (v *versionRecord) document() (policy.Policy, error) {
	p, err := policy.ParseStored(v.Document)
	if err != nil {
		return policy.Policy{}, unreadable("read document", fmt.Errorf("%w: %w", storage.ErrCorrupt, err))
	}
	return p, nil
}

// whole puts a version together from its records.
func whole(policyID string, version uint64, p *policyRecord, v *versionRecord) (Version, error) {
	document, err := v.document()
	if err != nil {
		return Version{}, err
	}
	return Version{
		PolicyID: policyID, Version: version, State: p.state(version), Digest: document.Digest(), Document: v.Document,
		WrittenAt: v.WrittenAt, WrittenBy: v.WrittenBy, ActivatedAt: v.ActivatedAt, ArchivedAt: v.ArchivedAt,
	}, nil
}
