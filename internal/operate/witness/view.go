package witness

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/takeover"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// view is the current policy and the record of a ledger.
type view struct {
	active *activePolicy
	record *ledgerRecord // nil if the policy has no witnesses
}

func (w *Witnesses) loadView(ctx context.Context, t id.Tenant) (*view, error) {
	if takeover.StandsIn(ctx) { // the owner may have published a newer one than the cached one
		w.views.Expire(t)
	}
	v, err := w.views.Get(ctx, t, func(ctx context.Context) (*view, error) {
		setting, err := w.Organizations.Witnessing(ctx, t)
		if err != nil {
			return nil, err
		}
		v := new(view)
		if v.active, err = w.currentPolicy(t, setting); err != nil || len(v.active.targets) == 0 {
			return v, err
		}
		v.record, err = w.readRecord(ctx, t)
		return v, err
	})
	if err != nil && fault.Of(err).Kind == fault.Internal {
		err = &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Err: err,
			Message: "The cosignatures can't be read"}
	}
	return v, err
}

// newestWithQuorum returns the latest checkpoint with a quorum under the current policy, or nil.
func (v *view) newestWithQuorum() *cosignedCheckpoint {
	for _, c := range []*cosignedCheckpoint{v.record.newest, v.record.quorum} {
		if c != nil && v.active.policy.Quorate(c.isCosignedBy) {
			return c
		}
	}
	return nil
}

// Policy returns the current policy of a ledger, without logs. Callers must not modify it.
func (w *Witnesses) Policy(ctx context.Context, s *log.State) (*trust.Policy, error) {
	v, err := w.loadView(ctx, s.Identity().Tenant)
	if err != nil {
		return nil, err
	}
	return v.active.policy, nil
}

// Checkpoint returns the latest checkpoint of a ledger with all stored cosignatures, if there are any. Callers must
// not modify it.
func (w *Witnesses) Checkpoint(ctx context.Context, s *log.State) ([]byte, error) {
	v, err := w.loadView(ctx, s.Identity().Tenant)
	if err != nil {
		return nil, err
	}
	return v.newestNote(s), nil
}

func (v *view) newestNote(s *log.State) []byte {
	if v.record != nil && v.record.newest.isOfCheckpoint(s.Shown()) {
		return v.record.newest.bytes
	}
	return s.Checkpoint()
}

// Covering returns the checkpoint for the proof of an event: the latest one with a quorum if its tree contains the
// event at index, otherwise the latest one.
func (w *Witnesses) Covering(ctx context.Context, s *log.State, index id.Index) (tlog.Checkpoint, []byte, error) {
	v, err := w.loadView(ctx, s.Identity().Tenant)
	if err != nil {
		return tlog.Checkpoint{}, nil, err
	}
	if v.record != nil && v.active.policy.Quorum != trust.None {
		if c := v.newestWithQuorum(); c != nil && index < c.treeSize() && c.treeSize() <= s.Size() {
			return c.checkpoint, c.bytes, nil
		}
	}
	return s.Shown(), v.newestNote(s), nil
}

// Cosigned returns the latest checkpoint with a quorum of cosignatures.
//
// It returns fault.Unavailable with the code not_cosigned if there is none, or if the ledger fails closed and an
// event that is older than MaxLag is not in the checkpoint.
func (w *Witnesses) Cosigned(ctx context.Context, s *log.State) ([]byte, error) {
	v, err := w.loadView(ctx, s.Identity().Tenant)
	if err != nil {
		return nil, err
	}
	if v.active.policy.Quorum == trust.None {
		return v.newestNote(s), nil
	}
	c := v.newestWithQuorum()
	if c == nil {
		return nil, w.notCosignedError()
	}
	if c.isOfCheckpoint(s.Shown()) {
		return c.bytes, nil
	}
	if err := s.Provable(); err != nil { // the published tree cannot be proved
		return nil, err
	}
	if v.active.failClosed {
		late, err := w.exceedsMaxLag(ctx, s, c.treeSize())
		if err != nil {
			return nil, err
		}
		if late {
			return nil, w.notCosignedError()
		}
	}
	return c.bytes, nil
}

// exceedsMaxLag reports whether the event at index, the first one after a checkpoint, was received more than MaxLag
// ago.
func (w *Witnesses) exceedsMaxLag(ctx context.Context, s *log.State, index id.Index) (bool, error) {
	if index >= s.Size() {
		return false, nil
	}
	oldest := id.InstantOf(w.Clock().Add(-w.MaxLag))
	if w.MaxLag == 0 || s.LastReceived() < oldest {
		return true, nil
	}
	e, err := w.Ledgers.Event(ctx, s, index, storage.FieldColumns)
	if err != nil {
		return false, fmt.Errorf("lag of cosignatures: %w", err)
	}
	return e.ReceivedAt < oldest, nil
}

func (w *Witnesses) notCosignedError() error {
	return &fault.Error{Kind: fault.Unavailable, Code: "not_cosigned", RetryAfter: max(w.Interval, time.Second),
		Message: "The newest checkpoint does not have its quorum of cosignatures yet"}
}
