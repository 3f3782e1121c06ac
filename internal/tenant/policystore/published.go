package policystore

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// digestRecord contains the version with a policy_digest. Versions that were never active have none, because no
// record of the log refers to them.
type digestRecord struct {
	PolicyID string `json:"policy_id"`
	Version  uint64 `json:"version"`
}

// recordDigest makes a version that becomes active findable by its digest, unless an earlier activation has done so.
func (b *Policies) recordDigest(ctx context.Context, t id.Tenant, c *changes, a *activeRecord) error {
	known, err := b.stores.digests.Get(ctx, t, a.Digest.String())
	if err != nil || known.Version != 0 {
		return err
	}
	return c.addChange(b.stores.digests.Put(records.Versioned[digestRecord]{
		Key: a.Digest.String(), Value: digestRecord{PolicyID: a.PolicyID, Version: a.Version},
	}))
}

// Published returns the bytes whose SHA-256 is the policy_digest of a version that is or was active
// (policy.Policy.Canonical), which contain rules but no tests. It returns fault.NotFound if there is none or the
// organization of s does not publish its policies.
func (b *Policies) Published(ctx context.Context, s *log.State, digest id.Hash) ([]byte, error) {
	if b.settings == nil {
		return nil, errNotFound()
	}
	published, err := b.settings.PublishesPolicies(ctx, s)
	if err != nil {
		return nil, err
	}
	if !published {
		return nil, errNotFound()
	}
	t := s.Identity().Tenant
	named, err := b.stores.digests.Get(ctx, t, digest.String())
	if err != nil {
		return nil, err
	}
	if named.Version == 0 {
		return nil, errNotFound()
	}
	v, err := b.readVersion(ctx, t, named.Value.PolicyID, named.Value.Version)
	if err != nil {
		return nil, err
	}
	p, err := v.Value.parseDocument()
	if err == nil && p.Digest() != digest {
		err = errUnreadable("read published policy",
			fmt.Errorf("%w: the digest of the document of version %d differs", storage.ErrCorrupt, p.Version))
	}
	return p.Canonical(), err
}
