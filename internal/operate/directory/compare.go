package directory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
)

// compareOwn compares the logs that moved on this node with their listings, and freezes those that contradict.
// Another node maintains the directory and lists them.
func (d *Directory) compareOwn(ctx context.Context) error {
	if d.caughtUp { // this node maintained the directory until now
		d.caughtUp = false
		clear(d.pending)
		d.metrics.pending.Set(0)
	}
	_, _ = d.Others.Take() // they are for the node that maintains the directory
	moved, _ := d.moves.Take()
	for _, t := range moved {
		d.pending[t] = time.Time{}
	}
	for t := range d.pending {
		if err := d.compareLog(ctx, t); err != nil {
			return fmt.Errorf("compare with the directory: %w", err)
		}
		delete(d.pending, t)
	}
	return nil
}

// compareLog compares one log of this node with its listing. It ignores a log that another node owns.
func (d *Directory) compareLog(ctx context.Context, t id.Tenant) error {
	s, err := d.Ledgers.State(ctx, t)
	if errors.Is(err, log.ErrNotOwner) {
		return nil
	}
	if err != nil {
		return err
	}
	c := newCandidate(t, s)
	last, _, err := d.readListing(ctx, c.listed.Origin)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err == nil {
		_, err = d.extendsListed(ctx, c, last)
	}
	return err
}
