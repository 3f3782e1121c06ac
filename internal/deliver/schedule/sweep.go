package schedule

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

const (
	// turnSize is how many entries of an organization are finished in one turn.
	turnSize = 16
	// changesAtOnce is how many changes of entries are gathered for one write.
	changesAtOnce = 256
	// maxPositions bounds Index.lanes; a forgotten organization begins at its first lane.
	maxPositions = 1024
	// maxTold bounds the errors that a sweep returns.
	maxTold = 16
)

// Look returns the outcome of an entry that is due. With an error the entry is put off
// for a second.
type Look func(context.Context, Entry) (Outcome, error)

// Sweep shows look the due entries, also those that become due meanwhile. Entries behind one that
// look calls full are left out. Organizations take turns; in a lane the order is that of time. An
// entry that fails, or can't be read, does not affect the others; the first errors are joined.
func (x *Index) Sweep(ctx context.Context, now func() id.Instant, look Look) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := sweep{x: x, look: look}
	for most, more := filedFirst, true; more && ctx.Err() == nil; most = min(2*most, filedMost) {
		s.now = now()
		_, shared := x.Records.(Share)
		x.gaps.forgetOld(s.now, shared)
		left, err := x.fileEntries(ctx, s.now, most)
		s.reportEntry(err)
		turns, err := s.sweepOnce(ctx)
		s.reportEntry(err)
		more = err == nil && (left || turns)
	}
	return errors.Join(s.failed...)
}

// sweep is the state of one Sweep.
type sweep struct {
	x       *Index
	now     id.Instant // of this pass
	look    Look
	changes []storage.Change // of entries that were looked at
	failed  []error
	full    bool // look wants no more
}

func (s *sweep) reportEntry(err error) {
	if err != nil && len(s.failed) < maxTold {
		s.failed = append(s.failed, err)
	}
}

// sweepOnce gives each organization a turn, beginning where the last pass ended early. It
// reports whether another pass is worth it.
func (s *sweep) sweepOnce(ctx context.Context) (more bool, err error) {
	begin := max(s.x.first, placesBegin)
	s.x.first = ""
	more, err = s.organizations(ctx, begin, placesEnd)
	if err == nil && begin > placesBegin && !s.full {
		var before bool
		before, err = s.organizations(ctx, placesBegin, begin)
		more = more || before
	}
	err = errors.Join(err, s.writeChanges(ctx))
	return more && !s.full, err
}

// organizations gives a turn to each organization with a place in [begin, end).
func (s *sweep) organizations(ctx context.Context, begin, end string) (more bool, err error) {
	for begin < end && !s.full && ctx.Err() == nil {
		found, next, err := s.x.scanPlaces(ctx, begin, end, 1)
		if err != nil {
			return more, err
		}
		if len(found) == 0 {
			begin = next
			continue
		}
		e, err := parsePlaceKey(found[0].Key)
		if err != nil { // it stays, and nothing of its organization is lost
			s.reportEntry(err)
			begin = found[0].Key + "\x00"
			continue
		}
		_, begin = organizationPlaces(e.Tenant)
		if !s.x.owns(e.Tenant) {
			continue
		}
		again, err := s.takeTurn(ctx, e.Tenant)
		if err != nil {
			return more, err
		}
		more = more || again
		if len(s.changes) >= changesAtOnce {
			if err := s.writeChanges(ctx); err != nil {
				return more, err
			}
		}
	}
	return more, nil
}

func wrapReadError(err error) error {
	if err != nil {
		return fmt.Errorf("read what is due: %w", err)
	}
	return nil
}

// writeChanges writes the outcomes of the entries that were looked at.
func (s *sweep) writeChanges(ctx context.Context) error {
	if len(s.changes) == 0 {
		return nil
	}
	err := s.x.Records.Write(ctx, id.Service, s.changes)
	s.changes = s.changes[:0]
	if err != nil {
		return fmt.Errorf("drop what is done: %w", err)
	}
	return nil
}
