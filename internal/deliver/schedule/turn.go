package schedule

import (
	"context"

	"github.com/agentledger/agentledger/id"
)

// turn is one organization's part of a pass.
type turn struct {
	*sweep
	tenant   id.Tenant
	finished int
	ended    bool // the rest must wait for another turn
	again    bool // another turn in this sweep may find work
}

// takeTurn examines entries of an organization until enough are finished, lane by lane, starting at the lane at which the
// last turn ended early. again reports whether another turn may find work.
func (s *sweep) takeTurn(ctx context.Context, t id.Tenant) (again bool, err error) {
	o := &turn{sweep: s, tenant: t}
	begin, end := organizationPlaces(t)
	first := begin
	if lane, early := s.x.lanes[t]; early {
		first, _ = lanePlaces(t, lane)
		delete(s.x.lanes, t)
	}
	err = o.readLanes(ctx, first, end)
	if err == nil && !o.ended && first > begin {
		err = o.readLanes(ctx, begin, first)
	}
	return o.again, err
}

// readLanes examines the filed entries in [begin, end), page by page.
func (o *turn) readLanes(ctx context.Context, begin, end string) error {
	for begin < end && !o.ended && ctx.Err() == nil {
		found, next, err := o.x.scanPlaces(ctx, begin, end, page)
		if err != nil {
			return err
		}
		skip := "" // keys before it are in a full lane
		for i := range found {
			if o.ended || found[i].Key < skip {
				continue
			}
			e, err := parsePlaceKey(found[i].Key)
			if err != nil {
				o.reportEntry(err)
				continue
			}
			if o.handleEntry(ctx, e) {
				_, skip = lanePlaces(o.tenant, e.Lane)
			}
		}
		begin = max(next, skip)
	}
	return nil
}

// handleEntry examines one entry and reports whether its lane is full.
func (o *turn) handleEntry(ctx context.Context, e Entry) (full bool) {
	outcome, err := o.look(ctx, e)
	if err != nil {
		o.reportEntry(err)
		outcome = Failed(o.now)
	}
	o.changes = append(o.changes, o.x.changesFor(e, outcome)...)
	switch outcome.does {
	case drop, postpone:
		if o.finished++; o.finished >= turnSize {
			o.ended, o.again = true, true
		}
	case laneFull:
		return true
	case allFull:
		o.sweep.full = true
		o.x.first, _ = organizationPlaces(o.tenant)
		fallthrough
	case organizationFull:
		o.ended = true
		o.x.continueAfter(o.tenant, e.Lane)
	}
	return false
}

// continueAfter stores the lane at which the next turn of an organization starts.
func (x *Index) continueAfter(t id.Tenant, lane string) {
	if x.lanes == nil {
		x.lanes = make(map[id.Tenant]string)
	}
	if len(x.lanes) >= maxPositions {
		clear(x.lanes)
	}
	x.lanes[t] = lane
}
