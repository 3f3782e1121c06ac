package workflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// Ending is a tool's report of the end of a run.
type Ending struct {
	Status       Status   `json:"status,omitzero"` // succeeded, failed or aborted
	OutputDigest *id.Hash `json:"output_digest,omitzero"`
	Error        string   `json:"error,omitzero"` // for humans; "" if none
}

// maxError bounds the length of an error in code points.
const maxError = 1024

func (e *Ending) checkMembers() error {
	switch e.Status {
	case Succeeded, Failed, Aborted:
	default:
		return errInvalid("status must be succeeded, failed or aborted")
	}
	if !textcheck.Within(e.Error, 0, maxError) {
		return errInvalid("error must have at most 1024 characters")
	}
	return nil
}

func (e *Ending) equalsEnding(other *Ending) bool {
	digests := e.OutputDigest == other.OutputDigest ||
		e.OutputDigest != nil && other.OutputDigest != nil && *e.OutputDigest == *other.OutputDigest
	return digests && e.Status == other.Status && e.Error == other.Error
}

// Complete ends a run. If it is repeated with the same ending, it returns the same result.
//
// It returns, in this order: fault.Invalid for a malformed ending; fault.NotFound for another ingest key;
// fault.Conflict if the run has ended in another way.
func (w *Workflows) Complete(ctx context.Context, t id.Tenant, ingestKey string, name ID, e Ending) (Run, error) {
	if err := e.checkMembers(); err != nil {
		return Run{}, err
	}
	leave, err := w.lanes.Lock(ctx, place{t, name})
	if err != nil {
		return Run{}, err
	}
	defer leave()
	var ended records.Versioned[record]
	landed, err := w.appendStatement(ctx, t, ingestKey,
		func(ctx context.Context, s *log.State) (act sysevent.Change, err error) {
			if _, err := w.activeSettings(ctx, s); err != nil {
				return act, err
			}
			if ended, err = w.readOwnRun(ctx, t, ingestKey, name); err != nil {
				return act, err
			}
			if r := &ended.Value; r.Status != Running && r.Ending.equalsEnding(&e) {
				return act, nil
			}
			if status := ended.Value.statusAt(w.currentTime()); status != Running {
				return act, errEnded(status)
			}
			ended.Value.Ending = e
			return w.prepareEnding(ctx, s, name, &ended, e.Status)
		})
	if err != nil {
		return Run{}, fmt.Errorf("complete run: %w", err)
	}
	w.known.Delete(place{t, name})
	if landed {
		w.metrics.ended[e.Status].Inc()
	}
	return ended.Value.toRun(name, w.currentTime()), nil
}

// errBehind ends a change: the run is newer than the ledger state that it is prepared under.
var errBehind = errors.New("the ledger state is older than the run")

// behindTries is the number of attempts for a run that is newer than the state. The pause is a millisecond and doubles
// each time, about a second in total.
const behindTries = 10

// appendStatement is sysevent's append for changes that read all events of a run. An event of another writer is
// durable, and its step readable, shortly before the state of the ledger that contains it is published. landed is false
// if nothing changed.
func (w *Workflows) appendStatement(
	ctx context.Context, t id.Tenant, principal string,
	prepare func(context.Context, *log.State) (sysevent.Change, error),
) (landed bool, err error) {
	for try := range behindTries {
		receipts, err := w.events.Append(ctx, t, principal, prepare)
		if !errors.Is(err, errBehind) {
			return len(receipts) > 0, err
		}
		select {
		case <-time.After(time.Millisecond << try):
		case <-ctx.Done():
		}
	}
	return false, &fault.Error{
		Kind:       fault.Unavailable,
		Code:       "unavailable",
		Message:    "The run's steps can't be read yet",
		RetryAfter: time.Second,
		Err:        errBehind,
	}
}

// prepareEnding returns the change that ends a running run, with its result.
func (w *Workflows) prepareEnding(
	ctx context.Context, s *log.State, name ID, run *records.Versioned[record], to Status,
) (act sysevent.Change, err error) {
	r := &run.Value
	if r.Root, err = w.computeRoot(ctx, s, name, r); err != nil {
		return act, err
	}
	r.Status, r.EndedAt = to, w.currentTime()
	statement := sysevent.Statement{Kind: sysevent.Run, Trace: r.Trace, Payload: r.endPayload(name)}
	if r.Ended, err = w.events.EventID(ctx, s, statement); err != nil {
		return act, err
	}
	var shares []string
	if r.Shared {
		shares = append(shares, r.IngestKeyID)
	}
	counts := w.stores.running.Begin(s.Identity().Tenant)
	if err := counts.Close(ctx, shares...); err != nil {
		return act, err
	}
	counted, err := counts.Changes()
	if err != nil {
		return act, err
	}
	change, err := w.stores.runs.Put(*run)
	if err != nil {
		return act, err
	}
	newest, err := w.stores.running.Entry(string(name), r.toListed())
	if err != nil {
		return act, err
	}
	act = sysevent.Change{
		Statements:        []sysevent.Statement{statement},
		Changes:           append(counted, change, newest),
		KeepConfigVersion: true,
	}
	notices, err := w.noticeChanges(ctx, s, name, r)
	if err != nil {
		return act, err
	}
	act.Changes = append(act.Changes, notices...)
	return act, nil
}

// endPayload is the payload of the event at the end of a run.
func (r *record) endPayload(name ID) map[string]any {
	payload := map[string]any{
		"run_id": name, "transition": r.Status, "steps": r.Keys, "events": 1 + r.Steps, "run_root": r.Root,
	}
	if r.Planned != nil {
		payload["steps_planned"], payload["gap"] = *r.Planned, *r.Planned-r.Keys
	}
	if r.Ending.OutputDigest != nil {
		payload["output_digest"] = *r.Ending.OutputDigest
	}
	if r.Ending.Error != "" {
		payload["error"] = r.Ending.Error
	}
	return payload
}

// computeRoot returns the RFC 6962 root over the event hashes of the start and of the steps that r counts. Steps that
// were written after r was read are not included. In that case, the append is rejected because of the version of r, and
// the root is computed again.
func (w *Workflows) computeRoot(ctx context.Context, s *log.State, name ID, r *record) (id.Hash, error) {
	steps, err := w.readSteps(ctx, s.Identity().Tenant, name, 1, r.Steps)
	if err != nil {
		return id.Hash{}, err
	}
	events := make([]id.Event, 1, 1+len(steps))
	events[0] = r.Started
	for i := range steps {
		events = append(events, steps[i].Event)
	}
	at, err := w.ledgers.Locate(ctx, s, events)
	if err != nil {
		return id.Hash{}, err
	}
	for i := range at {
		if at[i] == storage.NoIndex { // it was committed after s was published
			return id.Hash{}, errBehind
		}
		if i > 0 && at[i] <= at[i-1] {
			return id.Hash{}, errUnreadable("root of a run",
				fmt.Errorf("event %d is before its predecessor: %w", i, storage.ErrCorrupt))
		}
	}
	hashes, err := w.ledgers.Hashes(ctx, s, at)
	if err != nil {
		return id.Hash{}, err
	}
	return StepsRoot(hashes), nil
}

// StepsRoot returns run_root: the RFC 6962 root of a tree whose leaf data are the 32 bytes
// of each event hash, the start's first, then those of all steps in the order of their
// sequence numbers.
func StepsRoot(hashes []id.Hash) id.Hash {
	var edge tlog.Edge
	for i := range hashes {
		edge.Append(tlog.LeafHash(hashes[i][:]))
	}
	return edge.Root()
}
