package pebblestore

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// nameKey is the key of an event ID or idempotency key.
type nameKey [prefixLen + nameLen]byte

// claim is a name and the index of the event that will have it.
type claim struct {
	key   nameKey
	index id.Index
}

// checker decides which batches of an append are accepted. It is used under the write lock, so the append sees the same
// values as the checks. Batches must be checked in the order of their tenants.
type checker struct {
	engine  *Engine
	known   nameSearch
	all     *pebble.Iterator     // for sweeps of names; nil until needed
	seen    nameView             // of tenant
	tenant  id.Tenant            // of the last valid batch
	started bool                 // whether tenant is set
	head    head                 // that the last batch continues
	names   map[nameKey]struct{} // names of the current batch, if it has several events
	claimed []claim              // names of all accepted batches
	part    []claim              // names of the last batch
	erased  []stagedErasure      // erasures of the last batch
	erases  bool                 // the last batch needs formatErased
	changes []stagedChange       // changes of the last batch
	written []string             // keys of the changes of all accepted batches
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

// checkBatch returns nil if a batch can be applied.
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
	if c.started && c.tenant == part.Tenant {
		return errors.New("more than one batch of a tenant in one append")
	}
	c.tenant, c.started = part.Tenant, true
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

// viewNames sets seen to the names that the tenant may have. If they have not all been read yet, it reads some of them
// first.
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

// checkDedupKey claims a name, or returns ErrDuplicate if it is taken.
func (c *checker) checkDedupKey(part *storage.Batch, at id.Index, n storage.DedupKey) error {
	c.claimed = append(c.claimed, claim{index: at})
	key := &c.claimed[len(c.claimed)-1].key
	appendNameKey(key[:0], part.Tenant, n)
	if len(part.Events) > 1 { // the names of a single event are distinct
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

// putChanges writes the changes of the batch that checkBatch accepted last.
func (c *checker) putChanges(b *pebble.Batch) {
	putChanges(b, c.changes)
	for i := range c.changes {
		c.written = append(c.written, c.changes[i].key)
	}
}
