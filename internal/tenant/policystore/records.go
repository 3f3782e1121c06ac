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
	// kindPolicy has one record for each policy, by policy id. Every change of a policy or of one of
	// its versions changes this record.
	kindPolicy storage.Kind = "policy"
	// kindVersion has one for each version, by policy id, "/" and the version in
	// 14 hex digits. No policy id holds a "/".
	kindVersion storage.Kind = "policy_version"
	// kindActive has one, under key "", while a policy is active.
	kindActive storage.Kind = "policy_active"
	// kindDigest has one for each version that was ever active, by its digest in hex.
	kindDigest storage.Kind = "policy_digest"
)

// policyRecord tells the states of all versions: the newest is a draft if Draft,
// one may be active, the others are archived.
type policyRecord struct {
	Name      string     `json:"name"`
	Newest    uint64     `json:"newest"`
	Draft     bool       `json:"draft"`
	Active    uint64     `json:"active"` // 0 for none
	UpdatedAt id.Instant `json:"updated_at"`
	UpdatedBy string     `json:"updated_by,omitzero"` // the newest version; "" where a former service wrote it
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

// stores are the records of each kind.
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

// readPolicy reads a policy's record; fault.NotFound when there is none.
func (b *Policies) readPolicy(
	ctx context.Context, t id.Tenant, policyID string,
) (records.Versioned[policyRecord], error) {
	p, err := b.stores.policies.Get(ctx, t, policyID)
	if err == nil && p.Version == 0 {
		err = errNotFound()
	}
	return p, err
}

// readVersion reads a version's record. Where the policy's record names a version
// that is not there, the draft was deleted between the two reads: ErrStale.
func (b *Policies) readVersion(
	ctx context.Context, t id.Tenant, policyID string, version uint64,
) (records.Versioned[versionRecord], error) {
	v, err := b.stores.versions.Get(ctx, t, encodeVersionKey(policyID, version))
	if err == nil && v.Version == 0 {
		err = fmt.Errorf("version %d of a policy is missing: %w", version, storage.ErrStale)
	}
	return v, err
}

// parseDocument reads the policy that a version holds.
func (v *versionRecord) parseDocument() (policy.Policy, error) {
	p, err := policy.ParseStored(v.Document)
	if err != nil {
		return policy.Policy{}, errUnreadable("read document", fmt.Errorf("%w: %w", storage.ErrCorrupt, err))
	}
	return p, nil
}

// buildVersion puts a version together from its records.
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

// RecordChecks returns, by kind, what reports whether a record of this package can be read. An import asks it before it writes.
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
		err = fmt.Errorf("policy: %w: it has no versions of such numbers", storage.ErrCorrupt)
	}
	return err
}

// maxVersion is the greatest number of a version that encodeVersionKey keeps in order.
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

// Facts returns what a record says that events of the log say too (package recordcheck).
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

// VersionFact is the name of the fact about the document of a version.
func VersionFact(policyID string, version uint64) string {
	return "policy/" + encodeVersionKey(policyID, version)
}
