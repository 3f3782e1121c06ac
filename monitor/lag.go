package monitor

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// ErrLag: the newest cosignature is too old, or there is none.
var ErrLag = errors.New("no recent cosignature of a witness")

// askCosigned adds the newest head that the log shows with cosignatures, when there
// are witnesses to look for. The newest of all may have none yet.
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

// checkCosignatures notes the newest cosignature of each witness on heads that were found
// to be of one history, and checks that the newest of all is not too old.
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
			continue // not of a head: it was opened
		}
		if at, err := w.Cosigned(note); err == nil && (!ok || at > newest) {
			newest, ok = at, true
		}
	}
	return newest, ok
}
