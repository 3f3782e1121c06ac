package storagetest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

type recordName struct {
	tenant id.Tenant
	kind   storage.Kind
	key    string
}

type tileName struct {
	level uint8
	index uint64
}

// ledger contains everything of one tenant except its records.
type ledger struct {
	head     storage.Head
	events   []storage.Event
	names    map[storage.DedupKey]id.Index
	tiles    map[tileName]storage.Tile
	counters map[string]uint64
}

// state is the content of a store at one moment. It is as simple as possible, because engines are compared with it.
type state struct {
	ledgers map[id.Tenant]*ledger
	records map[recordName]storage.Record
}

func newState() *state {
	return &state{ledgers: map[id.Tenant]*ledger{}, records: map[recordName]storage.Record{}}
}

// cloneState returns a copy that shares only data that is never modified.
func (s *state) cloneState() *state {
	c := &state{ledgers: make(map[id.Tenant]*ledger, len(s.ledgers)), records: maps.Clone(s.records)}
	for t, l := range s.ledgers {
		c.ledgers[t] = &ledger{
			head: l.head, events: slices.Clone(l.events), names: maps.Clone(l.names),
			tiles: maps.Clone(l.tiles), counters: maps.Clone(l.counters),
		}
	}
	return c
}

func (s *state) head(t id.Tenant) storage.Head {
	if l := s.ledgers[t]; l != nil {
		return l.head
	}
	return storage.Head{}
}

// checkBatch returns why b cannot be applied, in the order of the contract: the batch itself, guard, events, changes.
func (s *state) checkBatch(b *storage.Batch) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if !s.head(b.Tenant).Continues(b.Expect) {
		return fmt.Errorf("tenant %d: %w", b.Tenant, storage.ErrConflict)
	}
	taken := map[storage.DedupKey]bool{}
	for i := range b.Events {
		for _, n := range namesOf(&b.Events[i]) {
			if taken[n] || s.index(b.Tenant, n) != storage.NoIndex {
				return &storage.ItemError{Item: b.Events[i].Item, Err: storage.ErrDuplicate}
			}
			taken[n] = true
		}
	}
	return s.checkChanges(b.Tenant, b.Changes)
}

// checkChanges checks the changes in order, each against the state after the earlier ones.
func (s *state) checkChanges(t id.Tenant, changes []storage.Change) error {
	if err := storage.ValidateChanges(changes); err != nil {
		return err
	}
	versions := map[recordName]uint64{}
	for _, c := range changes {
		name := recordName{t, c.Kind, c.Key}
		version, ok := versions[name]
		if !ok {
			version = s.records[name].Version
		}
		if c.If != storage.AnyVersion && c.If != version {
			return &storage.ItemError{Item: c.Item, Err: storage.ErrStale}
		}
		next, err := c.NextVersion(version)
		if err != nil {
			return err
		}
		versions[name] = next
	}
	return nil
}

func (s *state) index(t id.Tenant, n storage.DedupKey) id.Index {
	if n.Idempotency {
		n = storage.DedupKey{Idempotency: true, Digest: n.IdempotencyDigest()}
	}
	if l := s.ledgers[t]; l != nil {
		if i, ok := l.names[n]; ok {
			return i
		}
	}
	return storage.NoIndex
}

// applyBatch applies a batch that passed checkBatch and was cloned.
func (s *state) applyBatch(b *storage.Batch) {
	l := s.ledgers[b.Tenant]
	if l == nil {
		l = &ledger{names: map[storage.DedupKey]id.Index{}, tiles: map[tileName]storage.Tile{}, counters: map[string]uint64{}}
		s.ledgers[b.Tenant] = l
	}
	l.head = b.Head
	for i := range b.Events {
		e := b.Events[i]
		for _, n := range namesOf(&e) {
			l.names[n] = e.Index
		}
		l.eraseEnvelopes(&e)
		e.IdempotencyKey, e.KeyDigest, e.Item, e.Erases = "", storage.KeyDigest{}, 0, nil
		l.events = append(l.events, e)
	}
	for _, tile := range b.Tiles {
		l.tiles[tileName{tile.Level, tile.Index}] = tile
	}
	for _, c := range b.Counters {
		l.counters[c.Name] = c.Value
	}
	s.applyChange(b.Tenant, b.Changes)
}

// eraseEnvelopes removes the envelopes that e erases.
func (l *ledger) eraseEnvelopes(e *storage.Event) {
	for _, r := range e.Erases {
		for i := r.Begin; i < r.End; i++ {
			if erased := &l.events[i]; erased.ErasedBy == 0 {
				erased.Envelope, erased.ErasedBy = nil, e.Index
			}
		}
	}
}

// applyChange applies changes that passed checkChanges.
func (s *state) applyChange(t id.Tenant, changes []storage.Change) {
	for _, c := range changes {
		name := recordName{t, c.Kind, c.Key}
		if c.Value == nil {
			delete(s.records, name)
			continue
		}
		s.records[name] = storage.Record{Kind: c.Kind, Key: c.Key, Value: c.Value, Version: nextVersion(&c, s.records[name].Version)}
	}
}

// nextVersion returns the version after a change that passed checkChanges, or 0 if the change deletes the record.
func nextVersion(c *storage.Change, version uint64) uint64 {
	next, _ := c.NextVersion(version)
	return next
}

func namesOf(e *storage.Event) []storage.DedupKey {
	return slices.Collect(e.DedupKeys)
}
