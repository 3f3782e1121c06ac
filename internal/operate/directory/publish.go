package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify"
)

// maxEvents is the maximum number of events in one append of the directory.
const maxEvents = 8

// Run catches up, and then lists the logs that move, until ctx ends.
func (d *Directory) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := d.runRound(ctx)
		if err != nil && ctx.Err() == nil {
			d.metrics.failures.Inc()
			d.Logger.Error("directory not published", "err", err)
		}
		d.waitForMoves(ctx, err != nil)
	}
}

// runRound lists the logs that moved. While another node maintains the directory, it only compares this node's own
// logs.
func (d *Directory) runRound(ctx context.Context) error {
	if d.Keeps != nil && !d.Keeps() {
		return d.compareOwn(ctx)
	}
	if !d.caughtUp {
		if err := d.CatchUp(ctx); err != nil {
			return err
		}
		d.caughtUp = true
	}
	_, err := d.Publish(ctx)
	if errors.Is(err, log.ErrNotOwner) {
		return nil // another node owns it now
	}
	return err
}

// waitForMoves waits for the interval, and then until a log moves. With several nodes it waits only for the interval,
// because this node may become the owner of the directory, which its own logs do not signal.
func (d *Directory) waitForMoves(ctx context.Context, failed bool) {
	timer := time.NewTimer(d.Interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	if failed || len(d.pending) > 0 || d.Keeps != nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-d.moves.Ready():
	}
}

// CatchUp finds the logs that moved before New.
func (d *Directory) CatchUp(ctx context.Context) error {
	for l, err := range storage.Survey(ctx, d.Store, storage.SurveyQuestion{}) {
		if err != nil {
			return fmt.Errorf("catch up: %w", err)
		}
		if l.Err != nil || l.Head.Size > 0 { // a log that can't be read now is retried
			d.pending[l.Tenant] = time.Time{}
		}
	}
	return nil
}

// anchorTime is how long after another node's notification the anchor of the log may arrive. Usually it arrives
// within a second.
const anchorTime = 5 * time.Second

// gatherMoves adds the logs that moved here and on other nodes to pending.
func (d *Directory) gatherMoves(ctx context.Context) error {
	moved, _ := d.moves.Take()
	for _, t := range moved {
		d.pending[t] = time.Time{}
	}
	changed, missed := d.Others.Take()
	until := time.Now().Add(anchorTime)
	for _, t := range changed {
		d.pending[t] = until
	}
	if missed {
		return d.CatchUp(ctx)
	}
	return nil
}

// settle removes a log that was examined from pending, unless its anchor may still arrive.
func (d *Directory) settle(t id.Tenant) {
	if time.Now().After(d.pending[t]) {
		delete(d.pending, t)
	}
}

// Publish lists the logs that moved, as far as they fit into one append. It returns the number of listed logs.
func (d *Directory) Publish(ctx context.Context) (listed int, err error) {
	if err := d.gatherMoves(ctx); err != nil {
		return 0, err
	}
	delete(d.pending, d.Tenant)
	batch, err := d.collectCandidates(ctx)
	if err != nil {
		return 0, err
	}
	var taken []id.Tenant
	receipts, err := d.Events.Append(ctx, d.Tenant, sysevent.Operator,
		func(ctx context.Context, s *log.State) (act sysevent.Change, err error) {
			act, taken, err = d.listLarger(ctx, s, batch)
			return act, err
		})
	if err != nil && !errors.Is(err, log.ErrDuplicate) {
		return 0, fmt.Errorf("publish directory: %w", err)
	}
	for _, c := range batch {
		d.settle(c.tenant)
	}
	d.metrics.observeRound(len(taken), len(d.pending), len(receipts) > 0)
	return len(taken), nil
}

// candidate is a log whose tree may be larger than its listed tree.
type candidate struct {
	tenant id.Tenant
	state  *log.State
	listed verify.Listed
}

func newCandidate(t id.Tenant, s *log.State) candidate {
	shown := s.Shown()
	return candidate{tenant: t, state: s, listed: verify.Listed{
		Origin: shown.Origin, Size: shown.Size, Root: shown.Root, LogKey: s.VerifierKey().String(),
	}}
}

