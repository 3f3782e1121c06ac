package org

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// kindIngestKeyUse has one record for each ingest key that was used, by its id, in the
// organization's partition: the minute of the last use that was stored. It is written beside the
// ledger, at most once a minute for a key. Uses of the last minute are lost when the process dies.
const kindIngestKeyUse storage.Kind = "ingest_key_use"

type ingestKeyUseRecord struct {
	LastUsedAt id.Instant `json:"last_used_at"`
}

const (
	useMinute = id.Instant(time.Minute / time.Millisecond)
	// maxUses is how many keys are remembered until the next write. Uses of further keys are not
	// remembered in that minute.
	maxUses = 1 << 16
)

// keyUses is the ingest keys that were used since the last write.
type keyUses struct {
	mu   sync.Mutex
	last map[id.Tenant]map[string]id.Instant
	size int
}

// noteUse remembers a use, unless too many keys are remembered.
func (u *keyUses) noteUse(t id.Tenant, keyID string, at id.Instant) {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.last[t]
	before, known := of[keyID]
	switch {
	case known:
		of[keyID] = max(at, before)
		return
	case u.size >= maxUses:
		return
	case u.last == nil:
		u.last = map[id.Tenant]map[string]id.Instant{}
	}
	if of == nil {
		of = map[string]id.Instant{}
		u.last[t] = of
	}
	of[keyID] = at
	u.size++
}

// takeUses returns the keys that are remembered and forgets them.
func (u *keyUses) takeUses() map[id.Tenant]map[string]id.Instant {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.last
	u.last, u.size = nil, 0
	return taken
}

// lastUse returns the last use of a key that is not written yet, 0 for none.
func (u *keyUses) lastUse(t id.Tenant, keyID string) id.Instant {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last[t][keyID]
}

// noteCaller remembers that a caller came. A caller that came in this minute already takes no lock.
func (o *Orgs) noteCaller(c *ingestKeyCaller) {
	minute := o.currentTime() / useMinute * useMinute
	if c.used.Swap(int64(minute)) != int64(minute) {
		o.uses.noteUse(c.Tenant, c.KeyID, minute)
	}
}

// RunLastUses stores the last uses of ingest keys each minute, and once more when ctx ends.
func (o *Orgs) RunLastUses(ctx context.Context, logger *slog.Logger) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			over = true
		}
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		if err := o.StoreLastUses(bounded); err != nil {
			logger.Warn("ingest keys: the times of their last use were not stored", "err", err)
		}
		cancel()
	}
}

// StoreLastUses writes the uses that are remembered. Uses that could not be written are remembered
// again. A ledger that takes no events gets no such records, because its store may be another's.
func (o *Orgs) StoreLastUses(ctx context.Context) error {
	var failed error
	for t, of := range o.uses.takeUses() {
		if err := o.writeLastUses(ctx, t, of); err != nil {
			failed = err
			for keyID, at := range of {
				o.uses.noteUse(t, keyID, at)
			}
		}
	}
	return failed
}

func (o *Orgs) writeLastUses(ctx context.Context, t id.Tenant, of map[string]id.Instant) error {
	s, err := o.ledgers.State(ctx, t)
	if errors.Is(err, log.ErrNotOwner) {
		return nil // another process has later uses
	}
	if err != nil {
		return err
	}
	if s.Trusted() != nil {
		return nil
	}
	store := o.lastUses()
	w := &records.Writer{Store: o.records, Tenant: t}
	for keyID, at := range of {
		change, err := store.Put(records.Versioned[ingestKeyUseRecord]{
			Key: keyID, Value: ingestKeyUseRecord{LastUsedAt: at}, Version: storage.AnyVersion,
		})
		if err == nil {
			err = w.Put(ctx, change)
		}
		if err != nil {
			return err
		}
	}
	return w.Flush(ctx)
}

func (o *Orgs) lastUses() records.Store[ingestKeyUseRecord] {
	return records.New[ingestKeyUseRecord](o.records, kindIngestKeyUse, "The organization can't be read")
}

// readLastUses returns the last use of each ingest key of an organization, by its id.
func (o *Orgs) readLastUses(ctx context.Context, t id.Tenant) (map[string]id.Instant, error) {
	used := map[string]id.Instant{}
	for r, err := range o.lastUses().Scan(ctx, t, records.Range{}, 0) {
		if err != nil {
			return nil, err
		}
		used[r.Key] = r.Value.LastUsedAt
	}
	o.uses.mu.Lock()
	defer o.uses.mu.Unlock()
	for keyID, at := range o.uses.last[t] {
		used[keyID] = max(at, used[keyID])
	}
	return used, nil
}

// ShowIngestKey is IngestKey with the key's last use.
func (o *Orgs) ShowIngestKey(ctx context.Context, t id.Tenant, keyID string) (IngestKey, error) {
	key, err := o.IngestKey(ctx, t, keyID)
	if err != nil {
		return IngestKey{}, err
	}
	return o.addLastUse(ctx, t, key)
}

func (o *Orgs) addLastUse(ctx context.Context, t id.Tenant, key IngestKey) (IngestKey, error) {
	stored, err := o.lastUses().Get(ctx, t, key.ID)
	key.LastUsedAt = max(stored.Value.LastUsedAt, o.uses.lastUse(t, key.ID))
	return key, err
}
