package schedule

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

const (
	// turnSize is the number of entries of an organization that one turn finishes.
	turnSize = 16
	// changesAtOnce is the number of changes that are written together.
	changesAtOnce = 256
	// maxPositions bounds Index.lanes. A forgotten organization starts at its first lane.
	maxPositions = 1024
	// maxErrors bounds the errors that a sweep returns.
	maxErrors = 16
)

// Look examines a due entry and returns its outcome. If it returns an error, the entry is retried a second later.
type Look func(context.Context, Entry) (Outcome, error)

// Sweep calls look for the due entries, including those that become due during the sweep, and skips entries as the outcomes
// demand. Organizations take turns, and each lane is processed in the order of time. An entry that fails or is malformed
// does not affect the others. Sweep returns the first errors, joined.
func (x *Index) Sweep(ctx context.Context, now func() id.Instant, look Look) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := sweep{x: x, look: look}
	for most, more := filedFirst, true; more && ctx.Err() == nil; most = min(2*most, filedMost) {
		s.now = now()
		_, shared := x.Records.(Share)
		x.gaps.forgetOld(s.now, shared)
		backlog, err := x.fileEntries(ctx, s.now, most)
		s.reportEntry(err)
		turns, err := s.sweepOnce(ctx)
		s.reportEntry(err)
		more = err == nil && (backlog || turns)
	}
	return errors.Join(s.failed...)
}

// sweep is the state of one Sweep.
type sweep struct {
	x       *Index
	now     id.Instant // of this pass
	look    Look
	changes []storage.Change // outcomes that are not written yet
	failed  []error
	full    bool // look returned AllFull
}

func (s *sweep) reportEntry(err error) {
	if err != nil && len(s.failed) < maxErrors {
		s.failed = append(s.failed, err)
	}
}

// sweepOnce gives each organization a turn, starting where the last pass ended early. more reports whether another pass may
// find work.
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

// organizations gives a turn to each organization with a filed entry in [begin, end).
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
		if err != nil { // it is skipped, and the other entries of its organization are not
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
		return fmt.Errorf("read due entries: %w", err)
	}
	return nil
}

// writeChanges writes the outcomes of the examined entries.
func (s *sweep) writeChanges(ctx context.Context) error {
	if len(s.changes) == 0 {
		return nil
	}
	err := s.x.Records.Write(ctx, id.Service, s.changes)
	s.changes = s.changes[:0]
	if err != nil {
		return fmt.Errorf("write outcomes of due entries: %w", err)
	}
	return nil
}
