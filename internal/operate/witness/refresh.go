package witness

import (
	"cmp"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// A quiet ledger is one whose latest checkpoint is cosigned by all witnesses. Its cosignatures grow old, and readers
// cannot distinguish an old view from a ledger that does not grow. So the witnesses are asked again within
// Options.Refresh.

const (
	// refreshPause is the time between the rounds of two quiet ledgers: at most 50 a second, however many there are,
	// even after a long downtime.
	refreshPause = 20 * time.Millisecond
	// maxQuiet bounds the quiet ledgers that one sweep schedules, of 16 bytes each.
	maxQuiet = 1 << 20
	// maxAged bounds the ledgers whose faults a sweep reads to ignore those that cannot be submitted.
	maxAged = 1000
)

// datedLedger is a ledger with a time.
type datedLedger struct {
	tenant id.Tenant
	at     id.Instant
}

func sortByTime(all []datedLedger) {
	slices.SortFunc(all, func(a, b datedLedger) int { return cmp.Compare(a.at, b.at) })
}

// refreshRepeatedly starts the rounds of the quiet ledgers that the latest sweep found, each at its scheduled time.
func (w *Witnesses) refreshRepeatedly(ctx context.Context) {
	var quiet []datedLedger
	next := time.NewTimer(time.Hour)
	defer next.Stop()
	for {
		if len(quiet) > 0 {
			next.Reset(max(quiet[0].at.Time().Sub(w.Clock()), refreshPause))
		}
		select {
		case <-ctx.Done():
			return
		case quiet = <-w.quiet:
		case <-next.C:
			if len(quiet) > 0 && !quiet[0].at.Time().After(w.Clock()) {
				w.queue.enqueuePaused(quiet[0].tenant, w.Clock())
				quiet = quiet[1:]
			}
		}
	}
}

// scheduleQuiet replaces the schedule of the quiet ledgers.
func (w *Witnesses) scheduleQuiet(quiet []datedLedger) {
	sortByTime(quiet)
	select {
	case <-w.quiet: // an older schedule
	default:
	}
	select {
	case w.quiet <- quiet:
	default: // a newer one
	}
}

// refreshTime returns when the witnesses of a quiet ledger must be asked again, or 0 if none has cosigned. The time
// is random in the second half of Refresh, so that ledgers that were cosigned together spread out.
func (w *Witnesses) refreshTime(p *ledgerRecord, f *activePolicy) (at id.Instant) {
	for _, t := range f.targets {
		if h := p.hintOrZero(t.Key); p.newest.isCosignedBy(t.Key) && (at == 0 || h.At < at) {
			at = max(h.At, 1)
		}
	}
	if at == 0 {
		return 0
	}
	return id.InstantOf(at.Time().Add(w.Refresh/2 + rand.N(w.Refresh/2)))
}

// refreshDue reports whether an endpoint that has cosigned the latest checkpoint must be asked to do so again. If it
// is paused after a failure, until is the end of the pause.
func (p *ledgerRecord) refreshDue(e *endpoint, age time.Duration, now time.Time) (is bool, until time.Time) {
	for _, t := range e.targets {
		h := p.hintOrZero(t.Key)
		old := h.Last != cosigned || now.Sub(h.At.Time()) >= age
		switch {
		case old && h.Until <= id.InstantOf(now):
			return true, time.Time{}
		case old:
			until = earlierTime(until, h.Until.Time())
		}
	}
	return false, until
}

// confirmedSince returns the time since which a quorum of the policy has cosigned a stored checkpoint, or 0.
func (f *activePolicy) confirmedSince(c *cosignedCheckpoint, now id.Instant) id.Instant {
	if c == nil {
		return 0
	}
	var all []trust.Cosignature
	for _, t := range f.targets {
		for _, s := range c.note.Signatures {
			if t.Key.Matches(s) {
				all = append(all, trust.Cosignature{Witness: t.Witness, Time: cosignatureTime(s)})
			}
		}
	}
	return f.policy.Times(all, now).Since
}

// cosignatureTime returns the time of a stored cosignature, which was verified before it was stored.
func cosignatureTime(s tlog.Signature) id.Instant {
	if len(s.Value) < 8 {
		return 0
	}
	return id.Instant(binary.BigEndian.Uint64(s.Value) * 1000)
}

// sweepFindings is what a sweep learns about the ages of cosignatures.
type sweepFindings struct {
	quiet  []datedLedger // with the times of their next rounds
	aged   []datedLedger // times since which a quorum has cosigned, if older than 2 * Refresh
	oldest id.Instant    // the earliest of all other such times; 0 if there is none
}

// note adds a ledger of a sweep. Ages count only under the service's own policy, so that no organization can raise an
// alarm for the operator with witnesses that do not respond.
func (s *sweepFindings) note(w *Witnesses, l storage.SurveyedLedger, now time.Time) {
	f, err := w.policyFor(l)
	if f == nil || err != nil || l.Head.Size == 0 {
		return
	}
	p := w.recordIn(l.Tenant, l.Values[kindWitnessed])
	p.applyPolicy(f)
	if p.newest.treeSize() == l.Head.Size && len(s.quiet) < maxQuiet {
		at := w.refreshTime(p, f)
		if at != 0 && at.Time().Before(now.Add(w.Sweep)) {
			s.quiet = append(s.quiet, datedLedger{l.Tenant, at})
		}
	}
	if f.hasOwnPolicy() {
		return
	}
	since := f.confirmedSince((&view{f, p}).newestWithQuorum(), id.InstantOf(now))
	switch {
	case since == 0:
	case now.Sub(since.Time()) > 2*w.Refresh:
		if len(s.aged) < maxAged {
			s.aged = append(s.aged, datedLedger{l.Tenant, since})
		}
	case s.oldest == 0 || since < s.oldest:
		s.oldest = since
	}
}

// oldestConfirmed returns the earliest time since which a quorum has cosigned, over the ledgers that can be
// submitted, or 0. A frozen ledger is not submitted, so its age is not a fault of the witnesses.
func (w *Witnesses) oldestConfirmed(ctx context.Context, s sweepFindings) id.Instant {
	sortByTime(s.aged)
	for _, l := range s.aged {
		state, err := w.Ledgers.State(ctx, l.tenant)
		if err != nil {
			continue
		}
		if level := state.Fault().Level; level == log.Healthy || level == log.Suspect {
			return l.at
		}
	}
	return s.oldest
}
