package monitor

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// ErrLag is wrapped when the newest cosignature is too old, or when there is none.
var ErrLag = errors.New("no recent cosignature of a witness")

// askCosigned adds the log's newest head with cosignatures, when there are witnesses. The
// newest head of all may have no cosignature yet.
func (m *Monitor) askCosigned(ctx context.Context, heads []signedHead) ([]signedHead, error) {
	if len(m.Witnesses) == 0 {
		return heads, nil
	}
	from := m.Log.Prefix()
	note, err := m.Log.Cosigned(ctx)
	if err != nil {
		return heads, fmt.Errorf("%s: %w", from, err)
	}
	h, err := m.openShownCheckpoint(note, from, "cosigned checkpoint: ")
	if err != nil {
		return heads, err
	}
	return append(heads, h), nil
}

// checkCosignatures reports the newest cosignature of each witness on heads of one
// history. It checks that the newest of all is not too old.
func (m *Monitor) checkCosignatures(r *Report, heads []signedHead) error {
	newest := id.Instant(0)
	for _, w := range m.Witnesses {
		at, ok := newestCosignature(w, heads)
		if ok {
			r.Cosignatures = append(r.Cosignatures, verify.Cosignature{Name: w.Name(), Time: at})
			newest = max(newest, at)
		}
	}
	if age := r.CheckedAt.Time().Sub(newest.Time()); m.Policy == nil && m.MaxLag > 0 && age > m.MaxLag {
		if len(r.Cosignatures) == 0 {
			return fmt.Errorf("%s: %w", m.origin, ErrLag)
		}
		return fmt.Errorf("%s: %w: the newest is of %s", m.origin, ErrLag, newest)
	}
	return nil
}

func newestCosignature(w tlog.WitnessKey, heads []signedHead) (newest id.Instant, ok bool) {
	for _, h := range heads {
		note, err := tlog.ParseNote(h.note)
		if err != nil {
			continue // cannot happen: the head's note was opened before
		}
		if at, err := w.Cosigned(note); err == nil && (!ok || at > newest) {
			newest, ok = at, true
		}
	}
	return newest, ok
}
