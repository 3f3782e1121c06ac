package pebblestore

import (
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/cockroachdb/pebble/v2"
)

// nameKey is the key of an event id or idempotency key.
type nameKey [prefixLen + nameLen]byte

// checker decides which parts of an append can go. It lives under the write
// lock, so what it reads is what the append meets.
type checker struct {
	engine  *Engine
	known   *pebble.Iterator // for names; nil until one has to be searched for
	tenants map[id.Tenant]bool
	names   map[nameKey]bool // names of the part being checked
	claimed []nameKey        // names of all parts that were checked
	changes []stagedChange   // changes of the part checked last
	written []string         // keys of the changes of all parts that can go
}

func (e *Engine) newChecker(batches []storage.Batch) *checker {
	most := 0
	for i := range batches {
		most = max(most, len(batches[i].Events))
	}
	return &checker{
		engine:  e,
		tenants: make(map[id.Tenant]bool, len(batches)),
		names:   make(map[nameKey]bool, 2*most),
	}
}

func (c *checker) openNames() (err error) {
	if c.known == nil {
		c.known, err = c.engine.nameIterator()
	}
	return err
}

func (c *checker) close() error {
	if c.known == nil {
		return nil
	}
	return readError(c.known.Close())
}

// check returns why a part can't be applied.
func (c *checker) check(part *storage.Batch) error {
	if err := part.Validate(); err != nil {
		return err
	}
	if c.tenants[part.Tenant] {
		return errors.New("tenant twice in one append")
	}
	c.tenants[part.Tenant] = true
	head, err := c.engine.appliedHead(part.Tenant)
	if err != nil {
		return err
	}
	if !head.Continues(part.Expect) {
		return fmt.Errorf("expected size %d, found %d: %w", part.Expect.Size, head.Size, storage.ErrConflict)
	}
	if err := c.checkNames(part); err != nil {
		return err
	}
	c.changes, err = c.engine.stage(part.Tenant, part.Changes)
	return err
}

func (c *checker) checkNames(part *storage.Batch) error {
	clear(c.names)
	for i := range part.Events {
		e := &part.Events[i]
		for n := range e.Names {
			err := c.checkName(part.Tenant, n)
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

// checkName returns ErrDuplicate for a name that is taken.
func (c *checker) checkName(t id.Tenant, n storage.Name) error {
	var key nameKey
	appendNameKey(key[:0], t, n)
	if c.names[key] {
		return storage.ErrDuplicate
	}
	c.names[key] = true
	c.claimed = append(c.claimed, key)
	if c.engine.absences.absent(&key) {
		return nil
	}
	if err := c.openNames(); err != nil {
		return err
	}
	index, err := seekName(c.known, key[:])
	if err == nil && index != storage.NoIndex {
		err = storage.ErrDuplicate
	}
	return err
}

// putChanges writes the changes of the part that check let pass last.
func (c *checker) putChanges(b *pebble.Batch) {
	putChanges(b, c.changes)
	for i := range c.changes {
		c.written = append(c.written, c.changes[i].key)
	}
}
