package witness

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// view is what is shown of a ledger: what is in force and what is stored.
type view struct {
	force *force
	page  *page // nil when nobody is asked
}

func (w *Witnesses) view(ctx context.Context, t id.Tenant) (*view, error) {
	v, err := w.views.Get(ctx, t, func(ctx context.Context) (*view, error) {
		wanted, err := w.Organizations.Witnessing(ctx, t)
		if err != nil {
			return nil, err
		}
		v := new(view)
		if v.force, err = w.inForce(t, wanted); err != nil || len(v.force.targets) == 0 {
			return v, err
		}
		v.page, err = w.read(ctx, t)
		return v, err
	})
	if err != nil && fault.Of(err).Kind == fault.Internal {
		err = &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The cosignatures can't be read", Err: err}
	}
	return v, err
}

// best returns the newest checkpoint with a quorum under the policy in force; nil
// when none is kept.
func (v *view) best() *vouched {
	for _, c := range []*vouched{v.page.newest, v.page.quorum} {
		if c != nil && v.force.policy.Quorate(c.by) {
			return c
		}
	}
	return nil
}

// Policy returns the policy in force for a ledger, without logs. Callers don't
// change it.
func (w *Witnesses) Policy(ctx context.Context, s *log.State) (*trust.Policy, error) {
	v, err := w.view(ctx, s.Identity().Tenant)
	if err != nil {
		return nil, err
	}
	return v.force.policy, nil
}

// Checkpoint returns the newest checkpoint of a ledger with all cosignatures that
// are kept for it, which may be none. Callers don't write to it.
func (w *Witnesses) Checkpoint(ctx context.Context, s *log.State) ([]byte, error) {
	v, err := w.view(ctx, s.Identity().Tenant)
	if err != nil {
		return nil, err
	}
	return v.newest(s), nil
}

func (v *view) newest(s *log.State) []byte {
	if v.page != nil && v.page.newest.of(s.Shown()) {
		return v.page.newest.bytes
	}
	return s.Checkpoint()
}

// Covering returns the checkpoint to prove an event under: the newest with a
// quorum if the event at index is in its tree, or else the newest there is.
func (w *Witnesses) Covering(ctx context.Context, s *log.State, index id.Index) (tlog.Checkpoint, []byte, error) {
	v, err := w.view(ctx, s.Identity().Tenant)
	if err != nil {
		return tlog.Checkpoint{}, nil, err
	}
	if v.page != nil && v.force.policy.Quorum != trust.None {
		if c := v.best(); c != nil && index < c.size() && c.size() <= s.Size() {
			return c.checkpoint, c.bytes, nil
		}
	}
	return s.Shown(), v.newest(s), nil
}

// Cosigned returns the newest checkpoint with a quorum of cosignatures.
//
// fault.Unavailable with the code not_cosigned: there is none; or the ledger is to
// fail closed, and an event that was taken more than MaxLag ago is not in it.
func (w *Witnesses) Cosigned(ctx context.Context, s *log.State) ([]byte, error) {
	v, err := w.view(ctx, s.Identity().Tenant)
	if err != nil {
		return nil, err
	}
	if v.force.policy.Quorum == trust.None {
		return v.newest(s), nil
	}
	c := v.best()
	if c == nil {
		return nil, w.notCosigned()
	}
	if c.of(s.Shown()) {
		return c.bytes, nil
	}
	if err := s.Provable(); err != nil { // it is not a tree of what is shown
		return nil, err
	}
	if v.force.failClosed {
		late, err := w.late(ctx, s, c.size())
		if err != nil {
			return nil, err
		}
		if late {
			return nil, w.notCosigned()
		}
	}
	return c.bytes, nil
}

// late reports whether the event at index, the first that a checkpoint does not
// have, was taken more than MaxLag ago.
func (w *Witnesses) late(ctx context.Context, s *log.State, index id.Index) (bool, error) {
	if index >= s.Size() {
		return false, nil
	}
	oldest := id.InstantOf(w.Clock().Add(-w.MaxLag))
	if w.MaxLag == 0 || s.LastReceived() < oldest {
		return true, nil
	}
	e, err := w.Ledgers.Event(ctx, s, index, storage.FieldRecord)
	if err != nil {
		return false, fmt.Errorf("lag of cosignatures: %w", err)
	}
	return e.ReceivedAt < oldest, nil
}

func (w *Witnesses) notCosigned() error {
	return &fault.Error{
		Kind: fault.Unavailable, Code: "not_cosigned", RetryAfter: max(w.Interval, time.Second),
		Message: "The newest checkpoint does not have its quorum of cosignatures yet",
	}
}
