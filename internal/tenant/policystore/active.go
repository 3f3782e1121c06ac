package policystore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// Active returns the policy that is active as of the config version of s or later. It returns nil, nil only if it is
// certain that no policy is active. All errors are fault.Unavailable; the caller must then not allow anything.
func (b *Policies) Active(ctx context.Context, s *log.State) (*policy.Compiled, error) {
	t, version := s.Identity().Tenant, s.ConfigVersion()
	if compiled, found := b.active.Lookup(t, version); found {
		return compiled, nil
	}
	return b.loadActive(ctx, t, version)
}

// readTime bounds reading and compiling a policy.
const readTime = 20 * time.Second

func (b *Policies) loadActive(ctx context.Context, t id.Tenant, version uint64) (*policy.Compiled, error) {
	compiled, err := b.active.GetAt(ctx, t, version, func(ctx context.Context) (*policy.Compiled, error) {
		return b.readActive(ctx, t)
	})
	if fault.Is(err, fault.Internal) { // ctx ended
		err = errUnreadable("read active policy", err)
	}
	return compiled, err
}

// newActiveCache returns a cache of compiled policies by organization, with a limit in bytes.
func newActiveCache(limit int) *cache.Loading[id.Tenant, *policy.Compiled] {
	const entryBytes = 128 // about the weight of an entry without a policy
	return cache.NewLoading(cache.LoadingOptions[id.Tenant, *policy.Compiled]{
		MaxAge: cache.Forever, LoadTime: readTime, Limit: int64(limit),
		Weight: func(_ id.Tenant, compiled *policy.Compiled) int64 {
			if compiled == nil {
				return entryBytes
			}
			return entryBytes + int64(compiled.Weight())
		},
	})
}

func (b *Policies) readActive(ctx context.Context, t id.Tenant) (*policy.Compiled, error) {
	active, err := b.stores.active.Get(ctx, t, "")
	if err != nil {
		return nil, err
	}
	if active.Version == 0 {
		return nil, nil
	}
	if known, _ := b.active.LastLoaded(t); known != nil && known.Digest() == active.Value.Digest {
		return known, nil // only other settings were changed
	}
	v, err := b.readVersion(ctx, t, active.Value.PolicyID, active.Value.Version)
	if errors.Is(err, storage.ErrStale) { // versions that were active are never deleted
		return nil, errUnreadable("read active policy", fmt.Errorf("%w: %w", storage.ErrCorrupt, err))
	}
	if err != nil {
		return nil, err
	}
	document, err := v.Value.parseDocument()
	if err != nil {
		return nil, err
	}
	if document.Digest() != active.Value.Digest {
		return nil, errUnreadable("read active policy",
			fmt.Errorf("%w: the document is not the activated one", storage.ErrCorrupt))
	}
	compiled, err := policy.Compile(document)
	if err != nil {
		return nil, errUnreadable("compile active policy", err)
	}
	return compiled, nil
}
