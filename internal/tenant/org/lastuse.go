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

// kindIngestKeyUse has one record for each used ingest key, by its ID, in the organization's partition: the minute of
// its last stored use. It is not part of the ledger, and is written at most once a minute for a key. Uses of the last
// minute are lost if the process dies.
const kindIngestKeyUse storage.Kind = "ingest_key_use"

type ingestKeyUseRecord struct {
	LastUsedAt id.Instant `json:"last_used_at"`
}

const (
	useMinute = id.Instant(time.Minute / time.Millisecond)
	// maxUses bounds the keys that are remembered until the next write. Uses of further keys are not recorded in that
	// minute.
	maxUses = 1 << 16
)

// keyUses contains the ingest keys that were used since the last write.
type keyUses struct {
	mu   sync.Mutex
	last map[id.Tenant]map[string]id.Instant
	size int
}

// noteUse records a use, unless too many keys are recorded.
func (u *keyUses) noteUse(t id.Tenant, keyID string, at id.Instant) {
	u.mu.Lock()
	defer u.mu.Unlock()
	uses := u.last[t]
	before, known := uses[keyID]
	switch {
	case known:
		uses[keyID] = max(at, before)
		return
	case u.size >= maxUses:
		return
	case u.last == nil:
		u.last = map[id.Tenant]map[string]id.Instant{}
	}
	if uses == nil {
		uses = map[string]id.Instant{}
		u.last[t] = uses
	}
	uses[keyID] = at
	u.size++
}

// takeUses returns and resets the recorded uses.
func (u *keyUses) takeUses() map[id.Tenant]map[string]id.Instant {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.last
	u.last, u.size = nil, 0
	return taken
}

// lastUse returns the last use of a key that is not yet written, or 0 if there is none.
func (u *keyUses) lastUse(t id.Tenant, keyID string) id.Instant {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last[t][keyID]
}

// noteCaller records a request of a caller. If the caller already made a request in this minute, it takes no lock.
func (o *Orgs) noteCaller(c *ingestKeyCaller) {
	minute := o.currentTime() / useMinute * useMinute
	if c.used.Swap(int64(minute)) != int64(minute) {
		o.uses.noteUse(c.Tenant, c.KeyID, minute)
	}
}

// RunLastUses stores the last uses of ingest keys every minute, and once more when ctx ends.
func (o *Orgs) RunLastUses(ctx context.Context, logger *slog.Logger) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		if err := o.StoreLastUses(bounded); err != nil {
			logger.Warn("could not store the last use of ingest keys", "err", err)
		}
		cancel()
	}
}

// StoreLastUses writes the recorded uses. Uses that could not be written are recorded again. It writes nothing for a
// ledger that accepts no events, because its store may be an old copy.
func (o *Orgs) StoreLastUses(ctx context.Context) error {
	var failed error
	for t, uses := range o.uses.takeUses() {
		if err := o.writeLastUses(ctx, t, uses); err != nil {
			failed = err
			for keyID, at := range uses {
				o.uses.noteUse(t, keyID, at)
			}
		}
	}
	return failed
}

func (o *Orgs) writeLastUses(ctx context.Context, t id.Tenant, uses map[string]id.Instant) error {
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
	for keyID, at := range uses {
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

// readLastUses returns the last use of each ingest key of an organization, by its ID.
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

// ShowIngestKey is like IngestKey, and includes the last use of the key.
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
