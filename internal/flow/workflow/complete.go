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
	Error        string   `json:"error,omitzero"` // for humans, "" for none
}

// maxError is the length of an error in code points.
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

// Complete ends a run. Repeated with the same ending it tells the same again.
//
// In this order: fault.Invalid for a malformed ending; fault.NotFound for another
// ingest key; fault.Conflict when the run has ended otherwise.
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

// errBehind ends an act: the run is newer than the ledger state it is prepared under.
var errBehind = errors.New("the state is behind the run")

// behindTries is how often a run that is newer than the state is looked at again, a
// millisecond later and each time twice as late: about a second in all.
const behindTries = 10

// appendStatement is sysevent's append for changes that read all events of a run. An event of
// another writer is durable, and its step readable, a moment before the ledger's state with it is
// published. landed is false when nothing changes.
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
	said := sysevent.Statement{Kind: sysevent.Run, Trace: r.Trace, Payload: r.endPayload(name)}
	if r.Ended, err = w.events.EventID(ctx, s, said); err != nil {
		return act, err
	}
	ingestKey := ""
	if r.Shared {
		ingestKey = r.IngestKeyID
	}
	counts := w.stores.running.Begin(s.Identity().Tenant)
	if err := counts.Close(ctx, ingestKey); err != nil {
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
		Statements:        []sysevent.Statement{said},
		Changes:           append(counted, change, newest),
		KeepConfigVersion: true,
	}
	told, err := w.noticeChanges(ctx, s, name, r)
	if err != nil {
		return act, err
	}
	act.Changes = append(act.Changes, told...)
	return act, nil
}

// endPayload is the payload of the event at the end of a run.
func (r *record) endPayload(name ID) map[string]any {
	said := map[string]any{
		"run_id": name, "transition": r.Status, "steps": r.Keys, "events": 1 + r.Steps, "run_root": r.Root,
	}
	if r.Planned != nil {
		said["steps_planned"], said["gap"] = *r.Planned, *r.Planned-r.Keys
	}
	if r.Ending.OutputDigest != nil {
		said["output_digest"] = *r.Ending.OutputDigest
	}
	if r.Ending.Error != "" {
		said["error"] = r.Ending.Error
	}
	return said
}

// computeRoot is the RFC 6962 root over the event hashes of the start and of the steps that r
// knows of. Those that came after r was read are left out: then the append, which is
// guarded by the version of r, is refused and this is computed again.
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
		if at[i] == storage.NoIndex { // it landed after s was published
			return id.Hash{}, errBehind
		}
		if i > 0 && at[i] <= at[i-1] {
			return id.Hash{}, errUnreadable("root of a run",
				fmt.Errorf("event %d lies before the one before it: %w", i, storage.ErrCorrupt))
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
