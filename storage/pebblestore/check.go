package pebblestore

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// nameKey is the key of an event id or idempotency key.
type nameKey [prefixLen + nameLen]byte

// claim is a name with the index of the event that is to have the name.
type claim struct {
	key   nameKey
	index id.Index
}

// checker decides which parts of an append can go. It lives under the write lock, so the append meets the values that
// it reads. Parts come in the order of their tenants.
type checker struct {
	engine  *Engine
	known   nameSearch
	all     *pebble.Iterator     // for sweeps of names; nil until one is due
	seen    nameView             // of the tenant
	tenant  id.Tenant            // of the last part that makes sense by itself, if there was one
	begun   bool                 // there was one
	head    head                 // that the part checked last continues
	names   map[nameKey]struct{} // names of the part being checked, when it has several events
	claimed []claim              // names of all parts that can go
	part    []claim              // names of the part checked last
	erased  []stagedErasure      // erasures of the part checked last
	erases  bool                 // the part checked last needs formatErased
	changes []stagedChange       // changes of the part checked last
	written []string             // keys of the changes of all parts that can go
}

func (e *Engine) newChecker(batches []storage.Batch) *checker {
	events := 0
	for i := range batches {
		events += len(batches[i].Events)
	}
	return &checker{engine: e, known: nameSearch{engine: e}, claimed: make([]claim, 0, events)}
}

func (c *checker) closeSearch() error {
	err := c.known.close()
	if c.all != nil {
		err = errors.Join(err, readError(c.all.Close()))
	}
	return err
}

// checkBatch returns why a part can't be applied.
func (c *checker) checkBatch(part *storage.Batch) error {
	begin := len(c.claimed)
	if err := c.decideBatch(part); err != nil {
		c.claimed = c.claimed[:begin]
		return err
	}
	c.part = c.claimed[begin:]
	return nil
}

func (c *checker) decideBatch(part *storage.Batch) error {
	if err := part.Validate(); err != nil {
		return err
	}
	if c.begun && c.tenant == part.Tenant {
		return errors.New("tenant twice in one append")
	}
	c.tenant, c.begun = part.Tenant, true
	var err error
	if c.head, err = c.engine.appliedHead(part.Tenant); err != nil {
		return err
	}
	if !c.head.Continues(part.Expect) {
		return fmt.Errorf("expected size %d, found %d: %w", part.Expect.Size, c.head.Size, storage.ErrConflict)
	}
	if err := c.checkNames(part); err != nil {
		return err
	}
	if c.changes, err = c.engine.stage(part.Tenant, part.Changes); err != nil {
		return err
	}
	if c.erases = part.TouchesErased() || storage.Forgets(part.Changes); !c.erases {
		return nil
	}
	if c.erased, err = c.engine.stageErasures(part); err != nil {
		return err
	}
	return c.engine.file.raiseFormat(formatErased)
}

func (c *checker) checkNames(part *storage.Batch) error {
	if c.names == nil && len(part.Events) > 1 {
		c.names = make(map[nameKey]struct{}, 2*len(part.Events))
	}
	clear(c.names)
	if err := c.viewNames(part); err != nil {
		return err
	}
	for i := range part.Events {
		e := &part.Events[i]
		for n := range e.DedupKeys {
			err := c.checkDedupKey(part, e.Index, n)
			if errors.Is(err, storage.ErrDuplicate) {
				return &storage.ItemError{Item: e.Item, Err: err}
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// viewNames takes the names that the tenant may have, and reads some of them first if they are not all known.
func (c *checker) viewNames(part *storage.Batch) (err error) {
	names, t := c.engine.names, part.Tenant
	if c.seen = names.View(t); c.seen.Whole() {
		return nil
	}
	due := names.Due(t, len(part.Events), c.head.Size)
	if due == 0 {
		return nil
	}
	if c.all == nil {
		if c.all, err = c.engine.db.NewIter(nil); err != nil {
			return readError(err)
		}
	}
	err = names.Sweep(t, c.all, appendPrefix(nil, t, familyEventID), appendPrefix(nil, t, familyIdempotency+1), due)
	c.seen = names.View(t)
	return readError(err)
}

// checkDedupKey returns ErrDuplicate for a name that is taken.
func (c *checker) checkDedupKey(part *storage.Batch, at id.Index, n storage.DedupKey) error {
	c.claimed = append(c.claimed, claim{index: at})
	key := &c.claimed[len(c.claimed)-1].key
	appendNameKey(key[:0], part.Tenant, n)
	if len(part.Events) > 1 { // the names of one event differ
		if _, claimed := c.names[*key]; claimed {
			return storage.ErrDuplicate
		}
		c.names[*key] = struct{}{}
	}
	if c.seen.Absent(key[:]) {
		return nil
	}
	index, err := c.known.index(key)
	if err == nil && index != storage.NoIndex {
		err = storage.ErrDuplicate
	}
	return err
}

// putChanges writes the changes of the part that checkBatch accepted last.
func (c *checker) putChanges(b *pebble.Batch) {
	putChanges(b, c.changes)
	for i := range c.changes {
		c.written = append(c.written, c.changes[i].key)
	}
}
