package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
	"github.com/agentledger/agentledger/verify"
)

// ErrLag is wrapped if the view is older than MaxAge or MaxLag allow, or if its age is unknown
// because no witness, or no quorum of the policy, has cosigned.
var ErrLag = errors.New("no recent cosignature of a witness")

// askCosigned adds the log's latest head with cosignatures, if there are witnesses. The latest head
// of all may have no cosignature yet.
func (m *Monitor) askCosigned(ctx context.Context, s *state, heads []signedHead) ([]signedHead, error) {
	if len(m.Witnesses) == 0 {
		return heads, nil
	}
	from := m.Log.Prefix()
	note, err := m.Log.Cosigned(ctx)
	if err != nil {
		return heads, fmt.Errorf("%s: %w", from, err)
	}
	h, err := m.openShownCheckpoint(ctx, s, note, from, "cosigned checkpoint: ")
	if err != nil {
		return heads, err
	}
	return append(heads, h), nil
}

// DefaultMaxAge is the default of Options.MaxAge. A service asks the witnesses of a log that does
// not grow once an hour.
const DefaultMaxAge = 3 * time.Hour

// checkAge reports the latest cosignature by each witness on heads of one history, and the time
// since which the witnesses have confirmed this view. It returns an error if that was too long ago.
func (m *Monitor) checkAge(s *state, r *Report, heads []signedHead) error {
	var usable []trust.Cosignature
	for _, w := range m.Witnesses {
		newest, future := newestCosignatures(w, heads, r.CheckedAt)
		if newest != 0 {
			r.Cosignatures = append(r.Cosignatures, verify.Cosignature{Name: w.Name(), Time: newest})
			usable = append(usable, trust.Cosignature{Witness: trust.Witness{Key: w}, Time: newest})
		}
		if future != 0 {
			r.Cosignatures = append(r.Cosignatures, verify.Cosignature{Name: w.Name(), Time: future, InFuture: true})
		}
	}
	if since := m.confirmedSince(usable, r.CheckedAt); since != 0 {
		r.AsOf = &since
	}
	if m.Policy != nil && s.proven.note == nil {
		return nil // checkQuorum limits how long entries may wait for their first quorum
	}
	if limit := m.maxAge(); limit <= 0 || r.AsOf != nil && r.CheckedAt.Time().Sub(r.AsOf.Time()) <= limit {
		return nil
	}
	err := fmt.Errorf("%s: %w", m.origin, ErrLag)
	if r.AsOf != nil {
		err = fmt.Errorf("%w: the view is of %s, and may have been held back since", err, r.AsOf)
	}
	for _, c := range r.Cosignatures {
		if c.InFuture {
			err = fmt.Errorf("%w; %s states %s, which is in the future and does not count", err, c.Name, c.Time)
		}
	}
	return err
}

// confirmedSince returns the time since which the witnesses have confirmed the view, or 0.
func (m *Monitor) confirmedSince(newest []trust.Cosignature, now id.Instant) (since id.Instant) {
	if m.Policy != nil {
		return m.Policy.Times(newest, now).Since
	}
	for _, c := range newest {
		since = max(since, c.Time)
	}
	return since
}

// maxAge returns the maximum age of the view. It is not positive if there is no maximum.
func (m *Monitor) maxAge() time.Duration {
	if m.Policy == nil && m.MaxLag > 0 && (m.MaxAge <= 0 || m.MaxLag < m.MaxAge) {
		return m.MaxLag
	}
	return m.MaxAge
}

// newestCosignatures returns the time of a witness's latest cosignature that is not from the
// future, and the time of the latest one that is; each is 0 if there is none.
func newestCosignatures(w tlog.WitnessKey, heads []signedHead, now id.Instant) (newest, future id.Instant) {
	for _, h := range heads {
		note, err := tlog.ParseNote(h.note)
		if err != nil {
			continue // only if there is no proven head yet: all other notes were parsed before
		}
		at, err := w.Cosigned(note)
		switch {
		case err != nil:
		case trust.IsAhead(at, now):
			future = max(future, at)
		default:
			newest = max(newest, at)
		}
	}
	return newest, future
}