// collectCandidates reads the published states of as many logs as one append can list. A log that can't be read stays
// pending and does not prevent the others from being listed.
func (d *Directory) collectCandidates(ctx context.Context) (batch []candidate, err error) {
	for t := range d.pending {
		if len(batch) == maxEvents*verify.MaxListed {
			break
		}
		s, err := d.readShown(ctx, t)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			d.Logger.Error("log not listed", "tenant", t, "err", err)
			continue
		}
		if s.Shown().Size == 0 {
			d.settle(t)
			continue
		}
		batch = append(batch, newCandidate(t, s))
	}
	slices.SortFunc(batch,
		func(a, b candidate) int { return strings.Compare(string(a.listed.Origin), string(b.listed.Origin)) })
	return batch, nil
}

// readShown returns the published state of a log, or its state as of the anchor if another node owns it.
func (d *Directory) readShown(ctx context.Context, t id.Tenant) (*log.State, error) {
	s, err := d.Ledgers.State(ctx, t)
	if errors.Is(err, log.ErrNotOwner) {
		return d.Ledgers.LastShown(ctx, t)
	}
	return s, err
}

// listLarger lists the logs of a batch that are larger than their last listing. A log that is smaller was listed by
// another process with a newer state.
func (d *Directory) listLarger(
	ctx context.Context, s *log.State, batch []candidate,
) (sysevent.Change, []id.Tenant, error) {
	var fresh []candidate
	var versions []uint64
	for _, c := range batch {
		last, version, err := d.readListing(ctx, c.listed.Origin)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return sysevent.Change{}, nil, err
		}
		extends, err := d.extendsListed(ctx, c, last)
		if err != nil {
			return sysevent.Change{}, nil, err
		}
		if extends && last.Size < c.listed.Size {
			fresh, versions = append(fresh, c), append(versions, version)
		}
	}
	return d.composeEvents(ctx, s, fresh, versions)
}

// extendsListed reports whether a log extends its last listed tree, and freezes a log with a different history. It
// does not check a log that is smaller or detached.
func (d *Directory) extendsListed(ctx context.Context, c candidate, last Entry) (bool, error) {
	if last.Size == 0 || last.Size > c.listed.Size || c.state.Detached() {
		return last.Size == 0, nil
	}
	root, err := d.Ledgers.Root(ctx, c.state, last.Size)
	if err != nil || root == last.Root {
		return err == nil, err
	}
	d.metrics.contradictions.Inc()
	d.Logger.Error("a log does not extend its tree in the directory", "origin", c.listed.Origin, "listed",
		last.Size, "shown", c.listed.Size)
	reason := fmt.Sprintf("does not extend the tree of size %d that is listed in the directory", last.Size)
	err = d.Ledgers.Freeze(ctx, c.tenant, reason)
	if err != nil && !errors.Is(err, log.ErrNotOwner) { // the owner detects it as well
		return false, fmt.Errorf("freeze: %w", err)
	}
	return false, nil
}

// composeEvents returns the events of a listing and their records.
func (d *Directory) composeEvents(
	ctx context.Context, s *log.State, fresh []candidate, versions []uint64,
) (act sysevent.Change, taken []id.Tenant, err error) {
	act.KeepConfigVersion = true // a listing does not change how events are decided
	for begin := 0; begin < len(fresh); begin += verify.MaxListed {
		group := fresh[begin:min(begin+verify.MaxListed, len(fresh))]
		statement := sysevent.Statement{Kind: sysevent.Directory, Payload: listingPayload(group)}
		event, err := d.Events.EventID(ctx, s, statement)
		if err != nil {
			return sysevent.Change{}, nil, err
		}
		act.Statements = append(act.Statements, statement)
		for i, c := range group {
			value, err := json.Marshal(Entry{Event: event, Size: c.listed.Size, Root: c.listed.Root})
			if err != nil {
				return sysevent.Change{}, nil, err
			}
			act.Changes = append(act.Changes, storage.Change{
				Kind:  kindListed,
				Key:   listedRecordKey(c.listed.Origin),
				Value: value,
				If:    versions[begin+i],
			})
			taken = append(taken, c.tenant)
		}
	}
	return act, taken, nil
}

// listingPayload returns a verify.Listing.
func listingPayload(group []candidate) map[string]any {
	list := make([]any, len(group))
	for i, c := range group {
		list[i] = c.listed
	}
	return map[string]any{"checkpoints": list}
}
