package policystore

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// Records of an organization's partition.
const (
	// kindPolicy has one record for each policy, by policy ID. Every change of a policy or of one of its versions
	// changes this record.
	kindPolicy storage.Kind = "policy"
	// kindVersion has one record for each version, by policy ID, "/" and the version in 14 hex digits. Policy IDs
	// contain no "/".
	kindVersion storage.Kind = "policy_version"
	// kindActive has one record, under key "", while a policy is active.
	kindActive storage.Kind = "policy_active"
	// kindDigest has one record for each version that was ever active, by its digest in hex.
	kindDigest storage.Kind = "policy_digest"
)

// policyRecord determines the states of all versions: the latest is a draft if Draft is set, one may be active, and
// the others are archived.
type policyRecord struct {
	Name      string     `json:"name"`
	Newest    uint64     `json:"newest"`
	Draft     bool       `json:"draft"`
	Active    uint64     `json:"active"` // 0 if there is none
	UpdatedAt id.Instant `json:"updated_at"`
	UpdatedBy string     `json:"updated_by,omitzero"` // author of the latest version; "" if an older program wrote it
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

func (p *policyRecord) newestState(version uint64) State {
	switch {
	case version == p.Active:
		return Active
	case version == p.Newest && p.Draft:
		return Draft
	}
	return Archived
}

func encodeVersionKey(policyID string, version uint64) string {
	return fmt.Sprintf("%s/%014x", policyID, version)
}

// stores contains a store for each kind of record.
type stores struct {
	policies records.Store[policyRecord]
	versions records.Store[versionRecord]
	active   records.Store[activeRecord]
	digests  records.Store[digestRecord]
}

func newStores(r storage.RecordStore) stores {
	return stores{
		policies: records.New[policyRecord](r, kindPolicy, unreadableMessage),
		versions: records.New[versionRecord](r, kindVersion, unreadableMessage),
		active:   records.New[activeRecord](r, kindActive, unreadableMessage),
		digests:  records.New[digestRecord](r, kindDigest, unreadableMessage),
	}
}

// readPolicy reads a policy's record. It returns fault.NotFound if there is none.
func (b *Policies) readPolicy(
	ctx context.Context, t id.Tenant, policyID string,
) (records.Versioned[policyRecord], error) {
	p, err := b.stores.policies.Get(ctx, t, policyID)
	if err == nil && p.Version == 0 {
		err = errNotFound()
	}
	return p, err
}

// readVersion reads a version's record. If it is missing although the policy's record refers to it, the draft was
// deleted between the two reads, and readVersion returns ErrStale.
func (b *Policies) readVersion(
	ctx context.Context, t id.Tenant, policyID string, version uint64,
) (records.Versioned[versionRecord], error) {
	v, err := b.stores.versions.Get(ctx, t, encodeVersionKey(policyID, version))
	if err == nil && v.Version == 0 {
		err = fmt.Errorf("version %d of a policy is missing: %w", version, storage.ErrStale)
	}
	return v, err
}

// parseDocument returns the policy in a version's record.
func (v *versionRecord) parseDocument() (policy.Policy, error) {
	p, err := policy.ParseStored(v.Document)
	if err != nil {
		return policy.Policy{}, errUnreadable("read document", fmt.Errorf("%w: %w", storage.ErrCorrupt, err))
	}
	return p, nil
}

// buildVersion builds a Version from its records.
func buildVersion(policyID string, version uint64, p *policyRecord, v *versionRecord) (Version, error) {
	document, err := v.parseDocument()
	if err != nil {
		return Version{}, err
	}
	return Version{
		PolicyID:    policyID,
		Version:     version,
		State:       p.newestState(version),
		Digest:      document.Digest(),
		Document:    v.Document,
		WrittenAt:   v.WrittenAt,
		WrittenBy:   v.WrittenBy,
		ActivatedAt: v.ActivatedAt,
		ArchivedAt:  v.ArchivedAt,
	}, nil
}

// RecordChecks returns a function for each kind of record of this package that reports whether such a record can be
// decoded. An import calls it before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindPolicy:  checkPolicy,
		kindVersion: checkVersion,
		kindActive:  records.Check[activeRecord],
		kindDigest:  records.Check[digestRecord],
	}
}

func checkPolicy(r storage.Record) error {
	v, err := records.Decode[policyRecord](r)
	if p := v.Value; err == nil && (p.Newest == 0 || p.Newest > maxVersion || p.Active > p.Newest) {
		err = fmt.Errorf("policy: %w: invalid version numbers", storage.ErrCorrupt)
	}
	return err
}

// maxVersion is the largest version number that encodeVersionKey keeps in order.
const maxVersion = 1<<56 - 1

func checkVersion(r storage.Record) error {
	v, err := records.Decode[versionRecord](r)
	if err == nil {
		_, err = v.Value.parseDocument()
	}
	return err
}

// FactKinds are the kinds of records that have facts.
var FactKinds = []storage.Kind{kindActive, kindVersion}

// Facts returns the facts in a record that events of the log state too (package recordcheck).
func Facts(r storage.Record) (map[string]string, error) {
	switch r.Kind {
	case kindActive:
		v, err := records.Decode[activeRecord](r)
		a := v.Value
		return map[string]string{"policy": fmt.Sprintf("%s/%d %v", a.PolicyID, a.Version, a.Digest)}, err
	case kindVersion:
		v, err := records.Decode[versionRecord](r)
		if err != nil {
			return nil, err
		}
		p, err := v.Value.parseDocument()
		if err != nil {
			return nil, err
		}
		return map[string]string{"policy/" + r.Key: fmt.Sprintf("%s/%d %v", p.ID, p.Version, p.Digest())}, nil
	}
	return nil, nil
}

// VersionFact returns the name of the fact about the document of a version.
func VersionFact(policyID string, version uint64) string {
	return "policy/" + encodeVersionKey(policyID, version)
}
